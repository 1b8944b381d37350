"""Of outputs whose folders overlap the later one is refused, however they are nested."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import output, parsed

from snaploom.models.outputdataset import OutputDataset
from snaploom.validate.outputs import folder_of, overlap_findings

FOLDERS = st.lists(st.sampled_from("ab"), max_size=3).map(
    lambda parts: "/".join(["/o", *parts, ""])
)
AGES = st.sampled_from([None, *(f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))])


def placed(name: str, folder: str, created: str | None) -> OutputDataset:
    raw = output(name, **{"outputFolder.folderUri": folder})
    raw["metadata"] |= {"creationTimestamp": created} if created else {}
    (found,) = parsed([raw])
    assert isinstance(found, OutputDataset)
    return found


def blamed(*outputs: OutputDataset) -> list[str]:
    return [finding.resource for finding in overlap_findings(outputs)]


def test_older_output_keeps_its_folder_whatever_the_names_are() -> None:
    old = placed("z", "/out/", "2026-01-01T00:00:00Z")
    new = placed("a", "/out/", "2026-01-02T00:00:00Z")
    assert blamed(new, old) == ["OutputDataset/a"]


def test_older_output_keeps_its_folder_inside_a_new_one() -> None:
    old = placed("inner", "/out/wide/", "2026-01-01T00:00:00Z")
    new = placed("outer", "/out/", "2026-01-02T00:00:00Z")
    (finding,) = overlap_findings([new, old])
    assert finding.resource == "OutputDataset/outer"
    assert finding.message == "the folder of OutputDataset/inner lies in this folder"


@given(st.lists(st.tuples(FOLDERS, AGES), max_size=7))
def test_blamed_are_all_that_overlap_with_an_earlier_one(
    drawn: list[tuple[str, str | None]],
) -> None:
    outputs = [placed(f"o{number}", *each) for number, each in enumerate(drawn)]

    def rank(each: OutputDataset) -> tuple[str, str, str]:
        return each.metadata.creation_timestamp or "", folder_of(each), each.identity

    def overlaps(one: OutputDataset, other: OutputDataset) -> bool:
        mine, theirs = folder_of(one), folder_of(other)
        return mine.startswith(theirs) or theirs.startswith(mine)

    expected = {
        one.identity
        for one in outputs
        for other in outputs
        if rank(other) < rank(one) and overlaps(one, other)
    }
    assert set(blamed(*outputs)) == expected

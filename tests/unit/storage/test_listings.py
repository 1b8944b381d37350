"""A cached listing is used as it was written, for files as they were."""

import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile.thriftedit import INT64, Value, edited, varint, whole

from snaploom.files.local import LocalObjectStore
from snaploom.models.common import EpochNanos
from snaploom.output import caches, layout
from snaploom.output.caches import FileFacts, Listings, SourceListing, SubtreeStore
from snaploom.parquet.batches import FailedFooter, FooterParser, ParsedFooters
from snaploom.parquet.footers import FooterInvalid, bare_footer, parse_footer

PRESENT = EpochNanos(1_700_000_000_000_000_000)
SETTLED = EpochNanos(PRESENT - caches.SETTLED_AFTER)
OLD = EpochNanos(0)
FACTS = FileFacts("{}", "day string", ("2020-01-01",))

facts = st.builds(
    FileFacts,
    schema=st.none() | st.sampled_from(["{}", '{"a": "ü"}']),
    column=st.none() | st.just("n bigint"),
    values=st.lists(st.integers() | st.text(), max_size=3).map(tuple),
)


def opened(place: Path) -> Listings:
    return Listings(LocalObjectStore(place, create=True), PRESENT)


def left(place: Path, known: dict[str, FileFacts], about: str = "a") -> Path:
    """A document of an earlier run."""
    earlier = opened(place)
    listing = earlier.of("orders", about)
    for fingerprint, each in known.items():
        listing.learn(fingerprint, OLD, each)
    earlier.keep()
    return place / layout.listing_key("orders")


@given(st.dictionaries(st.text("0123456789abcdef", min_size=1), facts))
def test_next_run_finds_the_facts_of_this_one(tmp_path_factory, known):
    place = tmp_path_factory.mktemp("listings")
    left(place, known)
    found = opened(place).of("orders", "a")
    assert {fingerprint: found.find(fingerprint) for fingerprint in known} == known


@pytest.mark.parametrize("fault", ["cut", "changed", "foreign", "format", "about", "empty"])
def test_document_that_is_not_as_it_was_written_is_ignored_and_written_anew(tmp_path, fault):
    file = left(tmp_path, {"f": FACTS})
    content = file.read_bytes()
    match fault:
        case "cut":
            file.write_bytes(content[:-20])
        case "changed":
            file.write_bytes(content.replace(b"2020-01-01", b"2020-01-02"))
        case "foreign":
            file.write_bytes(b"PAR1\n\xff\n")
        case "empty":
            file.write_bytes(b"")
        case "format":
            text = content.split(b"\n")[1].replace(b'"format":1', b'"format":2')
            head = json.dumps({"sha256": hashlib.sha256(text).hexdigest()}).encode()
            file.write_bytes(head + b"\n" + text + b"\n")
    again = opened(tmp_path)
    listing = again.of("orders", "b" if fault == "about" else "a")
    assert listing.find("f") == FileFacts()
    listing.learn("f", OLD, FACTS)
    again.keep()
    assert opened(tmp_path).of("orders", listing.about).find("f") == FACTS


@pytest.mark.parametrize(("modified", "is_kept"), [(SETTLED, True), (SETTLED + 1, False)])
def test_file_that_may_still_change_unseen_is_not_kept(tmp_path, modified, is_kept):
    this = opened(tmp_path)
    this.of("orders", "a").learn("f", EpochNanos(modified), FACTS)
    this.keep()
    assert (opened(tmp_path).of("orders", "a").find("f") == FACTS) is is_kept


def test_only_files_that_are_there_are_kept_and_only_sources_that_are_read(tmp_path: Path) -> None:
    left(tmp_path, {"gone": FACTS, "there": FACTS})
    this = opened(tmp_path)
    this.of("orders", "a").learn("there", OLD, FACTS)
    this.keep()
    found = opened(tmp_path).of("orders", "a")
    assert (found.find("gone"), found.find("there")) == (FileFacts(), FACTS)
    other = opened(tmp_path)
    other.of("customers", "a").learn("there", OLD, FACTS)
    other.keep()
    assert [p.name for p in (tmp_path / layout.LISTINGS).iterdir()] == [
        layout.listing_key("customers").rpartition("/")[2]
    ]


def test_document_is_bounded_by_files_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_KEPT", 5)
    listing = SourceListing("a", {}, SETTLED)
    for count, name in enumerate("abc"):
        listing.learn(name, OLD, FileFacts(None, "n bigint", tuple(range(count))))
    names = [name for known in listing.document().known for name in known.files]
    assert names == ["a", "b"]


def test_nothing_is_written_when_nothing_is_new(tmp_path: Path) -> None:
    file = left(tmp_path, {"f": FACTS})
    before = file.stat().st_ino
    left(tmp_path, {"f": FACTS})
    assert file.stat().st_ino == before


def footer(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def numbers(*values: int | None) -> pa.Table:
    return pa.table({"c": pa.array(values, pa.int64())})


ALIKE = [footer(numbers(*range(at, at + 3)), row_group_size=1 + at % 3) for at in range(6)]
OTHERS = [
    footer(numbers()),
    footer(numbers(*range(20)), row_group_size=1),
    footer(numbers(1, None), write_statistics=False),
    footer(pa.table({"c": [1], "d": ["x"]})),
    footer(numbers(1).replace_schema_metadata({"note": "x"})),
    b"no footer",
]


def described(metadata: pq.FileMetaData, rows: int, groups: range) -> object:
    schema, notes = metadata.schema.to_arrow_schema(), metadata.metadata
    found = [metadata.row_group(group).to_dict() for group in groups]
    return rows, str(schema), notes, metadata.created_by, found


def together(contents: Sequence[bytes]) -> dict[int, object]:
    found: dict[int, object] = {}
    for parsed in FooterParser().parse(contents):
        if isinstance(parsed, FailedFooter):
            found[parsed.place] = None
            continue
        for file in parsed.files:
            found[file.place] = described(parsed.metadata, file.rows, file.groups)
    return found


def single(content: bytes) -> object:
    try:
        found = parse_footer(content)
    except FooterInvalid:
        return None
    return described(found, found.num_rows, range(found.num_row_groups))


@given(contents=st.lists(st.sampled_from([*ALIKE, *OTHERS]), max_size=40))
def test_each_footer_is_what_it_is_by_itself(contents: list[bytes]) -> None:
    assert together(contents) == {place: single(each) for place, each in enumerate(contents)}


def other_rows(found: Value) -> None:
    found.fields = [(n, whole(7, INT64) if n == 3 else value) for n, value in found.fields]


def rows_again(found: Value) -> None:
    found.fields.append((3, whole(99, INT64)))


def groups_again(found: Value) -> None:
    found.fields.append((4, found.get(4)))


def other_order(found: Value) -> None:
    found.fields.sort(key=lambda each: each[0] == 3)


@pytest.mark.parametrize("edit", [other_rows, rows_again, groups_again, other_order])
def test_an_odd_footer_is_what_it_is_by_itself_among_its_like(edit):
    contents = [edited(each, edit) for each in ALIKE] * 2 + ALIKE
    assert together(contents) == {place: single(each) for place, each in enumerate(contents)}


@pytest.mark.parametrize("stated", [0, 2, 3, 300])
def test_a_footer_that_states_another_number_of_row_groups_spoils_no_other(stated: int) -> None:
    honest = [footer(numbers(at)) for at in range(4)]
    bare = bare_footer(honest[3])
    count = bytes([stated << 4 | 12]) if stated < 15 else b"\xfc" + varint(stated)
    lying = bare.replace(b"\x16\x02\x19\x1c", b"\x16\x02\x19" + count, 1)
    assert lying != bare
    framed = lying + len(lying).to_bytes(4, "little") + b"PAR1"
    contents = [honest[0], honest[1], framed, honest[2], honest[1]]
    assert together(contents) == {place: single(each) for place, each in enumerate(contents)}


def test_footers_that_are_alike_are_parsed_together() -> None:
    found = list(FooterParser().parse([footer(numbers(at)) for at in range(600)]))
    files = [len(each.files) for each in found if isinstance(each, ParsedFooters)]
    assert files == [1, 256, 256, 87]


# Checkpoints of subtrees: believed only as they were written, by the same versions.


NAME = "a" * 64
OTHER = "b" * 64
RUN = "20240101T000000000Z-0123456789ab"


def kept_subtrees(place: Path, version: str = "1") -> SubtreeStore:
    return SubtreeStore(LocalObjectStore(place, create=True), (version, "4"))


def written(place: Path, name: str = NAME) -> Path:
    """A subtree of one file; the file."""
    store = kept_subtrees(place)
    uri = store.folder(name, RUN)
    file = Path(uri.removeprefix("file://")) / "part-0.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"rows")
    (file.parent / "_SUCCESS").write_bytes(b"")
    store.commit(name, uri, "{}", {(1, True): {"rows": 3}})
    return file


def test_subtree_is_found_with_its_counts_and_files(tmp_path: Path) -> None:
    file = written(tmp_path)
    found = kept_subtrees(tmp_path).find(NAME)
    assert [(c.number, c.is_out, c.counts) for c in found.counts] == [(1, True, {"rows": 3})]
    assert [tmp_path / item.path for item in found.files] == [file]
    assert kept_subtrees(tmp_path).find(OTHER) is None


@pytest.mark.parametrize("fault", ["version", "size", "absent", "signature", "format", "damaged"])
def test_subtree_that_is_not_as_it_was_written_is_not_believed(tmp_path: Path, fault: str) -> None:
    file, document = written(tmp_path), tmp_path / f"{NAME}.json"
    content = json.loads(document.read_text("utf-8"))
    match fault:
        case "size":
            file.write_bytes(b"more rows")
        case "absent":
            file.unlink()
        case "signature" | "format":
            content[fault] = 2 if fault == "format" else OTHER
            document.write_text(json.dumps(content), "utf-8")
        case "damaged":
            document.write_text("{", "utf-8")
    assert kept_subtrees(tmp_path, "2" if fault == "version" else "1").find(NAME) is None


def test_second_writer_removes_its_own_files(tmp_path: Path) -> None:
    first, second = written(tmp_path), written(tmp_path)
    assert (first.exists(), second.exists()) == (True, False)
    first.unlink()
    assert kept_subtrees(tmp_path).find(NAME) is None
    third = written(tmp_path)
    assert [tmp_path / file.path for file in kept_subtrees(tmp_path).find(NAME).files] == [third]


def test_what_no_run_took_is_removed_and_nothing_else(tmp_path: Path) -> None:
    old, new = written(tmp_path), written(tmp_path, OTHER)
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    for path in tmp_path.rglob("*"):
        if NAME in str(path) or path.name == "notes.txt":
            os.utime(path, (0, 0))
    assert kept_subtrees(tmp_path).remove_unused() == 1
    assert (old.exists(), new.exists(), (tmp_path / "notes.txt").exists()) == (False, True, True)
    assert kept_subtrees(tmp_path).find(OTHER) is not None
    assert kept_subtrees(tmp_path).remove_unused() == 0

"""Snapshots of folders are enumerated without their files, and are those of a full listing."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snaploom.errors import SnapshotValueInvalid, SourceFileUnmatched, SourceNotReadable
from snaploom.files.listed import NoOtherFiles, SparkNeeded
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import HdfsLike
from snaploom.sources.files.snapshots import FileListing, PathSnapshots, path_snapshots

DAY = 86_400
FOLDERS = ("at=0", f"at={DAY}", f"at={2 * DAY}", "at=00", "_at=0", ".at=0", "at=x", "other")
NAMES = (
    "a.json",
    "b.json",
    "_c.json",
    ".d.json",
    "_k=1.json",
    "e.csv",
    "é.json",
    "f.json._COPYING_",
)
GLOBS = ("*/*", "at=*/*.json", "at=*/?.json", "*/a.json", "at=0/*", "_at=*/*", "at=*/*/*")


def source(place: Path, *globs: str, data_format: str = "json", **more: object) -> PathSnapshots:
    """The listing of a source by days in the names of folders; nothing is listed yet."""
    declared = {
        "format": data_format,
        "sourceUriGlobs": [f"file://{place}/{glob}" for glob in globs],
        "sourceUriPrefix": f"file://{place}/at={{at:LONG}}/",
        "snapshot": {"fromFieldValue": {"fieldName": "at", "timeFormat": "UNIX_SECONDS"}},
        **more,
    }
    listing = FileListing("DataSource/x", HdfsLike.model_validate(declared), NoOtherFiles())
    found = path_snapshots(listing)
    assert found is not None
    return found


def write(place: Path, *keys: str) -> None:
    for key in keys:
        (place / key).parent.mkdir(parents=True, exist_ok=True)
        (place / key).write_text("{}")


def seconds(*times: int) -> tuple[EpochNanos, ...]:
    return tuple(EpochNanos(time * 10**9) for time in times)


Change = tuple[str, str, str]
CHANGES = st.tuples(
    st.sampled_from(("write", "delete", "folder", "link", "lost link")),
    st.sampled_from(FOLDERS),
    st.sampled_from(NAMES),
)


def change(place: Path, how: str, folder: str, name: str) -> None:
    path = place / folder / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    match how:
        case "write":
            path.write_text("{}" * len(os.listdir(path.parent)))
        case "folder":
            path.mkdir()
            (path / "a.json").write_text("{}")
        case "link":
            path.symlink_to(place / "aim")
        case "lost link":
            path.symlink_to(place / "nothing")


def answer(find: PathSnapshots, *, is_full: bool) -> object:
    """Snapshots with their files, or the kind of error."""
    try:
        if is_full:
            return dict(find.by_instant)
        return {time: find.files_of(time) for time in find.listed.times}
    except (SnapshotValueInvalid, SourceFileUnmatched, SparkNeeded) as error:
        return type(error)


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.lists(CHANGES, max_size=8), min_size=1, max_size=4),
    globs=st.lists(st.sampled_from(GLOBS), min_size=1, max_size=2, unique=True),
)
def test_every_enumeration_equals_a_full_listing(
    changes: list[list[Change]], globs: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "aim").write_text("{}")
        for some in changes:
            for each in some:
                change(place, *each)
            expected = answer(source(place, *globs), is_full=True)
            assert answer(source(place, *globs), is_full=False) == expected


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths whose status was asked for."""
    asked: list[str] = []
    stat = os.stat
    monkeypatch.setattr(
        os, "stat", lambda path, **how: asked.append(str(path)) or stat(path, **how)
    )
    return asked


def test_files_are_looked_at_when_their_snapshot_is_read(tmp_path, looked_at) -> None:
    write(tmp_path, "at=0/a.json", f"at={DAY}/a.json", f"at={DAY}/b.json")
    found = source(tmp_path, "*/*.json")
    assert found.listed.times == seconds(0, DAY)
    assert [path for path in looked_at if path.endswith(".json")] == []
    assert [file.file.name for file in found.files_of(*seconds(DAY))] == ["a.json", "b.json"]
    assert {Path(path).parent.name for path in looked_at if path.endswith(".json")} == {f"at={DAY}"}


def test_a_file_that_is_written_anew_is_seen_as_it_is_when_it_is_read(tmp_path) -> None:
    write(tmp_path, "at=0/a.json")
    before = source(tmp_path, "*/*.json").files_of(*seconds(0))
    (tmp_path / "at=0/a.json").write_text("[]")  # of the same length
    after = source(tmp_path, "*/*.json").files_of(*seconds(0))
    assert before[0].file.length == after[0].file.length
    assert before[0].file.identity != after[0].file.identity


def test_a_snapshot_of_which_a_run_knows_the_files_keeps_them(tmp_path) -> None:
    write(tmp_path, "at=0/a.json")
    found = source(tmp_path, "*/*.json")
    first = found.files_of(*seconds(0))
    write(tmp_path, "at=0/b.json")
    assert found.files_of(*seconds(0)) == first
    again = path_snapshots(found.listing.asking(NoOtherFiles()))
    assert again is not None
    assert again.files_of(*seconds(0)) == first
    assert len(source(tmp_path, "*/*.json").files_of(*seconds(0))) == 2


def test_a_snapshot_whose_files_went_after_it_was_enumerated_has_none(tmp_path) -> None:
    write(tmp_path, "at=0/a.json")
    found = source(tmp_path, "*/*.json")
    assert found.listed.times == seconds(0)
    (tmp_path / "at=0/a.json").unlink()
    assert found.files_of(*seconds(0)) == ()


def test_an_older_day_that_arrives_late_is_enumerated(tmp_path) -> None:
    write(tmp_path, f"at={DAY}/a.json")
    assert source(tmp_path, "*/*.json").listed.times == seconds(DAY)
    write(tmp_path, "at=0/a.json")
    assert source(tmp_path, "*/*.json").listed.times == seconds(0, DAY)


def test_a_file_without_bytes_fails_the_snapshot_that_has_it_and_no_other(tmp_path) -> None:
    write(tmp_path, "at=0/a.parquet", f"at={DAY}/a.parquet")
    (tmp_path / "at=0/a.parquet").write_bytes(b"")
    found = source(tmp_path, "*/*.parquet", data_format="parquet")
    assert found.listed.times == seconds(0, DAY)
    assert len(found.files_of(*seconds(DAY))) == 1
    with pytest.raises(SourceNotReadable, match="1 of 1 files have zero bytes"):
        found.files_of(*seconds(0))


def test_folders_of_an_output_are_listed_by_its_manifest(tmp_path) -> None:
    place = tmp_path / "data"
    write(place, "at=0/a.json")
    assert source(place, "*/*.json").listing.folders is not None
    write(tmp_path, "snaploom.json")
    assert source(place, "*/*.json").listing.folders is None

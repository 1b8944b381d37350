"""Whose snapshots are sorted, and how the outcome is shown; without Spark."""

import json
from pathlib import Path

import pytest
from support.declared.shop import Shop, snaploom
from support.storage.folders import a_folder, day, published

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.findings import InvalidDeclarations
from snaploom.plugins.advice.requests import (
    Checksum,
    LeftSnapshot,
    Rewritten,
    SnapshotsSorted,
    SortedSnapshot,
    place_of_folder,
    place_of_output,
)
from snaploom.run.declarations import read_declarations

DONE = SortedSnapshot(day(0), 7, Rewritten(Checksum(1200, 255, -1), 4, 1, 5000, 4000))
GONE = LeftSnapshot(day(1), "it changed meanwhile, deleted", is_failure=True)
EMPTY = LeftSnapshot(day(2), "it has no rows", is_failure=False)


def ignore(message: str) -> None:
    return None


def test_outcome_is_shown_to_people_and_to_programs() -> None:
    result = SnapshotsSorted("file:///out/", "run", (DONE,), (GONE,), ("note",))
    document = json.loads(json.dumps(result.document))
    assert document["snapshots"][0]["checksum"] == "ff-ffffffffffffffff"
    assert document["left"] == [
        {"time": "2020-01-02T00:00:00Z", "message": GONE.why, "failed": True}
    ]
    lines = str(result).splitlines()
    assert lines[0] == "file:///out/: 1 snapshot sorted."
    assert lines[1] == "  2020-01-01T00:00:00Z: 4 files of 5,000 bytes became 1 of 4,000."
    assert lines[-2:] == [f"  2020-01-02T00:00:00Z: not sorted: {GONE.why}", "  note"]


@pytest.mark.parametrize(("left", "is_complete"), [((), True), ((EMPTY,), True), ((GONE,), False)])
def test_only_what_should_have_been_sorted_is_missed(left, is_complete):
    assert SnapshotsSorted("file:///out/", "run", (), left).is_complete == is_complete


def opened(uri: str) -> ObjectStore:
    return open_store(uri, create=False)


@pytest.mark.parametrize("end", ["", "/", "/data", "/data/"])
def test_folder_of_an_output_is_known_by_its_marker(tmp_path: Path, end: str) -> None:
    published(a_folder(open_store(str(tmp_path), create=True)))
    place = place_of_folder(f"{tmp_path}{end}", (("a", "b"),), opened)
    assert (place.folder, place.output, place.settings) == (str(tmp_path), None, (("a", "b"),))


@pytest.mark.parametrize("uri", ["{0}/nothing", "{0}", "table"])
def test_folders_of_others_are_none(tmp_path: Path, uri: str) -> None:
    (tmp_path / "file").write_text("mine")
    assert place_of_folder(uri.format(tmp_path), (), opened) is None


def test_declared_output_brings_its_folder(tmp_path: Path) -> None:
    declarations = read_declarations([Shop(tmp_path).write()])
    place = place_of_output(declarations, "wide", (), ignore)
    assert (place.folder, place.owner) == (f"file://{tmp_path}/wide/", "OutputDataset/wide")
    with pytest.raises(InvalidDeclarations):
        place_of_output(declarations, "nothing", (), ignore)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "twice"),
        (("--acknowledge-readers", "--snapshot", "2020-01-01"), "T00:00:00Z if UTC"),
        (("--file-size", "0"), "so small"),
    ],
)
def test_requests_are_looked_at_before_spark_starts(tmp_path, more, message):
    published(a_folder(open_store(str(tmp_path), create=True)))
    result = snaploom("index", "sort", tmp_path, "--by", "data.id", *more)
    assert (result.code, message in result.err) == (2, True), result.err

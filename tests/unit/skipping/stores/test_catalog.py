"""Finding indexes for what a query reads: near and far, fresh, cheap, and never failing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from support.skipping.indexstores import URI, committed, contents, write
from support.storage.faultystore import Fault, FaultyStore, times

from snaploom.errors import SkippingError
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.stores.catalog import (
    OUTAGE_SECONDS,
    FolderBase,
    IndexCatalog,
    Problem,
    open_base,
    somebody_waits,
    with_above,
)
from snaploom.skipping.stores.port import IndexStore, StoredState


@pytest.fixture
def objects() -> FaultyStore:
    return FaultyStore(ObstoreObjectStore(MemoryStore(), "memory:///"))


@pytest.fixture
def seconds() -> list[float]:
    return [0.0]


@pytest.fixture
def catalog(objects: FaultyStore, seconds: list[float]) -> IndexCatalog:
    return IndexCatalog([FolderBase(objects)], clock=lambda: seconds[0])


def an_index(objects: FaultyStore, uri: str = URI) -> None:
    store = FolderBase(objects).index(uri)
    committed(store, *write(store, {"a": (1, 1)}))


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:/a/b", ["file:/a/b", "file:/a", "file:/"]),
        ("s3a://bucket/a", ["s3a://bucket/a", "s3a://bucket/"]),
        ("file:/", ["file:/"]),
        ("/a", ["/a", "/"]),
        ("file:/a:b/c d%20", ["file:/a:b/c d%20", "file:/a:b", "file:/"]),
    ],
)
def test_folders_above_a_path_are_nearest_first(uri: str, expected: list[str]) -> None:
    assert with_above(uri) == expected


@pytest.mark.parametrize("uri", [URI, f"{URI}/day=1", f"{URI}/day=1/x.parquet"])
def test_index_of_a_folder_above_is_found(
    objects: FaultyStore, catalog: IndexCatalog, uri: str
) -> None:
    an_index(objects)
    (pinned,) = catalog.find([uri]).indexes
    files = catalog.files(pinned)
    assert isinstance(files, FileTable)
    assert contents(files) == {"a": (1, 1)}


def test_other_folders_have_no_index(objects: FaultyStore, catalog: IndexCatalog) -> None:
    an_index(objects)
    assert catalog.find(["file:/data", f"{URI}2", "file:/elsewhere"]).indexes == ()


def test_what_was_read_is_not_read_again_for_a_while(
    objects: FaultyStore, catalog: IndexCatalog, seconds: list[float]
) -> None:
    an_index(objects)
    (pinned,) = catalog.find([URI]).indexes
    files = catalog.files(pinned)
    objects.faults = times(99, Fault.REQUEST_LOST, "get", "")
    (again,) = catalog.find([URI]).indexes
    assert catalog.files(again) is files
    seconds[0] += 10
    assert catalog.find([URI]).problems != ()


def test_commit_of_this_process_is_seen_at_once(
    objects: FaultyStore, catalog: IndexCatalog
) -> None:
    assert catalog.find([URI]).indexes == ()
    an_index(objects)
    assert len(catalog.find([URI]).indexes) == 1


def test_sign_of_life_does_not_make_rows_read_again(
    objects: FaultyStore, catalog: IndexCatalog
) -> None:
    an_index(objects)
    files = catalog.files(catalog.find([URI]).indexes[0])
    FolderBase(objects).index(URI).commit(lambda state: replace(state, message="beat"))
    (pinned,) = catalog.find([URI]).indexes
    assert pinned.state.message == "beat"
    assert catalog.files(pinned) is files


@pytest.mark.parametrize("content", [b"", b"nonsense", b'{"format":99}'])
def test_unreadable_state_is_returned_and_not_raised(
    objects: FaultyStore, catalog: IndexCatalog, content: bytes
) -> None:
    an_index(objects)
    (key,) = [info.key for info in objects.list("") if "manifest" in info.key]
    objects.put(key, content)
    (problem,) = catalog.find([URI]).problems
    assert problem.message.startswith("unreadable: ")


def test_unreadable_rows_are_returned_and_not_raised(
    objects: FaultyStore, catalog: IndexCatalog
) -> None:
    an_index(objects)
    (pinned,) = catalog.find([URI]).indexes
    objects.delete([info.key for info in objects.list("") if "segments" in info.key])
    found = catalog.files(pinned)
    assert isinstance(found, Problem)
    assert "is missing" in found.message


def test_base_of_a_folder_lists_its_indexes(tmp_path: Path) -> None:
    tmp_path.joinpath("foreign").mkdir()
    base = open_base(f"file:{tmp_path}")
    store = base.index(URI)
    committed(store, *write(store, {"a": (1, 1)}))
    assert [found.uri for found in open_base(str(tmp_path)).indexes()] == [store.uri]


def test_base_that_does_not_exist_has_no_indexes(tmp_path: Path) -> None:
    assert open_base(str(tmp_path / "absent")).indexes() == []


class Unanswering(SkippingError):
    """What a remote store raises that is down."""

    retryable = True


class Down:
    """A base of a remote store that is down; behind the port `IndexBase`."""

    uri = "far://store"

    def __init__(self) -> None:
        self.asked = 0

    def index(self, target_uri: str) -> Down:
        return self

    def indexes(self) -> list[IndexStore]:
        return []

    def read(self) -> StoredState:
        self.asked += 1
        assert somebody_waits()
        raise Unanswering("no answer")


def test_place_that_does_not_answer_is_asked_once_in_a_while(
    objects: FaultyStore, seconds: list[float]
) -> None:
    an_index(objects)
    down = Down()
    catalog = IndexCatalog([down, FolderBase(objects)], clock=lambda: seconds[0])
    for at, asked in ((0.0, 1), (5.0, 1), (OUTAGE_SECONDS - 1, 1), (OUTAGE_SECONDS + 1, 2)):
        seconds[0] = at
        found = catalog.find([f"{URI}/day=1"])
        assert (down.asked, len(found.indexes)) == (asked, 1)
        assert found.problems == (Problem("far://store", "unreadable: no answer"),)


def test_nothing_waits_outside_of_queries(objects: FaultyStore, catalog: IndexCatalog) -> None:
    an_index(objects)
    catalog.find([URI])
    assert not somebody_waits()

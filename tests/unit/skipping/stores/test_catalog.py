"""Finding indexes for what a query reads: near and far, fresh, cheap, and never failing."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from support.skipping.indexstores import URI, committed, contents, definition, write
from support.storage.faultystore import Fault, FaultyStore, times

from snaploom.errors import FolderNotWritable, SkippingError
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, now
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.description import describe, describe_usage
from snaploom.skipping.spark.optimizer.usage import IndexOutcome, RelationOutcome, UsageRecorder
from snaploom.skipping.stores.catalog import (
    OUTAGE_SECONDS,
    FolderBase,
    IndexCatalog,
    Problem,
    open_base,
    somebody_waits,
    with_above,
)
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState
from snaploom.skipping.stores.usage import (
    KEPT_DAYS,
    MOST_REASONS,
    OTHER_REASONS,
    Usage,
    UsageLog,
    usage_log,
    with_reasons,
)


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
def test_index_of_a_folder_above_is_found(objects, catalog, uri):
    an_index(objects)
    (pinned,) = catalog.find([uri]).indexes
    files = catalog.files(pinned)
    assert isinstance(files, FileTable)
    assert contents(files) == {"a": (1, 1)}


def test_other_folders_have_no_index(objects: FaultyStore, catalog: IndexCatalog) -> None:
    an_index(objects)
    assert catalog.find(["file:/data", f"{URI}2", "file:/elsewhere"]).indexes == ()


def test_what_was_read_is_not_read_again_for_a_while(objects, catalog, seconds):
    an_index(objects)
    (pinned,) = catalog.find([URI]).indexes
    files = catalog.files(pinned)
    objects.faults = times(99, Fault.REQUEST_LOST, "get", "")
    (again,) = catalog.find([URI]).indexes
    assert catalog.files(again) is files
    seconds[0] += 10
    assert catalog.find([URI]).problems != ()


def test_commit_of_this_process_is_seen_at_once(objects, catalog):
    assert catalog.find([URI]).indexes == ()
    an_index(objects)
    assert len(catalog.find([URI]).indexes) == 1


def test_sign_of_life_does_not_make_rows_read_again(objects, catalog):
    an_index(objects)
    files = catalog.files(catalog.find([URI]).indexes[0])
    FolderBase(objects).index(URI).commit(lambda state: replace(state, message="beat"))
    (pinned,) = catalog.find([URI]).indexes
    assert pinned.state.message == "beat"
    assert catalog.files(pinned) is files


@pytest.mark.parametrize("content", [b"", b"nonsense", b'{"format":99}'])
def test_unreadable_state_is_returned_and_not_raised(objects, catalog, content):
    an_index(objects)
    (key,) = [info.key for info in objects.list("") if "manifest" in info.key]
    objects.put(key, content)
    (problem,) = catalog.find([URI]).problems
    assert problem.message.startswith("unreadable: ")


def test_unreadable_rows_are_returned_and_not_raised(objects, catalog):
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


def test_place_that_does_not_answer_is_asked_once_in_a_while(objects, seconds):
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


DAYS = 86_400 * 10**9
READ = RelationOutcome("t", "estimate", files=10, bytes=1000, kept_files=4, kept_bytes=400)
DROPPING = IndexOutcome("", URI, is_used=True, dropped=6, dropped_bytes=600, seconds=0.25)
IDLE = IndexOutcome("", URI, unused=("the reader has changed: x",))


def made(folder: Path) -> IndexStore:
    store = open_base(str(folder)).index(URI)
    store.commit(lambda state: StoredState(state.version, definition=definition()))
    return store


def log_of(store: IndexStore) -> UsageLog:
    log = usage_log(store)
    assert log is not None
    return log


def test_sums_of_sessions_are_added_up(tmp_path: Path) -> None:
    store = made(tmp_path)
    for _ in range(2):
        recorder = UsageRecorder(clock=lambda: EpochNanos(7))
        recorder.add(store, DROPPING, READ)
        recorder.add(store, IDLE, READ)
        recorder.close()
    recorded = log_of(store).read()
    assert recorded.sessions == 2
    assert recorded.total == Usage(
        reads=2, served=2, files=20, dropped_files=12, bytes=2000, dropped_bytes=1200, seconds=0.5,
        first_used=EpochNanos(7), last_used=EpochNanos(7), why_not={IDLE.unused[0]: 2},
    )  # fmt: skip
    assert describe(store).last_used == 7


def test_a_session_replaces_its_own_note(tmp_path: Path) -> None:
    store = made(tmp_path)
    recorder = UsageRecorder()
    for _ in range(3):
        recorder.add(store, DROPPING, READ)
        recorder.flush()
    recorder.close()
    recorded = log_of(store).read()
    assert (recorded.sessions, recorded.total.reads) == (1, 3)


def test_what_is_evaluated_only_is_no_use(tmp_path: Path) -> None:
    store = made(tmp_path)
    recorder = UsageRecorder()
    recorder.add(store, DROPPING, RelationOutcome("t", "estimate", is_evaluated_only=True))
    recorder.close()
    assert log_of(store).read().sessions == 0
    assert describe(store).last_used == NEVER


def test_a_read_only_place_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    tried = []

    def refuse(self: UsageLog, session: str, usage: Usage) -> None:
        tried.append(session)
        raise FolderNotWritable("read only")

    monkeypatch.setattr(UsageLog, "write", refuse)
    recorder = UsageRecorder()
    for _ in range(3):
        recorder.add(store, DROPPING, READ)
        recorder.flush()
    recorder.close()
    assert len(tried) == 1


def test_what_was_removed_is_not_made_again(tmp_path: Path) -> None:
    store = made(tmp_path)
    recorder = UsageRecorder()
    recorder.add(store, DROPPING, READ)
    recorder.flush()
    recorder.add(store, DROPPING, READ)
    operations.drop(store)
    operations.vacuum(store)
    recorder.close()
    assert not list(tmp_path.rglob("usage/*"))


def test_notes_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    log = log_of(made(tmp_path))
    log.write("good", Usage(reads=1))
    (note,) = tmp_path.rglob("usage/good.json")
    note.with_name("torn.json").write_text('{"format": 1, "usa')
    newer = {**json.loads(note.read_text()), "format": 99}
    note.with_name("newer.json").write_text(json.dumps(newer))
    recorded = log.read()
    assert (recorded.total, recorded.left_out) == (Usage(reads=1), 2)


def test_old_notes_go_and_the_newest_stays(tmp_path: Path) -> None:
    log = log_of(made(tmp_path))
    log.write("a", Usage(reads=1))
    log.write("b", Usage(reads=2))
    log.sweep(EpochNanos(now() + (KEPT_DAYS - 1) * DAYS))
    assert log.read().sessions == 2
    log.sweep(EpochNanos(now() + (KEPT_DAYS + 1) * DAYS))
    assert log.read().total == Usage(reads=2)


def test_reasons_are_bounded() -> None:
    usage = sum((with_reasons(Usage(), [f"reason {n}"]) for n in range(MOST_REASONS + 5)), Usage())
    assert len(usage.why_not) == MOST_REASONS + 1
    assert usage.why_not[OTHER_REASONS] == 5


def test_a_damaged_index_still_shows_its_usage(tmp_path: Path) -> None:
    store = made(tmp_path)
    log_of(store).write("a", Usage(reads=1))
    for state in tmp_path.rglob("manifest/*.json"):
        state.chmod(stat.S_IRUSR | stat.S_IWUSR)
        state.write_text("{")
    used = describe_usage(open_base(str(tmp_path)).index(URI))
    assert "damaged" in used.problem
    assert used.recorded.total.reads == 1


def test_a_folder_that_is_not_there_has_no_usage(tmp_path: Path) -> None:
    log = UsageLog(open_store(str(tmp_path / "none"), create=False), "x/")
    assert log.read().sessions == 0
    assert log.last_used() == NEVER

"""Notes about what queries made of an index."""

import json
import stat
from pathlib import Path

import pytest
from support.skipping.indexstores import URI, definition

from snaploom.errors import FolderNotWritable
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, now
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.description import describe, describe_usage
from snaploom.skipping.spark.optimizer.usage import IndexOutcome, RelationOutcome, UsageRecorder
from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState
from snaploom.skipping.stores.usage import (
    KEPT_DAYS,
    MOST_REASONS,
    OTHER_REASONS,
    Usage,
    UsageLog,
    add_up,
    usage_log,
    with_reasons,
)

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
    usage = add_up(with_reasons(Usage(), [f"reason {n}"]) for n in range(MOST_REASONS + 5))
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
    assert used.recorded is not None
    assert used.recorded.total.reads == 1


def test_a_folder_that_is_not_there_has_no_usage(tmp_path: Path) -> None:
    log = UsageLog(open_store(str(tmp_path / "none"), create=False), "x/")
    assert log.read().sessions == 0
    assert log.last_used() == NEVER

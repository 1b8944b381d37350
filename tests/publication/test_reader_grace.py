"""`snaploom gc` keeps files for the grace of readers, which an output stores in its folder."""

from pathlib import Path

import pytest
from support.declared.shop import CommandResult, assert_one_error, snaploom
from support.storage.folders import (
    IDENTITY,
    SETTINGS,
    a_folder,
    a_run,
    day,
    files_on_disk,
    now,
    published,
)

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import TimeOffset, format_instant
from snaploom.output.checkpoints import format_checkpoint, parse_checkpoint
from snaploom.output.entries import Tombstone
from snaploom.output.folder import open_folder, prepare_folder
from snaploom.output.state import FolderState, Records, tombstone_of


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path), create=True)


def declared(store: ObjectStore, grace: TimeOffset | None) -> FolderState:
    return prepare_folder(store, SETTINGS, IDENTITY, a_run(), reader_grace=grace).log.read()


def with_a_deleted_snapshot(store: ObjectStore, grace: TimeOffset | None) -> None:
    declared(store, grace)
    folder = a_folder(store)
    published(folder)

    def tombstone(state: FolderState) -> Tombstone:
        ended = tombstone_of(state.live[day(0)], seq=state.next_seq, rule="X", deleted_at=now())
        return Tombstone(
            seq=state.next_seq, run_id=a_run().run_id, written_at=now(), tool_version="0",
            snapshots=(ended,),
        )  # fmt: skip

    folder.log.commit(tombstone)


def collected(store: ObjectStore, *arguments: str) -> CommandResult:
    return snaploom("gc", store.uri.removeprefix("file://"), *arguments)


@pytest.mark.parametrize(
    ("grace", "arguments", "code", "is_left"),
    [
        (TimeOffset(day=1), (), 0, True),
        (TimeOffset(nano=1), (), 0, False),
        (None, (), 0, True),
        (TimeOffset(day=1), ("--grace", "2d"), 0, True),
        (TimeOffset(day=1), ("--grace", "0s"), 2, True),
        (None, ("--grace", "0s"), 2, True),
        (TimeOffset(day=1), ("--grace", "0s", "--below-reader-grace"), 0, False),
    ],
)
def test_files_of_a_deleted_snapshot_stay_as_long_as_was_promised(
    tmp_path: Path,
    store: ObjectStore,
    grace: TimeOffset | None,
    arguments: tuple[str, ...],
    code: int,
    is_left: bool,
) -> None:
    with_a_deleted_snapshot(store, grace)
    result = collected(store, *arguments)
    assert result.code == code, result.err
    assert bool(files_on_disk(tmp_path)) is is_left


def test_what_was_known_of_a_deleted_snapshot_is_kept_for_the_grace(store: ObjectStore) -> None:
    with_a_deleted_snapshot(store, TimeOffset(nano=1))
    (ended,) = open_folder(store).log.read().ended
    past = ("files", store.uri.removeprefix("file://"), "--known-at", "2020-06-01T00:00:00Z")
    assert len(snaploom(*past).out.splitlines()) == 2
    assert collected(store).code == 0
    since = f"a time from {format_instant(ended.deleted_at)} on"
    for at in ((), ("--at", "2020-01-05T00:00:00Z")):
        assert_one_error(snaploom(*past, *at), "known at 2020-06-01T00:00:00Z are removed", since)
    past = (*past[:-1], format_instant(ended.deleted_at))
    assert_one_error(snaploom(*past), "had no snapshot", "all that was published had been deleted")


def test_grace_that_is_too_short_is_an_error_with_the_promised_grace(store: ObjectStore) -> None:
    with_a_deleted_snapshot(store, TimeOffset(day=1, hour=2))
    message = " ".join(collected(store, "--grace", "1h").err.split())
    assert "at least 1 day, 2:00:00, the readerGrace of the output" in message
    assert "--below-reader-grace" in message


def test_folder_stores_the_grace_of_the_publisher(store: ObjectStore) -> None:
    first, second = TimeOffset(hour=1), TimeOffset(day=2)
    assert (declared(store, first).reader_grace, declared(store, first).seq) == (first, 1)
    assert (declared(store, second).reader_grace, declared(store, None).seq) == (second, 2)
    state = declared(store, None)
    assert state.reader_grace == second
    assert parse_checkpoint(format_checkpoint(state), 2, Records()).reader_grace == second

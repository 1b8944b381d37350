"""Real processes that are killed, and real processes that race."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.storage.folders import (
    DAY,
    a_folder,
    a_run,
    day,
    files_on_disk,
    keys,
    now,
    published,
    replaced,
)
from support.storage.processes import (
    answers_of_racing,
    collect_once,
    exit_code,
    publish_in_a_table_once,
    publish_many,
    publish_once,
    remove_once,
    replace_many,
    replace_once,
)
from support.storage.tablefolders import is_whole, published_in_table, table_folder

from snaploom.files.objectstore import TEMPORARY_PREFIX
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.gc import Verdict, collect_garbage, find_garbage
from snaploom.output.publication import AlreadyPublished, Published

PUBLISHING = [
    CrashPoint.AFTER_MARKER,
    CrashPoint.BEFORE_STAGING,
    CrashPoint.AFTER_STAGING,
    CrashPoint.DURING_PROMOTION,
    CrashPoint.AFTER_PROMOTION,
    CrashPoint.AFTER_COMMIT,
]
REPLACING = [point for point in PUBLISHING if point is not CrashPoint.AFTER_MARKER]
COLLECTING = [CrashPoint.AFTER_REVOCATION, CrashPoint.DURING_DELETION]
OF_TABLES = [CrashPoint.AFTER_TABLE_COMMIT]
REMOVING = [CrashPoint.REMOVAL_BEGUN, *COLLECTING]


def open_again(root: Path) -> Folder:
    return a_folder(open_store(str(root), create=True))


def collect_all(folder: Folder) -> set[str]:
    """Collect as of tomorrow; what was found."""
    garbage = find_garbage(folder.store, folder.log.read(), EpochNanos(now() + DAY), DAY // 2)
    assert all(item.verdict is Verdict.REMOVE for item in garbage)
    collect_garbage(folder, garbage, a_run())
    return {item.key for item in garbage}


def test_every_crash_point_is_tried() -> None:
    assert {*PUBLISHING, *REMOVING, *OF_TABLES} == set(CrashPoint)


def test_run_that_is_killed_after_its_commit_to_a_table_has_published(tmp_path: Path) -> None:
    (point,) = OF_TABLES
    assert exit_code(publish_in_a_table_once, tmp_path, point) == -signal.SIGKILL
    store = open_store(str(tmp_path), create=False)
    assert not open_folder(store).log.read().live
    assert isinstance(published_in_table(table_folder(store), 0), AlreadyPublished)
    assert is_whole(store)


@pytest.mark.parametrize("point", PUBLISHING)
def test_run_after_a_killed_one_publishes_exactly_once(tmp_path: Path, point: CrashPoint) -> None:
    assert exit_code(publish_once, tmp_path, point) == -signal.SIGKILL
    folder = open_again(tmp_path)
    outcome = published(folder)
    was_committed = point is CrashPoint.AFTER_COMMIT
    assert isinstance(outcome, AlreadyPublished if was_committed else Published)
    state = folder.log.read()
    assert set(state.live) == {day(0)}
    leftovers = keys(folder.store) - state.live_files
    assert collect_all(folder) == leftovers
    assert files_on_disk(tmp_path) == set(state.live_files)
    assert len(state.live_files) == 2
    assert list((tmp_path / "data/.staging").iterdir()) == []


@pytest.mark.parametrize("point", REPLACING)
def test_killed_replacement_leaves_one_whole_version_live(
    tmp_path: Path, point: CrashPoint
) -> None:
    first = published(open_again(tmp_path)).record
    assert exit_code(replace_once, tmp_path, point) == -signal.SIGKILL
    folder = open_again(tmp_path)
    state = folder.log.read()
    was_committed = point is CrashPoint.AFTER_COMMIT
    assert (state.live[day(0)] == first) != was_committed
    assert state.live_files <= files_on_disk(tmp_path)
    again = replaced(folder)
    leftovers = keys(folder.store) - {file.path for file in again.record.files}
    assert {file.path for file in first.files} <= leftovers
    assert collect_all(folder) == leftovers
    assert files_on_disk(tmp_path) == {file.path for file in again.record.files}
    assert list((tmp_path / "data/.staging").iterdir()) == []


@pytest.mark.parametrize("point", COLLECTING)
def test_collection_after_a_killed_one_finishes(tmp_path: Path, point: CrashPoint) -> None:
    published(open_again(tmp_path), 1)
    assert exit_code(publish_once, tmp_path, CrashPoint.AFTER_PROMOTION) == -signal.SIGKILL
    assert exit_code(collect_once, tmp_path, point) == -signal.SIGKILL
    assert exit_code(collect_once, tmp_path, None) == 0
    folder = open_again(tmp_path)
    state = folder.log.read()
    assert keys(folder.store) == state.live_files
    assert len(state.live_files) == 2


@pytest.mark.parametrize("point", REMOVING)
def test_removal_after_a_killed_one_finishes(tmp_path: Path, point: CrashPoint) -> None:
    published(open_again(tmp_path), 1)
    assert exit_code(publish_once, tmp_path, CrashPoint.AFTER_PROMOTION) == -signal.SIGKILL
    assert exit_code(remove_once, tmp_path, point) == -signal.SIGKILL
    assert exit_code(remove_once, tmp_path, None) == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_processes_that_publish_the_same_snapshots_publish_each_once(tmp_path: Path) -> None:
    numbers = list(range(5))
    results = answers_of_racing(publish_many, tmp_path, numbers, processes=4)
    folder = open_again(tmp_path)
    state = folder.log.read()
    winners = {number: state.live[day(number)].run_id for number in numbers}
    assert state.seq == 1 + len(numbers)
    for number, own, winner, won in results:
        assert winner == winners[number]
        assert won == (own == winner)
    assert keys(folder.store) == state.live_files
    assert keys(folder.store, TEMPORARY_PREFIX) == set()


def test_processes_that_replace_the_same_versions_replace_each_once(tmp_path: Path) -> None:
    numbers = list(range(4))
    for number in numbers:
        published(open_again(tmp_path), number)
    results = answers_of_racing(replace_many, tmp_path, numbers, processes=3)
    folder = open_again(tmp_path)
    state = folder.log.read()
    won = {number: run_id for number, run_id, has_won in results if has_won}
    assert sorted(number for number, _, has_won in results if has_won) == numbers
    assert {number: state.live[day(number)].run_id for number in numbers} == won
    assert keys(folder.store) == state.live_files | set(state.tombstoned_files)
    assert len(state.tombstones) == len(numbers)

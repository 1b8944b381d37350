"""Real processes that are killed, and real processes that race, on a disk and in a bucket.

`make prove` makes hundreds of rounds of kills at any moment; else there are a few.
"""

import random
import secrets
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from support.runner.proofscope import IS_WHOLE
from support.servers.s3servers import BUCKET, S3Server, environment_of
from support.storage import folders, processes, tablefolders
from support.storage.tablefolders import is_whole, published_in_table, table_folder

from snaploom.files.objectstore import TEMPORARY_PREFIX
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.gc import Verdict, collect_garbage, find_garbage
from snaploom.output.publication import AlreadyPublished, Published

ROUNDS = 300 if IS_WHOLE else 6
"""Kills at any moment."""

RACERS = 20 if IS_WHOLE else 4
"""Processes that publish the same snapshots at the same moment."""

MOST_WRITES = 20
"""Writes of a day's work: the fewest that one makes when it finds the folder begun."""

LONGEST_WRITE = 0.01
"""Seconds that a write to a server on this machine takes at most."""

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
IN_A_BUCKET = [*PUBLISHING[2:]]
"""Crash points where a bucket differs from a disk, on which all are tried."""


@pytest.fixture
def bucket(versitygw: S3Server) -> Iterator[str]:
    with environment_of(versitygw):
        yield f"s3://{BUCKET}/{secrets.token_hex(8)}/"


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def on_each(disk: Sequence[object], in_a_bucket: Sequence[object]) -> pytest.MarkDecorator:
    cases = [("tmp_path", each) for each in disk] + [("bucket", each) for each in in_a_bucket]
    return pytest.mark.parametrize(("place", "point"), cases, indirect=["place"])


def open_again(place: str | Path) -> Folder:
    return folders.a_folder(open_store(str(place), create=True))


def collect_all(folder: Folder) -> set[str]:
    """Collect as of tomorrow, which leaves what is live and nothing else; what was found."""
    garbage = find_garbage(
        folder.store, folder.log.read(), EpochNanos(folders.now() + folders.DAY), folders.DAY // 2
    )
    assert all(item.verdict is Verdict.REMOVE for item in garbage)
    collect_garbage(folder, garbage, folders.a_run())
    assert folders.keys(folder.store) == folder.log.read().live_files
    assert folders.keys(folder.store, TEMPORARY_PREFIX) == set()
    if not folder.store.uri.startswith("s3"):
        root = Path(folder.store.uri.removeprefix("file://"))
        assert folders.files_on_disk(root) == set(folder.log.read().live_files)
        assert list((root / "data/.staging").iterdir()) == []
    return {item.key for item in garbage}


def test_every_crash_point_is_tried() -> None:
    assert {*PUBLISHING, *REMOVING, *OF_TABLES} == set(CrashPoint)


@pytest.mark.parametrize("settings", [tablefolders.TABLE, tablefolders.DELTA])
@pytest.mark.parametrize("place", ["tmp_path", "bucket"], indirect=True)
def test_run_that_is_killed_after_its_commit_to_a_table_has_published(place, settings, monkeypatch):
    monkeypatch.setattr(tablefolders, "TABLE", settings)
    publish = partial(processes.publish_in_a_table_once, settings=settings)
    (point,) = OF_TABLES
    code = processes.exit_code(publish, place, point)
    assert code == -signal.SIGKILL
    store = open_store(place, create=False)
    assert not open_folder(store).log.read().live
    assert isinstance(published_in_table(table_folder(store), 0), AlreadyPublished)
    assert is_whole(store)


@on_each(PUBLISHING, IN_A_BUCKET)
def test_run_after_a_killed_one_publishes_exactly_once(place: str, point: CrashPoint) -> None:
    assert processes.exit_code(processes.publish_once, place, point) == -signal.SIGKILL
    folder = open_again(place)
    outcome = folders.published(folder)
    was_committed = point is CrashPoint.AFTER_COMMIT
    assert isinstance(outcome, AlreadyPublished if was_committed else Published)
    state = folder.log.read()
    assert set(state.live) == {folders.day(0)}
    assert len(state.live_files) == 2
    leftovers = folders.keys(folder.store) - state.live_files
    assert collect_all(folder) == leftovers


@on_each(REPLACING, [CrashPoint.AFTER_PROMOTION, CrashPoint.AFTER_COMMIT])
def test_killed_replacement_leaves_one_whole_version_live(place: str, point: CrashPoint) -> None:
    first = folders.published(open_again(place)).record
    assert processes.exit_code(processes.replace_once, place, point) == -signal.SIGKILL
    folder = open_again(place)
    state = folder.log.read()
    assert (state.live[folders.day(0)] == first) != (point is CrashPoint.AFTER_COMMIT)
    assert state.live_files <= folders.keys(folder.store)
    again = folders.replaced(folder)
    leftovers = folders.keys(folder.store) - {file.path for file in again.record.files}
    assert {file.path for file in first.files} <= leftovers
    assert collect_all(folder) == leftovers


@on_each(COLLECTING, COLLECTING)
def test_collection_after_a_killed_one_finishes(place: str, point: CrashPoint) -> None:
    folders.published(open_again(place), 1)
    code = processes.exit_code(processes.publish_once, place, CrashPoint.AFTER_PROMOTION)
    assert code == -signal.SIGKILL
    assert processes.exit_code(processes.collect_once, place, point) == -signal.SIGKILL
    assert processes.exit_code(processes.collect_once, place, None) == 0
    folder = open_again(place)
    collect_all(folder)
    assert len(folder.log.read().live_files) == 2


@pytest.mark.parametrize("point", REMOVING)
def test_removal_after_a_killed_one_finishes(tmp_path: Path, point: CrashPoint) -> None:
    folders.published(open_again(tmp_path), 1)
    code = processes.exit_code(processes.publish_once, tmp_path, CrashPoint.AFTER_PROMOTION)
    assert code == -signal.SIGKILL
    assert processes.exit_code(processes.remove_once, tmp_path, point) == -signal.SIGKILL
    assert processes.exit_code(processes.remove_once, tmp_path, None) == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@on_each([4], [RACERS])
def test_processes_that_publish_the_same_snapshots_publish_each_once(place, point):
    numbers = list(range(5))
    results = processes.answers_of_racing(processes.publish_many, place, numbers, processes=point)
    folder = open_again(place)
    state = folder.log.read()
    winners = {number: state.live[folders.day(number)].run_id for number in numbers}
    assert state.seq == 1 + len(numbers)
    for number, own, winner, won in results:
        assert winner == winners[number]
        assert won == (own == winner)
    assert folders.keys(folder.store) == state.live_files
    assert folders.keys(folder.store, TEMPORARY_PREFIX) == set()


@on_each([3], [RACERS])
def test_processes_that_replace_the_same_versions_replace_each_once(place: str, point: int) -> None:
    numbers = list(range(4 if point == 3 else 2))
    for number in numbers:
        folders.published(open_again(place), number)
    results = processes.answers_of_racing(processes.replace_many, place, numbers, processes=point)
    folder = open_again(place)
    state = folder.log.read()
    won = {number: run_id for number, run_id, has_won in results if has_won}
    assert sorted(number for number, _, has_won in results if has_won) == numbers
    assert {number: state.live[folders.day(number)].run_id for number in numbers} == won
    assert folders.keys(folder.store) == state.live_files | set(state.tombstoned_files)
    assert len(state.tombstones) == len(numbers)


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_kills_at_any_moment_lose_nothing_and_publish_nothing_twice(bucket: str) -> None:
    chance = random.Random(ROUNDS)
    for number in range(ROUNDS):
        before = open_again(bucket).log.read().live
        moment = (chance.randint(1, MOST_WRITES), chance.uniform(0, LONGEST_WRITE))
        victim = processes.SPAWN.Process(
            target=processes.work_and_be_killed, args=(bucket, number, *moment)
        )
        victim.start()
        victim.join(processes.DEADLINE)
        assert victim.exitcode == -signal.SIGKILL
        after_kill = open_again(bucket)
        assert after_kill.log.read().live_files <= folders.keys(after_kill.store)
        processes.work_a_day(after_kill.store, number)
        folder = open_again(bucket)
        live = folder.log.read().live
        assert set(live) == {folders.day(each) for each in range(number + 1)}
        assert {time: live[time] for time in before} == before
        collect_all(folder)

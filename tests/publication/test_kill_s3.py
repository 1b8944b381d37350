"""Processes that are really killed while they publish into a bucket.

`make prove` makes hundreds of rounds of kills at any moment; else there are a few.
"""

from __future__ import annotations

import random
import secrets
import signal
from collections.abc import Iterator

import pytest
from support.runner.proofscope import IS_WHOLE
from support.servers.s3servers import BUCKET, S3Server, environment_of
from support.storage.folders import DAY, a_folder, a_run, day, keys, now, published
from support.storage.processes import (
    DEADLINE,
    SPAWN,
    answers_of_racing,
    collect_once,
    exit_code,
    publish_many,
    publish_once,
    replace_many,
    replace_once,
    work_a_day,
    work_and_be_killed,
)

from snaploom.files.objectstore import TEMPORARY_PREFIX
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.folder import CrashPoint, Folder
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

POINTS = [
    CrashPoint.AFTER_STAGING,
    CrashPoint.DURING_PROMOTION,
    CrashPoint.AFTER_PROMOTION,
    CrashPoint.AFTER_COMMIT,
]
"""Crash points where a bucket differs from a disk, on which all are tried."""


@pytest.fixture
def bucket(versitygw: S3Server) -> Iterator[str]:
    """URI of a folder of its own."""
    with environment_of(versitygw):
        yield f"s3://{BUCKET}/{secrets.token_hex(8)}/"


def open_again(uri: str) -> Folder:
    return a_folder(open_store(uri, create=True))


def collect_all(folder: Folder) -> None:
    """Collect as of tomorrow; afterwards there is what is live, and nothing else."""
    found = find_garbage(folder.store, folder.log.read(), EpochNanos(now() + DAY), DAY // 2)
    assert all(item.verdict is Verdict.REMOVE for item in found)
    collect_garbage(folder, found, a_run())
    assert keys(folder.store) == folder.log.read().live_files
    assert keys(folder.store, TEMPORARY_PREFIX) == set()


@pytest.mark.parametrize("point", POINTS)
def test_run_after_a_killed_one_publishes_exactly_once(bucket: str, point: CrashPoint) -> None:
    assert exit_code(publish_once, bucket, point) == -signal.SIGKILL
    folder = open_again(bucket)
    outcome = published(folder)
    was_committed = point is CrashPoint.AFTER_COMMIT
    assert isinstance(outcome, AlreadyPublished if was_committed else Published)
    assert set(folder.log.read().live) == {day(0)}
    collect_all(folder)


@pytest.mark.parametrize("point", [CrashPoint.AFTER_PROMOTION, CrashPoint.AFTER_COMMIT])
def test_killed_replacement_leaves_one_whole_version_live(bucket: str, point: CrashPoint) -> None:
    first = published(open_again(bucket)).record
    assert exit_code(replace_once, bucket, point) == -signal.SIGKILL
    folder = open_again(bucket)
    state = folder.log.read()
    assert (state.live[day(0)] == first) != (point is CrashPoint.AFTER_COMMIT)
    assert state.live_files <= keys(folder.store)
    collect_all(folder)


@pytest.mark.parametrize("point", [CrashPoint.AFTER_REVOCATION, CrashPoint.DURING_DELETION])
def test_collection_after_a_killed_one_finishes(bucket: str, point: CrashPoint) -> None:
    published(open_again(bucket), 1)
    assert exit_code(publish_once, bucket, CrashPoint.AFTER_PROMOTION) == -signal.SIGKILL
    assert exit_code(collect_once, bucket, point) == -signal.SIGKILL
    collect_all(open_again(bucket))


def test_processes_that_publish_the_same_snapshots_publish_each_once(bucket: str) -> None:
    numbers = list(range(5))
    results = answers_of_racing(publish_many, bucket, numbers, RACERS)
    folder = open_again(bucket)
    state = folder.log.read()
    winners = {number: state.live[day(number)].run_id for number in numbers}
    assert state.seq == 1 + len(numbers)
    for number, own, winner, won in results:
        assert winner == winners[number]
        assert won == (own == winner)
    assert keys(folder.store) == state.live_files


def test_processes_that_replace_the_same_versions_replace_each_once(bucket: str) -> None:
    numbers = list(range(2))
    for number in numbers:
        published(open_again(bucket), number)
    results = answers_of_racing(replace_many, bucket, numbers, RACERS)
    folder = open_again(bucket)
    state = folder.log.read()
    assert sorted(number for number, _, has_won in results if has_won) == numbers
    won = {number: run_id for number, run_id, has_won in results if has_won}
    assert {number: state.live[day(number)].run_id for number in numbers} == won
    assert keys(folder.store) == state.live_files | set(state.tombstoned_files)


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_kills_at_any_moment_lose_nothing_and_publish_nothing_twice(bucket: str) -> None:
    chance = random.Random(ROUNDS)
    for number in range(ROUNDS):
        before = open_again(bucket).log.read().live
        moment = (chance.randint(1, MOST_WRITES), chance.uniform(0, LONGEST_WRITE))
        victim = SPAWN.Process(target=work_and_be_killed, args=(bucket, number, *moment))
        victim.start()
        victim.join(DEADLINE)
        assert victim.exitcode == -signal.SIGKILL
        after_kill = open_again(bucket)
        assert after_kill.log.read().live_files <= keys(after_kill.store)
        work_a_day(after_kill.store, number)
        folder = open_again(bucket)
        live = folder.log.read().live
        assert set(live) == {day(each) for each in range(number + 1)}
        assert {time: live[time] for time in before} == before
        collect_all(folder)

"""Processes that are suspended and resume late; clocks that are wrong by minutes to days.

A process that resumes late finds that it was revoked, or does what no longer matters (rules P10,
P11). With wrong clocks, living runs are revoked at worst: nothing live is lost, and nothing is
published twice (rule P18).
"""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declared.declarations import output as declared_output
from support.declared.declarations import parsed
from support.storage import processes
from support.storage.folders import (
    DAY,
    a_folder,
    a_run,
    a_target,
    agrees,
    day,
    keys,
    now,
    published,
    writes,
)

from snaploom.errors import RunRevoked
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.models.outputdataset import OutputDataset
from snaploom.output.entries import Tombstone
from snaploom.output.folder import CrashPoint, Folder, Run, open_folder
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.output.publication import AlreadyPublished, Published, publish
from snaploom.output.state import FolderState, tombstone_of
from snaploom.run.weaving.history import delete_old_snapshots

HOUR = 3600 * 10**9
SKEWS = (-3 * DAY, -HOUR, -60 * 10**9, 0, 60 * 10**9, HOUR, 3 * DAY)
"""From clocks that are days behind to clocks that are days ahead."""


def collect(store: ObjectStore, skew: int) -> None:
    """Collect garbage by a clock that is wrong by so much, with a grace of half a day."""
    folder = open_folder(store)
    found = find_garbage(store, folder.log.read(), EpochNanos(now() + skew), DAY // 2)
    collect_garbage(folder, found, a_run())


def woken(folder: Folder, root: Path, what: str, point: CrashPoint) -> int:
    """Let a process stop itself at a point, let others act, and wake it; how it ended."""
    process = processes.SPAWN.Process(target=processes.stop_in_the_middle, args=(root, what, point))
    process.start()
    try:
        processes.wait_until_stopped(process)
        collect(folder.store, DAY)
        published(open_folder(folder.store))
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGCONT)
        process.join(processes.DEADLINE)
    assert process.exitcode is not None
    return process.exitcode


@pytest.mark.parametrize(
    ("point", "ending"),
    [
        (CrashPoint.AFTER_STAGING, processes.REVOKED),
        (CrashPoint.DURING_PROMOTION, processes.REVOKED),
        # All that is left to do is the commit, and that finds the snapshot published.
        (CrashPoint.AFTER_PROMOTION, 0),
    ],
)
def test_promotion_by_a_process_that_slept_harms_nothing(tmp_path, point, ending):
    folder = a_folder(open_store(str(tmp_path), create=True))
    assert woken(folder, tmp_path, "publish", point) == ending
    state = open_folder(folder.store).log.read()
    assert [record.seq for record in state.snapshots] == [3]
    assert keys(folder.store) == state.live_files


@pytest.mark.parametrize("point", [CrashPoint.AFTER_REVOCATION, CrashPoint.DURING_DELETION])
def test_deletion_by_a_process_that_slept_harms_nothing(tmp_path: Path, point: CrashPoint) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    assert (
        processes.exit_code(processes.publish_once, tmp_path, CrashPoint.AFTER_PROMOTION)
        == -signal.SIGKILL
    )
    assert woken(folder, tmp_path, "collect", point) == 0
    state = open_folder(folder.store).log.read()
    assert set(state.live) == {day(0)}
    assert keys(folder.store) == state.live_files


def skewed(skew: int) -> Run:
    """A run whose clock is wrong."""
    run = a_run()
    return Run(run.run_id, run.tool_version, lambda: EpochNanos(now() + skew))


def test_twenty_writers_with_twenty_clocks_publish_each_snapshot_once(store: ObjectStore) -> None:
    a_folder(store)

    def work(number: int) -> list[str]:
        run, outcomes = skewed(SKEWS[number % len(SKEWS)]), []
        for at in range(3):
            try:
                outcome = publish(
                    open_folder(store),
                    run,
                    a_target(at),
                    writes(store),
                    agrees,
                    leftover_grace=HOUR,
                )
            except RunRevoked:
                return [*outcomes, "revoked"]
            outcomes.append("published" if isinstance(outcome, Published) else "already")
        return outcomes

    with ThreadPoolExecutor(20) as pool:
        outcomes = [answer for answers in pool.map(work, range(20)) for answer in answers]
    state = open_folder(store).log.read()
    assert outcomes.count("published") == len(state.live)
    # A run that is revoked because of a fast clock runs again, as its error advises.
    for at in range(3):
        publish(open_folder(store), skewed(0), a_target(at), writes(store), agrees)
    state = open_folder(store).log.read()
    assert set(state.live) == {day(0), day(1), day(2)}
    assert state.live_files <= keys(store)
    collect(store, 2 * DAY)
    assert keys(store) == state.live_files


actions = st.tuples(
    st.sampled_from(["publish", "pause", "prune", "collect"]),
    st.integers(0, 2),
    st.sampled_from(SKEWS),
)


@settings(max_examples=40)
@given(st.lists(actions, min_size=2, max_size=8))
def test_no_wrong_clock_loses_what_is_live_or_publishes_it_twice(steps):
    store = open_store("memory:", create=True)
    a_folder(store)
    expected: dict[int, str] = {}
    ended: set[str] = set()
    for what, number, skew in steps:
        if what == "collect":
            collect(store, skew)
            if skew > DAY // 2:
                ended.clear()  # grace is over, as far as this clock knows
        elif what == "prune":
            if expected.pop(number, None):
                ended |= pruned(store, number, skew)
        elif what == "publish":
            run = skewed(skew)
            outcome = publish(
                open_folder(store),
                run,
                a_target(number),
                writes(store),
                agrees,
                leftover_grace=HOUR,
            )
            assert isinstance(outcome, AlreadyPublished) == (number in expected)
            expected.setdefault(number, run.run_id)
        else:
            _publish_while_another_does(store, number, skew, expected)
            if skew > DAY // 2:
                ended.clear()
        state = open_folder(store).log.read()
        assert {record.time: record.run_id for record in state.snapshots} == {
            day(at): run_id for at, run_id in expected.items()
        }
        assert state.live_files | ended <= keys(store)


def pruned(store: ObjectStore, number: int, skew: int) -> set[str]:
    """End a snapshot by a clock that is wrong; its files."""
    run, folder = skewed(skew), open_folder(store)

    def bury(state: FolderState) -> Tombstone:
        seq, moment = state.next_seq, run.clock()
        version = state.live[day(number)]
        ended = tombstone_of(version, seq=seq, rule="maxOldSnapshots", deleted_at=moment)
        return Tombstone(
            seq=seq,
            run_id=run.run_id,
            written_at=moment,
            tool_version=run.tool_version,
            snapshots=(ended,),
        )

    files = {file.path for file in folder.log.read().live[day(number)].files}
    folder.log.commit(bury)
    return files


def _publish_while_another_does(
    store: ObjectStore, number: int, skew: int, expected: dict[int, str]
) -> None:
    def rival(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_PROMOTION:
            run = skewed(skew)
            publish(
                open_folder(store),
                run,
                a_target(number),
                writes(store),
                agrees,
                leftover_grace=HOUR,
            )
            expected.setdefault(number, run.run_id)
            collect(store, skew)

    run = a_run(rival)
    try:
        published(open_folder(store), number, run)
    except RunRevoked:
        return
    expected.setdefault(number, run.run_id)


@pytest.mark.parametrize("skew", SKEWS)
def test_grace_is_shorter_by_what_the_collectors_clock_is_ahead(skew: int) -> None:
    store = open_store("memory:", create=True)
    folder = a_folder(store)

    def die(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_PROMOTION:
            collect(store, skew)

    try:
        published(folder, run=a_run(die))
    except RunRevoked:
        assert skew > DAY // 2
    else:
        assert skew < DAY // 2


@pytest.mark.parametrize("skew", SKEWS)
def test_no_clock_that_is_ahead_ends_a_snapshot_that_is_not_old(skew: int) -> None:
    store = open_store("memory:", create=True)
    folder, present = a_folder(store), now()
    ages = {days: EpochNanos(present - days * DAY) for days in (0, 1, 2, 4, 6)}
    for days, time in ages.items():
        target = replace(a_target(), time=time, partition=f"age={days}")
        publish(folder, skewed(0), target, writes(store), agrees)
    rules = {"maxSnapshotAge": {"day": 3}}
    output = parsed([declared_output(**{"outputFolder.snapshotAutoDelete": rules})])[0]
    assert isinstance(output, OutputDataset)
    gone = delete_old_snapshots(folder, skewed(skew), output, EpochNanos(present + skew))
    by_a_right_clock = {ages[4], ages[6]}
    assert set(gone) <= by_a_right_clock
    assert (set(gone) == by_a_right_clock) == (skew > -DAY)

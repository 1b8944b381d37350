"""Real processes that publish and collect, and die on demand."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from support.storage.faultystore import FaultyStore
from support.storage.folders import (
    DAY,
    IDENTITY,
    a_folder,
    a_run,
    day,
    now,
    published,
    replaced,
    rewrites,
)
from support.storage.tablefolders import published_in_table, table_folder

from snaploom.errors import LeaseNotObtained, RunRevoked, SnapshotChanged
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.entries import FolderSettings
from snaploom.output.folder import CrashPoint, FolderOwner, open_folder
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.output.leaseholder import ClaimLease, LeaseKeeper, LeaseTerms
from snaploom.output.publication import AlreadyPublished
from snaploom.output.removal import remove_folder
from snaploom.output.replacement import replace_version

SPAWN = multiprocessing.get_context("spawn")
DEADLINE = 120
REVOKED = 77
"""How a process ends that was taken for dead."""


def dies_at(point: CrashPoint | None) -> Callable[[CrashPoint], None]:
    def reached(here: CrashPoint) -> None:
        if here is point:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def sleeps_at(point: CrashPoint) -> Callable[[CrashPoint], None]:
    """Stops its own process, once, until it is continued."""
    waiting = [point]

    def reached(here: CrashPoint) -> None:
        if waiting == [here]:
            waiting.clear()
            os.kill(os.getpid(), signal.SIGSTOP)

    return reached


def wait_until_stopped(process: BaseProcess) -> None:
    """Until the system reports that a process is stopped."""
    deadline = time.monotonic() + DEADLINE
    stat = Path(f"/proc/{process.pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def publish_in_a_table_once(
    root: Path | str, point: CrashPoint | None, settings: FolderSettings
) -> None:
    """Publish a snapshot in a folder with a table, and die at a point."""
    folder = table_folder(open_store(str(root), create=True), settings=settings)
    published_in_table(folder, 0, a_run(dies_at(point), start=now()))


def publish_under_a_lease(root: Path | str, point: CrashPoint) -> None:
    """Publish two snapshots under a lease of a second, and sleep at a point of the first."""
    run = a_run(sleeps_at(point), start=now())
    folder = open_folder(open_store(str(root), create=False))
    terms = LeaseTerms(duration=1, every=0.3)
    keeper = LeaseKeeper(ClaimLease(folder, run), run.run_id, terms)
    try:
        with keeper.keeping(lambda rival: None):
            for number in range(2):
                keeper.check()
                published(folder, number, run=run)
    except LeaseNotObtained as error:
        sys.exit(error.exit_code)


def stop_in_the_middle(root: Path | str, what: str, point: CrashPoint) -> None:
    """Publish or collect, and sleep at a point; a run that is revoked meanwhile reports it."""
    run = a_run(sleeps_at(point), start=now())
    folder = open_folder(open_store(str(root), create=False))
    if what == "collect":
        garbage = find_garbage(folder.store, folder.log.read(), EpochNanos(now() + DAY), DAY // 2)
        collect_garbage(folder, garbage, run)
        return
    try:
        published(folder, run=run)
    except RunRevoked:
        sys.exit(REVOKED)


def publish_once(root: Path | str, point: CrashPoint | None) -> None:
    run = a_run(dies_at(point), start=now())
    published(a_folder(open_store(str(root), create=True), run), run=run)


def replace_once(root: Path | str, point: CrashPoint | None) -> None:
    run = a_run(dies_at(point), start=now())
    replaced(open_folder(open_store(str(root), create=False)), run=run)


def replace_many(root: Path | str, numbers: list[int], start: object, answers: object) -> None:
    """Replace what was live when all are ready; answer with (snapshot, own run, whether it won)."""
    folder = open_folder(open_store(str(root), create=False))
    versions = folder.log.read().live
    start.wait(DEADLINE)  # type: ignore[attr-defined]
    run = a_run(start=now())
    answered = []
    for number in numbers:
        version = versions[day(number)]
        try:
            replace_version(folder, run, version, rewrites(folder.store, version.rows))
        except SnapshotChanged:
            answered.append((number, run.run_id, False))
        else:
            answered.append((number, run.run_id, True))
    answers.put(answered)  # type: ignore[attr-defined]


def collect_once(root: Path | str, point: CrashPoint | None) -> None:
    run = a_run(dies_at(point), start=now())
    folder = a_folder(open_store(str(root), create=True), run)
    tomorrow = EpochNanos(now() + DAY)
    garbage = find_garbage(folder.store, folder.log.read(), tomorrow, DAY // 2)
    collect_garbage(folder, garbage, run)


def remove_once(root: Path | str, point: CrashPoint | None) -> None:
    store = open_store(str(root), create=True)
    remove_folder(store, FolderOwner(IDENTITY.output), a_run(dies_at(point), start=now()))


def publish_many(root: Path | str, numbers: list[int], start: object, answers: object) -> None:
    """Publish snapshots when all are ready; answer with (snapshot, own run, run that won)."""
    store = open_store(str(root), create=True)
    start.wait(DEADLINE)  # type: ignore[attr-defined]
    run = a_run(start=now())
    folder = a_folder(store, run)
    answered = []
    for number in numbers:
        outcome = published(folder, number, run=run)
        won = not isinstance(outcome, AlreadyPublished)
        answered.append((number, run.run_id, outcome.record.run_id, won))
    answers.put(answered)  # type: ignore[attr-defined]


def answers_of_racing(
    target: Callable[..., None], root: Path | str, numbers: list[int], processes: int
) -> list[tuple[Any, ...]]:
    """What processes answer that run `publish_many` or `replace_many` at the same moment."""
    start, answers = SPAWN.Barrier(processes), SPAWN.Queue()
    racing = [
        SPAWN.Process(target=target, args=(root, numbers, start, answers)) for _ in range(processes)
    ]
    for process in racing:
        process.start()
    answered = [answer for _ in racing for answer in answers.get(timeout=DEADLINE)]
    for process in racing:
        process.join(DEADLINE)
    return answered


def exit_code(
    target: Callable[[Path | str, CrashPoint | None], None],
    root: Path | str,
    point: CrashPoint | None,
) -> int:
    """How a process ended that ran a function: minus the signal when it was killed."""
    process: BaseProcess = SPAWN.Process(target=target, args=(root, point))
    process.start()
    process.join(DEADLINE)
    assert process.exitcode is not None, "it did not end in time"
    return process.exitcode


class KilledAtWrite(FaultyStore):
    """Its process is killed a few milliseconds after its n-th write has begun."""

    def __init__(self, inner: ObjectStore, writes_left: int, seconds: float) -> None:
        super().__init__(inner)
        self._left = writes_left
        self._seconds = seconds

    def _do(self, operation: str, key: str, action: Callable[[], None]) -> None:
        self._left -= operation in ("put_if_absent", "put", "move", "delete")
        if self._left == 0:
            threading.Timer(self._seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        action()


def work_a_day(store: ObjectStore, number: int) -> None:
    """Collect what the dead left, publish a snapshot, and replace it."""
    run = a_run(start=now())
    folder = a_folder(store, run)
    tomorrow = EpochNanos(now() + DAY)
    collect_garbage(folder, find_garbage(folder.store, folder.log.read(), tomorrow, DAY // 2), run)
    published(folder, number, run=run)
    replaced(folder, number, run=run)


def work_and_be_killed(root: str, number: int, writes_left: int, seconds: float) -> None:
    work_a_day(KilledAtWrite(open_store(root, create=True), writes_left, seconds), number)

"""Holds the lease of an output folder during a run, so that one run at a time works on it.

It only saves work (rule P17). A run that finds another one at work waits a while;
what that one has published by then needs no weaving any more, and the rest is left to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from snaploom.errors import LeaseNotObtained, SnaploomError
from snaploom.jobs.job import Job
from snaploom.jobs.reports.runrecord import RunRecord
from snaploom.jobs.runevents import LeaseAwaited
from snaploom.models.report import SnapshotReason
from snaploom.planning.plan import PlannedSnapshot
from snaploom.storage.folder import Folder
from snaploom.storage.leaseholder import LeaseKeeper
from snaploom.storage.writeridentity import Run


@contextmanager
def holding_lease(folder: Folder, run: Run, job: Job) -> Iterator[Callable[[], None]]:
    """Hold the lease of a folder as long as the block lasts, where the job has leases.

    Yields:
        What raises `LeaseNotObtained` when no further snapshot is to be begun.

    Raises:
        LeaseNotObtained: another run is at work.
        Interrupted: somebody asked to stop.
        SnaploomError: the folder is gone.
    """
    if job.lease is None:
        yield job.interruption.check
        return

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        job.interruption.check()

    keeper = LeaseKeeper(job.lease(folder, run), run.run_id, job.terms, wait=wait)
    with keeper.keeping(lambda rival: job.emit(LeaseAwaited(rival))):
        yield keeper.check


def leave_to_others(
    folder: Folder,
    due: Sequence[PlannedSnapshot],
    job: Job,
    record: RunRecord,
    error: SnaploomError,
) -> None:
    """Give up what is due, except for what another run has published meanwhile.

    Args:
        folder: where.
        due: the snapshots that were to be woven.
        job: what the caller decided; what is to be restated is published, and due all the same.
        record: of the run.
        error: why the run does not begin.
    """
    left = due
    if isinstance(error, LeaseNotObtained) and job.options.selection.restated is None:
        state = folder.log.read()
        left = [planned for planned in due if planned.time not in state.live]
        for planned in due:
            if planned.time in state.live:
                message = f"already published by run {state.live[planned.time].run_id}"
                record.leave_out(planned, SnapshotReason.ALREADY_PUBLISHED, message)
    if left:
        record.give_up(left, error)

"""Plans, estimates, and runs with nothing to weave, where no source needs Spark to be listed.

Spark takes seconds to start, and asks a cluster for executors. So every run first looks whether
there is anything to weave; what it has listed by then is not listed again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from snaploom.errors import SnaploomError
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.reports.runrecord import RunRecord
from snaploom.jobs.runevents import Event
from snaploom.jobs.session.smallwork import SMALL_BYTES
from snaploom.jobs.weaving.preflight import PlannedRun, begin, plan_listed
from snaploom.jobs.weaving.runrequest import PlanRequest, RunRequest
from snaploom.listing.otherfiles import SparkNeeded
from snaploom.listing.snapshotbytes import snapshot_bytes
from snaploom.listing.sourcefiles import SourceFiles, listed_without_spark
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.plan import PlannedSnapshot
from snaploom.planning.steps import ReadSource
from snaploom.storage.layout import new_run_id
from snaploom.storage.stores import open_store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EndedRun:
    """A run that has nothing to weave."""

    report: Report
    events: tuple[Event, ...]
    """Events, in their order."""


@dataclass(frozen=True)
class SparkRun:
    """A run that Spark has to be started for."""

    is_small: bool = False
    """Whether it is known to read little, and nothing else is run in this process."""


def planned_without_spark(
    request: PlanRequest,
    clock: Callable[[], EpochNanos],
    files: SourceFiles,
    check: Callable[[], None],
    observations: Observations | None = None,
) -> PlannedRun:
    """Plan a run.

    Args:
        request: what is to be planned.
        clock: the wall clock.
        files: of the sources; what is listed stays there.
        check: called before each source is listed; whatever it raises comes out.
        observations: filled with what is observed.

    Raises:
        SparkNeeded: a source or the folder cannot be listed otherwise.
        SnaploomError: what preflight finds.
    """
    bundle = request.bundle

    def list_source(name: str) -> SourceSnapshots:
        check()
        found = listed_without_spark(bundle, name, files)
        if found is None:
            raise SparkNeeded(f"DataSource/{name}: neither paths nor footers give its snapshots")
        return found

    folder = bundle.output.spec.output_folder.folder_uri
    store = open_store(folder, create=False, others=files.others.store)
    return plan_listed(request, store, list_source, clock, observations or Observations())


def begun_run(
    request: RunRequest, bundle: Bundle, clock: Callable[[], EpochNanos], files: SourceFiles
) -> EndedRun | SparkRun:
    """The run of an output as far as it goes without Spark: to its end where nothing is due.

    Args:
        request: the runs.
        bundle: of one of the outputs.
        clock: the wall clock.
        files: of the sources; what is listed stays there.
    """
    check = request.interruption.check
    events: list[Event] = []
    record = RunRecord(bundle, new_run_id(clock()), events.append, clock)
    try:
        plan = PlanRequest(bundle, request.moment, request.options)
        planned = planned_without_spark(plan, clock, files, check, record.observations)
        due = begin(planned, record, request.options, clock, events.append)
        is_registered = bundle.output.spec.output_folder.register_table is not None
        if due or (is_registered and planned.state.timeline):
            return SparkRun(len(request.bundles) == 1 and is_small(bundle, due, files))
    except SparkNeeded as needed:
        log_start(bundle, needed)
        return SparkRun()
    except SnaploomError as error:
        record.stop(request.interruption.cause or error)
    return EndedRun(record.report(), tuple(events))


def log_start(bundle: Bundle, needed: SparkNeeded) -> None:
    """Log why Spark is started although it is not known whether anything is due."""
    _log.info("%s: Spark is started to list sources: %s", bundle.output.identity, needed)


def is_small(bundle: Bundle, due: Sequence[PlannedSnapshot], files: SourceFiles) -> bool:
    """Whether snapshots of an output are woven from few bytes; false where that is unknown.

    Java need not be prepared for much then.

    Args:
        bundle: the output, and what it refers to.
        due: what is to be woven.
        files: of the sources; what is listed stays there.
    """
    total = 0
    try:
        # What two snapshots read may be read twice.
        for step in (step for snapshot in due for step in snapshot.steps):
            if not isinstance(step, ReadSource):
                continue
            found = snapshot_bytes(bundle, step.source, step.time, files)
            if found is None or (total := total + found) > SMALL_BYTES:
                return False
    except (SnaploomError, SparkNeeded):
        return False  # reading the snapshot raises it again, with the snapshot's name
    return bool(due)

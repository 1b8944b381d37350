"""Plans, estimates, and runs with nothing to weave, where no source needs Spark to be listed.

Spark takes seconds to start, and asks a cluster for executors. So every run first looks whether
there is anything to weave; what it has listed by then is not listed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.errors import Interrupted, SnaploomError
from snaploom.jobs.interruption import Interruption
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.reports.runrecord import RunRecord
from snaploom.jobs.runevents import Event
from snaploom.jobs.weaving.preflight import PlannedRun, begin, inspect, plan_listed
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.listing.otherfiles import NoOtherFiles, SparkNeeded
from snaploom.listing.sourcefiles import SourceFiles, listed_without_spark
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.selection import Selection
from snaploom.storage.layout import new_run_id
from snaploom.storage.stores import open_store


@dataclass(frozen=True)
class EndedRun:
    """A run that has nothing to weave."""

    report: Report
    events: tuple[Event, ...]
    """What happened, in its order."""


def planned_without_spark(
    bundle: Bundle,
    now: EpochNanos,
    limit: int | None,
    selection: Selection,
    clock: Callable[[], EpochNanos],
    is_strict: bool,
    files: SourceFiles,
    check: Callable[[], None],
    observations: Observations | None = None,
) -> PlannedRun:
    """Plan a run.

    Args:
        bundle: the output, and what it refers to.
        now: the instant of planning.
        limit: snapshots to publish at most.
        selection: which snapshots are wanted.
        clock: the wall clock.
        is_strict: whether a root without any snapshot is a failure in any case.
        files: of the sources; what is listed stays there.
        check: called before each source is listed; whatever it raises comes out.
        observations: filled with what is observed.

    Raises:
        SparkNeeded: a source or the folder cannot be listed otherwise.
        SnaploomError: what preflight finds.
    """
    observations = observations or Observations()
    folder = bundle.output.spec.output_folder.folder_uri
    store = open_store(folder, create=False, others=NoOtherFiles().store)
    inspected = inspect(bundle, store, observations)
    listed: dict[str, SourceSnapshots] = {}
    for name in dict.fromkeys(node.source for node in inspected.tree.nodes):
        check()
        found = listed_without_spark(bundle, name, files)
        if found is None:
            raise SparkNeeded(name)
        listed[name] = found
        observations.see_listing(name, found)
    return plan_listed(inspected, listed, now, limit, selection, clock, is_strict)


def idle_run(
    bundle: Bundle,
    now: EpochNanos,
    limit: int | None,
    options: RunOptions,
    clock: Callable[[], EpochNanos],
    files: SourceFiles,
    interruption: Interruption,
) -> EndedRun | None:
    """The run of an output that has nothing to weave; None where Spark has to be started for it.

    Args:
        bundle: the output, and what it refers to.
        now: the instant of planning.
        limit: snapshots to publish at most.
        options: what is asked of the run.
        clock: the wall clock.
        files: of the sources; what is listed stays there.
        interruption: whether somebody asked to stop.
    """
    events: list[Event] = []
    record = RunRecord(bundle, new_run_id(clock()), events.append, clock)
    try:
        planned = planned_without_spark(
            bundle, now, limit, options.selection, clock, options.is_strict, files,
            interruption.check, record.observations,
        )  # fmt: skip
        if begin(planned, record, options, clock, events.append):
            return None
        is_registered = bundle.output.spec.output_folder.register_table is not None
        if is_registered and planned.state.timeline:
            return None
    except SparkNeeded:
        return None
    except SnaploomError as error:
        record.stop(_reason_behind(interruption, error))
    return EndedRun(record.report(), tuple(events))


def _reason_behind(interruption: Interruption, error: SnaploomError) -> SnaploomError:
    try:
        interruption.check()
    except Interrupted as interrupted:
        return interrupted
    return error

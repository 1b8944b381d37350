"""Runs, plans and estimates of outputs; Spark is started where something needs it.

First everything is looked at without Spark (`withoutspark`): where no output has anything to weave,
that is all. Otherwise a session does the work (`sparkruns`), with the files that were listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from snaploom.jobs.interruption import Interruption, run_interruptibly, signal_handlers
from snaploom.jobs.lineage.activation import lineage_listener
from snaploom.jobs.published.runestimate import Estimate
from snaploom.jobs.runevents import EmitEvent, OfOutput
from snaploom.jobs.session.loggers import warnings_as_events
from snaploom.jobs.sparkentry import (
    BUILT,
    IndexPlaces,
    OpenedSession,
    OpenSession,
    estimate_with_spark,
    no_indexes,
    open_early,
    preview_with_spark,
    weave_with_spark,
)
from snaploom.jobs.weaving.filesbeforespark import FilesBeforeSpark
from snaploom.jobs.weaving.preflight import PlannedRun, estimate
from snaploom.jobs.weaving.runoptions import AS_DECLARED, RunOptions
from snaploom.jobs.weaving.runrequest import PlanRequest, RunRequest
from snaploom.jobs.weaving.smallruns import is_small
from snaploom.jobs.weaving.withoutspark import (
    EndedRun,
    SparkRun,
    begun_run,
    log_start,
    planned_without_spark,
)
from snaploom.listing.otherfiles import SparkNeeded
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos, now
from snaploom.planning.availability import Action
from snaploom.planning.bundle import Bundle
from snaploom.planning.dependence import read_first
from snaploom.planning.plan import RunPlan, followed
from snaploom.planning.selection import Selection
from snaploom.storage.claims import ClaimLease
from snaploom.storage.leaseholder import OpenLease


def weave_outputs(
    bundles: Sequence[Bundle],
    moment: EpochNanos,
    limit: int | None,
    emit: EmitEvent,
    on_tick: Callable[[], None],
    interruption: Interruption,
    indexes: IndexPlaces = no_indexes,
    options: RunOptions = AS_DECLARED,
    lease: OpenLease = ClaimLease,
    open_session: OpenSession = BUILT,
) -> tuple[Report, ...]:
    """Weave outputs, several at a time where that is asked for; an interruption ends all cleanly.

    A failed output does not keep the others from their turn; an interruption does. An output that
    reads what another one publishes has its turn after it.

    Args:
        bundles: the outputs.
        moment: the instant of planning.
        limit: snapshots to publish at most, of each output.
        emit: takes events, from any thread.
        on_tick: called several times a second from this thread.
        interruption: from `signal_handlers`.
        indexes: gives the indexes that follow the publications of an output.
        options: what is asked beyond the declarations.
        lease: where runs of one folder learn of each other.
        open_session: gives the session, when it is needed.

    Raises:
        SparkNotStarted: Spark is needed, and there is none to work with.
        Interrupted: before the first output was begun, or by somebody who insisted.
    """
    request = RunRequest(tuple(bundles), moment, limit, emit, on_tick, interruption, options, lease)
    others = FilesBeforeSpark(bundles[0].output.spec.run, options.allow)
    files = {bundle.output.name: SourceFiles(others) for bundle in bundles}

    def look() -> list[EndedRun] | SparkRun:
        interruption.check()
        ended: list[EndedRun] = []
        for bundle in bundles:
            run = begun_run(request, bundle, now, files[bundle.output.name])
            if isinstance(run, SparkRun):
                return run
            ended.append(run)
            if interruption.is_requested:
                break
        return ended

    with warnings_as_events(emit):
        found = run_interruptibly(look, interruption, lambda: None, on_tick)
    if not isinstance(found, SparkRun):
        _show(found, request)
        return tuple(run.report for run in found)
    # What others of these outputs publish before an output has its turn was not listed here.
    own_sources = [name for name, upstream in read_first(bundles).items() if not upstream]
    run = bundles[0].output.spec.run
    opened = open_early(open_session, "snaploom", run, options.allow, is_small=found.is_small)
    return weave_with_spark()(
        request,
        {bundle.output.name: indexes(bundle.output.name) for bundle in bundles},
        {name: files[name] for name in own_sources},
        opened,
    )


def preview(
    bundle: Bundle,
    moment: EpochNanos,
    limit: int | None,
    allow: Allowances = NO_ALLOWANCES,
    is_strict: bool = False,
    open_session: OpenSession = BUILT,
) -> RunPlan:
    """The plan that a run would visit now, after preflight; writes nothing.

    Raises:
        SnaploomError: what preflight finds.
        Interrupted: somebody pressed Ctrl-C.
    """
    files = SourceFiles(FilesBeforeSpark(bundle.output.spec.run, allow))
    request = PlanRequest(bundle, moment, limit, allow=allow, is_strict=is_strict)
    planned = _looked_at(request, files)
    if planned is not None and not _is_woven(planned.plan):
        snapshots = planned.plan.snapshots or ()
        return followed(planned.plan, snapshots, planned.published, planned.present)
    due = () if planned is None else planned.plan.due
    opened = _open_to_plan(request, open_session, is_small=is_small(bundle, due, files))
    return preview_with_spark()(request, files, opened)


def estimate_run(
    bundle: Bundle,
    moment: EpochNanos,
    limit: int | None,
    selection: Selection,
    allow: Allowances = NO_ALLOWANCES,
    open_session: OpenSession = BUILT,
) -> Estimate:
    """About what it would take to publish what is selected; writes nothing.

    Raises:
        SnaploomError: what preflight finds.
        Interrupted: somebody pressed Ctrl-C.
    """
    files = SourceFiles(FilesBeforeSpark(bundle.output.spec.run, allow))
    request = PlanRequest(bundle, moment, limit, selection, allow)
    planned = _looked_at(request, files)
    if planned is not None:
        return estimate(planned)
    opened = _open_to_plan(request, open_session)
    return estimate_with_spark()(request, files, opened)


def _open_to_plan(
    request: PlanRequest, open_session: OpenSession, *, is_small: bool = False
) -> OpenedSession:
    run = request.bundle.output.spec.run
    return open_early(open_session, "snaploom plan", run, request.allow, is_small=is_small)


def _looked_at(request: PlanRequest, files: SourceFiles) -> PlannedRun | None:
    """The plan of a run; None where it needs Spark."""
    with signal_handlers() as interruption:

        def look() -> PlannedRun | None:
            try:
                return planned_without_spark(request, now, files, interruption.check)
            except SparkNeeded as needed:
                log_start(request.bundle, needed)
                return None

        try:
            return run_interruptibly(look, interruption, lambda: None, lambda: None)
        finally:
            interruption.check()


def _is_woven(plan: RunPlan) -> bool:
    """Whether a run of this plan weaves a snapshot, whose schema is to be forecast."""
    return bool(plan.due) and all(one.action is not Action.FAIL for one in plan.snapshots or ())


def _show(ended: Sequence[EndedRun], request: RunRequest) -> None:
    """Emit what happened in runs that have ended."""
    emit, interruption = request.emit, request.interruption
    with lineage_listener(os.environ, emit, lambda: interruption.is_requested) as begin:
        # After an interruption fewer have ended.
        for bundle, run in zip(request.bundles, ended, strict=False):
            follower = begin(bundle)
            for event in run.events:
                name = bundle.output.name
                emit(OfOutput(name, event) if request.options.parallel > 1 else event)
                follower.take(event)
            follower.ended(run.report)

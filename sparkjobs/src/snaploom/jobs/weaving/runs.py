"""Runs, plans and estimates of outputs; Spark is started where something needs it.

First everything is looked at without Spark (`withoutspark`): where no output has anything to weave,
that is all. Otherwise a session does the work (`sparkruns`), with the files that were listed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from snaploom import ondemand
from snaploom.jobs.interruption import run_interruptibly, signal_handlers
from snaploom.jobs.lineage.activation import lineage_listener
from snaploom.jobs.published.runestimate import Estimate
from snaploom.jobs.runevents import OfOutput
from snaploom.jobs.session.loggers import warnings_as_events
from snaploom.jobs.session.opening import (
    IndexPlaces,
    OpenSession,
    no_indexes,
    open_early,
    own_session,
)
from snaploom.jobs.weaving.filesbeforespark import FilesBeforeSpark
from snaploom.jobs.weaving.preflight import PlannedRun, estimate
from snaploom.jobs.weaving.runrequest import PlanRequest, RunRequest
from snaploom.jobs.weaving.withoutspark import (
    EndedRun,
    SparkRun,
    begun_run,
    is_small,
    log_start,
    planned_without_spark,
)
from snaploom.listing.otherfiles import SparkNeeded
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.report import Report
from snaploom.models.times import now
from snaploom.planning.availability import Action
from snaploom.planning.dependence import read_first
from snaploom.planning.plan import RunPlan, followed


def weave_outputs(
    request: RunRequest,
    indexes: IndexPlaces = no_indexes,
    open_session: OpenSession = own_session,
) -> tuple[Report, ...]:
    """Weave outputs, several at a time where that is asked for; an interruption ends all cleanly.

    A failed output does not keep the others from their turn; an interruption does. An output that
    reads what another one publishes has its turn after it.

    Args:
        request: the runs.
        indexes: gives the indexes that follow the publications of an output.
        open_session: gives the session, when it is needed.

    Raises:
        SparkNotStarted: Spark is needed, and there is none to work with.
        Interrupted: before the first output was begun, or by somebody who insisted.
    """
    bundles, interruption = request.bundles, request.interruption
    run, allow = bundles[0].output.spec.run, request.options.allow
    others = FilesBeforeSpark(run, allow)
    files = {bundle.output.name: SourceFiles(others) for bundle in bundles}

    def look() -> list[EndedRun] | SparkRun:
        interruption.check()
        ended: list[EndedRun] = []
        for bundle in bundles:
            found = begun_run(request, bundle, now, files[bundle.output.name])
            if isinstance(found, SparkRun):
                return found
            ended.append(found)
            if interruption.is_requested:
                break
        return ended

    with warnings_as_events(request.emit):
        found = run_interruptibly(look, interruption, lambda: None, request.on_tick)
    if not isinstance(found, SparkRun):
        _show(found, request)
        return tuple(run.report for run in found)
    opened = open_early(open_session, "snaploom", run, allow, is_small=found.is_small)
    return ondemand.weave_in_session(
        request,
        {bundle.output.name: indexes(bundle.output.name) for bundle in bundles},
        # What others of these outputs publish before an output has its turn was not listed here.
        {name: files[name] for name, upstream in read_first(bundles).items() if not upstream},
        opened,
    )


def preview(request: PlanRequest, open_session: OpenSession = own_session) -> RunPlan:
    """Return the plan that a run would visit now, after preflight; nothing is written.

    Raises:
        SnaploomError: what preflight finds.
        Interrupted: somebody pressed Ctrl-C.
    """
    bundle, files = request.bundle, _files(request)
    found = _planned_without_spark(request, files)
    if found is not None and not _is_woven(found.plan):
        return followed(found.plan, found.plan.snapshots or (), found.published, found.present)
    small = is_small(bundle, () if found is None else found.plan.due, files)
    return _planned_in_session(request, files, open_session, foresee=True, small=small).plan


def estimate_run(request: PlanRequest, open_session: OpenSession = own_session) -> Estimate:
    """Estimate what it would take to publish what is selected; nothing is written.

    Raises:
        SnaploomError: what preflight finds.
        Interrupted: somebody pressed Ctrl-C.
    """
    files = _files(request)
    found = _planned_without_spark(request, files)
    return estimate(found or _planned_in_session(request, files, open_session))


def _files(request: PlanRequest) -> SourceFiles:
    return SourceFiles(FilesBeforeSpark(request.bundle.output.spec.run, request.options.allow))


def _planned_without_spark(request: PlanRequest, files: SourceFiles) -> PlannedRun | None:
    """Plan a run; None where that needs Spark."""
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


def _planned_in_session(
    request: PlanRequest,
    files: SourceFiles,
    open_session: OpenSession,
    *,
    foresee: bool = False,
    small: bool = False,
) -> PlannedRun:
    run, allow = request.bundle.output.spec.run, request.options.allow
    opened = open_early(open_session, "snaploom plan", run, allow, is_small=small)
    return ondemand.plan_in_session(request, files, opened, foresee=foresee)


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

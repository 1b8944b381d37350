"""Before a run: folder and clock, and the plan over what sources list (rule W5)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from snaploom.errors import PublicationError, SnapshotMissing
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import refuse
from snaploom.models.report import SnapshotReason
from snaploom.models.run import OnEmptyRoot
from snaploom.output.folder import inspect_folder
from snaploom.output.gc import waiting
from snaploom.output.history import folder_identity, folder_settings, left_open
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.plan import PlannedSnapshot, PublishedState, RunPlan, plan_offline, plan_run
from snaploom.plan.retention import HeldSnapshot
from snaploom.plan.steps import Action, refuse_empty_root
from snaploom.run.reports.record import Observations, RunRecord
from snaploom.run.runevents import EmitEvent, RunEstimated, estimate_of
from snaploom.run.weaving.datafindings import changed_findings, listed_findings, unread_findings
from snaploom.run.weaving.history import compare_structure
from snaploom.run.weaving.requests import AS_DECLARED, RunOptions
from snaploom.sources.registry import declared
from snaploom.sources.sourcefiles import SourceFiles

# The clock of a run against the log of its folder (rule P18).

TOLERATED = 60 * 1_000_000_000
"""Nanoseconds that a clock may be behind without a word: clocks that are kept by NTP differ by far
less than a second, so that a minute is a fault, and no intervals are as short."""

Clock = Callable[[], EpochNanos]


class ClockBehind(PublicationError):
    """The clock is before the newest moment of the log, and sources are read as of now."""


def newest_moment(state: FolderState) -> EpochNanos | None:
    """The latest time at which something was published or deleted; None when nothing was."""
    created = (version.created_at for version in state.versions.values())
    deleted = (ended.deleted_at for ended in state.ended)
    return max((*created, *deleted), default=None)


def never_before(clock: Clock, newest: EpochNanos | None) -> Clock:
    """A clock that is never before a moment."""
    return clock if newest is None else lambda: max(clock(), newest)


def check_clock(bundle: Bundle, state: FolderState, present: EpochNanos) -> tuple[str, ...]:
    """Warnings of a clock that is behind the log."""
    newest = newest_moment(state)
    if newest is None or newest - present <= TOLERATED:
        return ()
    found = f"the clock has {format_instant(present)}, the log has {format_instant(newest)}"
    read_now = [source.name for source in bundle.data_sources if declared(source).is_read_now]
    if read_now:
        raise ClockBehind(
            "the clock of this machine is behind the newest entry of the output's log",
            resource=bundle.output.identity,
            found=f"{found}; read as of now: {', '.join(read_now)}",
            expected="clocks that agree to the minute on all machines that publish here",
        )
    return (
        f"a clock is wrong, here or where was published last: {found}; what is published now is "
        "dated with the latter",
    )


# Before a run: what is in the folder, and the plan over what sources list (rule W5).


@dataclass(frozen=True)
class PlanRequest:
    """The plan of one output."""

    bundle: Bundle
    moment: EpochNanos
    options: RunOptions = AS_DECLARED

    @cached_property
    def offline(self) -> RunPlan:
        """The part of the plan that needs no data."""
        return plan_offline(self.bundle)


@dataclass(frozen=True)
class PlannedRun:
    """A plan, and the state that it rests on."""

    plan: RunPlan
    state: FolderState
    published: PublishedState
    present: EpochNanos
    """The instant to which ages are measured when snapshots are deleted."""

    @property
    def bundle(self) -> Bundle:
        return self.plan.bundle


def look_into_folder(request: PlanRequest, store: ObjectStore, seen: Observations) -> FolderState:
    """The state of an output's folder, which its join tree does not contradict."""
    output, offline = request.bundle.output, request.offline
    refuse(offline.findings)
    state = inspect_folder(
        store,
        folder_settings(output),
        folder_identity(output),
        open_names=left_open(output),
        accept_root_change=output.spec.run.accept_root_change,
        adopt_folder=output.spec.run.adopt_folder,
    )
    seen.state = state
    compare_structure(output, state, offline.tree)
    return state


def plan_listed(
    request: PlanRequest,
    store: ObjectStore,
    state: FolderState,
    listed: Mapping[str, SourceSnapshots],
    files: SourceFiles,
    present: EpochNanos,
) -> PlannedRun:
    """Plan a run over the state of its folder and the snapshots of its sources.

    Raises:
        RootEmpty: the root has no snapshot, and that is to be a failure.
    """
    bundle, output, options = request.bundle, request.bundle.output, request.options
    published = published_state(store, state)
    present = min(request.moment, present)
    moment, limit, selection = request.moment, options.limit, options.selection
    plan = plan_run(request.offline, listed, published, moment, limit, selection, present)
    refuse(plan.findings)
    if options.is_strict or output.spec.run.on_empty_root is OnEmptyRoot.FAIL:
        root = plan.tree.root.source
        refuse_empty_root(bundle.source(root), listed[root])
    root_listing = listed[plan.tree.root.source]
    about_data = (
        *listed_findings(bundle, plan, root_listing, state, moment),
        *changed_findings(bundle, plan, state, files, listed, selection.restated),
        *unread_findings(bundle, files),
    )
    plan = replace(plan, data_findings=about_data)
    return PlannedRun(plan, state, published, present)


def begin(
    planned: PlannedRun,
    record: RunRecord,
    options: RunOptions,
    clock: Callable[[], EpochNanos],
    emit: EmitEvent,
) -> tuple[PlannedSnapshot, ...]:
    """The snapshots to weave, once warnings, an estimate and what is left out are recorded."""
    due = planned.plan.due
    for message in check_clock(planned.bundle, planned.state, clock()):
        record.warn(message)
    if options.selection.first is not None or options.selection.end is not None:
        estimate = estimate_of(planned.state, len(due))
        emit(RunEstimated(planned.bundle.output.name, estimate))
    record.plan(planned.plan, len(due))
    record.find(planned.plan.data_findings)
    failing = _record_unwoven(planned, record)
    if not failing or options.keep_going:
        return due
    for one in due:
        message = f"left for the next run: {failing[0].message}"
        record.leave_out(one, SnapshotReason.EARLIER_FAILURE, message)
    return ()


def _record_unwoven(planned: PlannedRun, record: RunRecord) -> tuple[PlannedSnapshot, ...]:
    snapshots = planned.plan.snapshots or ()
    for one in snapshots:
        if one.action is Action.SKIP:
            record.leave_out(one, one.reason, one.message, warn=one.warn)
    failing = tuple(one for one in snapshots if one.action is Action.FAIL)
    for one in failing:
        # Retention would delete what is to be restated, or a source has no snapshot for it.
        if one.reason is SnapshotReason.RETENTION:
            record.fail(
                one,
                one.reason,
                one.message,
                PublicationError,
                resource=planned.bundle.output.identity,
                path="spec.outputFolder.snapshotAutoDelete",
            )
        else:
            record.fail(one, one.reason, one.message, SnapshotMissing)
    return failing


def published_state(store: ObjectStore, state: FolderState) -> PublishedState:
    """Return the facts about a folder that planning needs."""
    return PublishedState(
        tuple(HeldSnapshot(version.time, version.created_at) for version in state.timeline),
        tuple(sorted(state.tombstoned_times)),
        waiting(store, state),
    )

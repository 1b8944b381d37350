"""Before a run: what is in the folder, and the plan over what sources list (rule W5).

Nothing here needs Spark, and nothing is written. Who lists the sources is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.errors import PublicationError, SnapshotMissing
from snaploom.jobs.declarations.declarationfiles import refuse
from snaploom.jobs.published.runestimate import Estimate, estimate_of
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.reports.runrecord import RunRecord
from snaploom.jobs.runevents import EmitEvent, RunEstimated
from snaploom.jobs.weaving.clocks import check_clock
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.jobs.weaving.runrequest import PlanRequest
from snaploom.jobs.weaving.schemahistory import compare_structure
from snaploom.models.report import SnapshotReason
from snaploom.models.run import OnEmptyRoot
from snaploom.models.times import EpochNanos
from snaploom.planning.availability import Action
from snaploom.planning.bundle import Bundle
from snaploom.planning.emptysources import refuse_empty_root
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.plan import PlannedSnapshot, PublishedState, RunPlan, plan_offline, plan_run
from snaploom.planning.retention import HeldSnapshot
from snaploom.storage.fixedsettings import folder_identity, folder_settings, left_open
from snaploom.storage.folder import inspect_folder
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.runcleanup import waiting
from snaploom.storage.state import FolderState


@dataclass(frozen=True)
class PlannedRun:
    """A plan, and the state that it rests on."""

    bundle: Bundle
    """The output, and what it refers to."""
    plan: RunPlan
    state: FolderState
    """State of the folder when the plan was made."""
    published: PublishedState
    """Facts about the folder for planning."""
    present: EpochNanos
    """The instant to which ages are measured when snapshots are deleted."""


def plan_listed(
    request: PlanRequest,
    store: ObjectStore,
    list_source: Callable[[str], SourceSnapshots],
    clock: Callable[[], EpochNanos],
    observations: Observations,
) -> PlannedRun:
    """Look into the folder of an output, list its sources, and plan a run.

    Args:
        request: what is to be planned.
        store: of the output's folder.
        list_source: lists the snapshots of a source, given by name.
        clock: the wall clock.
        observations: filled with what is observed.

    Raises:
        NoUniqueJoinTree: the join tree is ambiguous or does not reach every source.
        InvalidDeclarations: anything else that the plan finds wrong.
        PublicationError: the folder is not ours, or contradicts the declarations.
        StorageError: it cannot be read.
        RootEmpty: the root has no snapshot, and that is to be a failure.
    """
    bundle, output, options = request.bundle, request.bundle.output, request.options
    offline = plan_offline(bundle)
    refuse(offline.findings)
    state = inspect_folder(
        store,
        folder_settings(output),
        folder_identity(output),
        open_names=left_open(output),
        accept_root_change=output.spec.run.accept_root_change,
        adopt_folder=output.spec.run.adopt_folder,
    )
    observations.state = state
    compare_structure(output, state, offline.tree)
    listed: dict[str, SourceSnapshots] = {}
    for name in dict.fromkeys(node.source for node in offline.tree.nodes):
        listed[name] = list_source(name)
        observations.see_listing(name, listed[name])
    published = published_state(store, state)
    present = min(request.moment, clock())
    plan = plan_run(
        bundle, listed, published, request.moment, options.limit, options.selection, present
    )
    refuse(plan.findings)
    if options.is_strict or output.spec.run.on_empty_root is OnEmptyRoot.FAIL:
        root = offline.tree.root.source
        refuse_empty_root(bundle.source(root), listed[root])
    return PlannedRun(bundle, plan, state, published, present)


def estimate(planned: PlannedRun) -> Estimate:
    """Estimate the publication of all that is due."""
    return estimate_of(planned.state, len(planned.plan.due))


def begin(
    planned: PlannedRun,
    record: RunRecord,
    options: RunOptions,
    clock: Callable[[], EpochNanos],
    emit: EmitEvent,
) -> tuple[PlannedSnapshot, ...]:
    """Record what is known before anything is woven: warnings, an estimate, what is left out.

    Args:
        planned: the run.
        record: what becomes its Report.
        options: what is asked of it.
        clock: the wall clock.
        emit: takes events.

    Returns:
        The snapshots that are to be woven.

    Raises:
        PublicationError: the clock is behind the log, and sources are read as of now.
    """
    for message in check_clock(planned.bundle, planned.state, clock()):
        record.warn(message)
    if options.selection.first is not None or options.selection.end is not None:
        emit(RunEstimated(planned.bundle.output.name, estimate(planned)))
    due = planned.plan.due
    record.plan(planned.plan, len(due))
    failing = _record_unwoven(planned, record)
    if not failing or options.keep_going:
        return due
    for one in due:
        message = f"left for the next run: {failing[0].message}"
        record.leave_out(one, SnapshotReason.EARLIER_FAILURE, message)
    return ()


def _record_unwoven(planned: PlannedRun, record: RunRecord) -> tuple[PlannedSnapshot, ...]:
    """Record what is skipped, and what fails before anything is woven; the latter is returned."""
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

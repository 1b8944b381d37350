"""Before a run: what is in the folder, and the plan over what sources list (rule W5).

Nothing here needs Spark, and nothing is written. Who lists the sources is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from snaploom.planning.tree import JoinTree
from snaploom.storage.fixedsettings import folder_identity, folder_settings, left_open
from snaploom.storage.folder import inspect_folder
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.runcleanup import waiting
from snaploom.storage.state import FolderState


@dataclass(frozen=True)
class Inspected:
    """What is known before sources are listed."""

    bundle: Bundle
    """The output, and what it refers to."""
    tree: JoinTree
    """Its join tree."""
    store: ObjectStore
    """The store of its folder."""
    state: FolderState
    """What the folder holds."""


@dataclass(frozen=True)
class PlannedRun:
    """A plan, and what it rests on."""

    bundle: Bundle
    """The output, and what it refers to."""
    plan: RunPlan
    state: FolderState
    """What the folder held when the plan was made."""
    published: PublishedState
    """What planning knows of the folder."""
    present: EpochNanos
    """The instant to which ages are measured when snapshots are deleted."""


def inspect(bundle: Bundle, store: ObjectStore, observations: Observations) -> Inspected:
    """Look into the folder of an output, and compare it with the declarations.

    Args:
        bundle: the output, and what it refers to.
        store: the store of its folder.
        observations: filled with what is observed.

    Raises:
        NoUniqueJoinTree: the join tree is ambiguous or does not reach every source.
        InvalidDeclarations: anything else that the plan finds wrong.
        PublicationError: the folder is not ours, or contradicts the declarations.
        StorageError: it cannot be read.
    """
    output = bundle.output
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
    return Inspected(bundle, offline.tree, store, state)


def plan_listed(
    inspected: Inspected,
    listed: Mapping[str, SourceSnapshots],
    request: PlanRequest,
    clock: Callable[[], EpochNanos],
) -> PlannedRun:
    """Plan a run over what its sources list.

    Args:
        inspected: the folder.
        listed: the snapshots of every source of the tree, by its name.
        request: what is to be planned.
        clock: the wall clock.

    Raises:
        InvalidDeclarations: what the plan finds wrong.
        RootEmpty: the root has no snapshot, and that is to be a failure.
    """
    bundle, state = inspected.bundle, inspected.state
    published = published_state(inspected.store, state)
    present = min(request.moment, clock())
    limit, selection = request.options.limit, request.options.selection
    plan = plan_run(bundle, listed, published, request.moment, limit, selection, present)
    refuse(plan.findings)
    if request.options.is_strict or bundle.output.spec.run.on_empty_root is OnEmptyRoot.FAIL:
        root = inspected.tree.root.source
        refuse_empty_root(bundle.source(root), listed[root])
    return PlannedRun(bundle, plan, state, published, present)


def estimate(planned: PlannedRun) -> Estimate:
    """About what it will take to publish all that is due."""
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
    """What planning must know of a folder."""
    return PublishedState(
        tuple(HeldSnapshot(version.time, version.created_at) for version in state.timeline),
        tuple(sorted(state.tombstoned_times)),
        waiting(store, state),
    )

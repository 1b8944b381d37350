"""`decide`: the decision about a resource of any kind from its observation."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from snaploom.models.common import EpochNanos, ResourceStatus, format_instant
from snaploom.models.datarelationship import DataRelationship, DataRelationshipStatus
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.fieldtransformer import (
    FieldTransformer,
    FieldTransformerStatus,
    MetadataApplicator,
    MetadataApplicatorStatus,
)
from snaploom.models.outputdataset import OutputDatasetStatus, PlannedJoin, PlanStatus
from snaploom.models.report import DataFinding, LatestSnapshot, ManifestPointer, Report, RunPhase
from snaploom.models.run import CurrentPhase, LastPhase, LastRun, RunAction, RunSettings
from snaploom.models.skippingindex import IndexState, SkippingIndexStatus
from snaploom.plan.times import OutOfCalendar, plus
from snaploom_operator.conditions import (
    ConditionType,
    ConditionValue,
    Reason,
    fit_items,
    fit_text,
    fit_texts,
    next_conditions,
)
from snaploom_operator.decide.lifecycle import (
    DataState,
    advance_runs,
    next_run_at,
    readiness,
    run_view,
    stalled,
    unusable,
)
from snaploom_operator.decide.runsteps import Step, config_map_deletion
from snaploom_operator.decide.runview import (
    UNSUBMITTED,
    DecideSettings,
    Fault,
    RunView,
    condition_notes,
    fault_of,
    findings_text,
    stalls_at,
    validated,
)
from snaploom_operator.decision import (
    Action,
    Decision,
    Ensure,
    EventType,
    Note,
    ObservedIndex,
    ObservedOutput,
    ObservedResource,
    RemoveFinalizer,
    Unparsable,
)
from snaploom_operator.objects import is_pause, known_instant, seconds_until
from snaploom_operator.submit.manifests import plan_config_map

_LOGGER = logging.getLogger(__name__)


Configuration = DataSource | DataRelationship | MetadataApplicator | FieldTransformer

_STATUSES: Mapping[type[Configuration], type[ResourceStatus]] = {
    DataSource: DataSourceStatus,
    DataRelationship: DataRelationshipStatus,
    MetadataApplicator: MetadataApplicatorStatus,
    FieldTransformer: FieldTransformerStatus,
}


def decide_configuration(observed: ObservedResource, resource: Configuration) -> Decision:
    """Decide the status of a DataSource or another kind without runs."""
    fault = fault_of(observed)
    status = resource.status or _STATUSES[type(resource)]()
    ready = ConditionValue(ConditionType.READY, True, Reason.VALID, "the declarations are valid")
    values = unusable(fault, status.conditions, observed.now) if fault is not None else (ready,)
    generation = resource.metadata.generation
    conditions = next_conditions(
        status.conditions, (*values, validated(observed, fault)), generation, observed.now
    )
    changes: dict[str, object] = {
        "observed_generation": generation,
        "conditions": conditions,
        "used_by": observed.used_by,
    }
    if observed.last_seen is not None:
        changes["last_seen"] = observed.last_seen
    return Decision(
        status=status.model_copy(update=changes),
        notes=condition_notes(status.conditions, conditions),
        requeue_after=seconds_until(
            (stalls_at(fault, status.conditions, observed.now),), observed.now
        ),
    )


RETRY_AFTER_CRASH = 300.0
"""Seconds until a resource whose decision crashed is reconciled again."""


def decide(observed: ObservedResource | Unparsable, settings: DecideSettings) -> Decision:
    """Decide about one resource; never raises."""
    try:
        return _decided(observed, settings)
    except Exception as error:
        _LOGGER.exception("decision failed")
        return _crashed(observed, error)


def _decided(observed: ObservedResource | Unparsable, settings: DecideSettings) -> Decision:
    if isinstance(observed, Unparsable):
        return _unparsable(observed)
    if isinstance(observed, ObservedOutput):
        return decide_output(observed, settings)
    if isinstance(observed, ObservedIndex):
        return decide_index(observed, settings)
    resource = observed.resource
    if isinstance(resource, Configuration):
        return decide_configuration(observed, resource)
    raise TypeError(f"nothing is known about the kind {resource.kind}")


def _unparsable(observed: Unparsable) -> Decision:
    message = observed.outdated or findings_text(observed.findings)
    reason = Reason.CRD_OUTDATED if observed.outdated else Reason.INVALID
    invalid = ConditionValue(ConditionType.VALIDATED, False, reason, message)
    values = (*stalled(reason, message), invalid)
    decided = _conditions_only(observed.status, observed.generation, observed.now, values)
    if not (observed.is_deleting and observed.has_finalizer):
        return decided
    # What it published, and where, is unknown: it must not block its deletion (rule R12).
    text = "what was published stays: the declaration cannot be read"
    left = Note(EventType.WARNING, Reason.DATA_LEFT, text)
    return Decision(decided.status, (RemoveFinalizer(),), (*decided.notes, left))


def _crashed(observed: ObservedResource | Unparsable, error: Exception) -> Decision:
    message = f"bug in Snaploom: {type(error).__name__}; see the operator's log"
    if isinstance(observed, Unparsable):
        status, generation = observed.status, observed.generation
    else:
        status = getattr(observed.resource, "status", None)
        generation = observed.resource.metadata.generation or 0
    values = stalled(Reason.INTERNAL_ERROR, message)
    decided = _conditions_only(status, generation, observed.now, values)
    return Decision(decided.status, (), decided.notes, RETRY_AFTER_CRASH)


def _conditions_only(
    before: ResourceStatus | None,
    generation: int,
    now: EpochNanos,
    values: tuple[ConditionValue, ...],
) -> Decision:
    status = before if before is not None else ResourceStatus()
    conditions = next_conditions(status.conditions, values, generation, now)
    changed = {"observed_generation": generation, "conditions": conditions}
    notes = condition_notes(status.conditions, conditions)
    return Decision(status.model_copy(update=changed), (), notes)


MOST_JOINS = 50
"""Joins in a status (rule R13)."""
_PLANNED_JOINS_BYTES = 7_000


def plan_status(observed: ObservedOutput, before: PlanStatus | None) -> PlanStatus | None:
    """The plan in the status: kept while declarations are missing, None if it is ambiguous."""
    plan = observed.plan
    if plan is None:
        return before
    if not plan.is_valid:
        return None
    joins = [
        PlannedJoin(
            number=node.number,
            field_name=node.field_name,
            source=node.source,
            parent=node.parent,
            relationship=node.relationship,
            depth=node.depth,
            group_by=node.group_by,
        )
        for node in plan.tree.joins[:MOST_JOINS]
    ]
    deepest = max((node.depth for node in plan.tree.joins), default=0)
    return PlanStatus(
        hash=plan.hash, max_depth=deepest, joins=fit_items(joins, _PLANNED_JOINS_BYTES)
    )


def plan_actions(observed: ObservedOutput, shown: PlanStatus | None) -> tuple[Action, ...]:
    """Write the plan's ConfigMap if the status has only part of it; delete it if not needed.

    The hash in the observed status shows whether that plan was written, since actions come first.
    """
    resource, plan = observed.resource, observed.plan
    is_paused = is_pause(resource.metadata.annotations)
    if plan is None or is_paused or resource.metadata.deletion_timestamp is not None:
        return ()
    found = [each for each in observed.runs.config_maps if each.role == "plan"]
    if shown is None or len(shown.joins) == len(plan.tree.joins):
        namespace = resource.metadata.namespace or ""
        return tuple(config_map_deletion(each, namespace) for each in found)
    written = resource.status.plan if resource.status is not None else None
    if found and written is not None and written.hash == plan.hash:
        return ()
    return (Ensure(plan_config_map(resource, plan)),)


_SOURCES_BYTES = 3_000
_JOINS_BYTES = 2_000
_EXCLUDED_BYTES = 1_000
_WARNINGS_BYTES = 1_000
_SNAPSHOTS_BYTES = 3_200
_MESSAGE_BYTES = 100
_TEXT_BYTES = 300
_DATA_FINDINGS_BYTES = 3_000
_MOST_DATA_FINDINGS = 20
_MOST = 50
"""Entries of a list in a status (rule R13)."""


def with_published(
    status: OutputDatasetStatus, report: Report, *, is_over: bool
) -> OutputDatasetStatus:
    """The status with the snapshots of a report; unchanged if the report is older.

    Until the run is over the pointer to the manifest stays: outputs that read this one run when it
    is done, and not after each of its snapshots.
    """
    if report.removed is not None and report.phase is RunPhase.SUCCEEDED:
        gone = ("latest_snapshot", "snapshot_count", "manifest")
        none = {"snapshots": (), "data_findings": ()}
        return status.model_copy(update={**dict.fromkeys(gone), **none})
    pointer, kept = report.manifest, status.manifest
    if pointer is None:
        return status
    if kept is not None and pointer.uri == kept.uri and pointer.sequence < kept.sequence:
        return status
    known = report.snapshot_count is not None
    latest = _bounded(report.newest) if report.newest is not None else None
    return status.model_copy(
        update={
            "latest_snapshot": latest if known or latest else status.latest_snapshot,
            "snapshots": fit_items(report.published[:_MOST], _SNAPSHOTS_BYTES)
            if known
            else status.snapshots,
            "snapshot_count": report.snapshot_count if known else status.snapshot_count,
            "manifest": _pointer(pointer) if is_over else kept,
            "data_findings": _data_findings(status, report) if is_over else status.data_findings,
        }
    )


def _data_findings(status: OutputDatasetStatus, report: Report) -> tuple[DataFinding, ...]:
    """Those of a run; what snapshots showed stays until a run publishes again."""
    known = () if report.snapshots else status.data_findings
    found = (*(one for one in known if not one.is_of_listing), *report.data_findings)
    bounded = (
        one.without_values.model_copy(update={"fix": fit_text(one.fix, _TEXT_BYTES)})
        for one in found[:_MOST_DATA_FINDINGS]
    )
    return fit_items(bounded, _DATA_FINDINGS_BYTES)


def _bounded(newest: LatestSnapshot) -> LatestSnapshot:
    excluded = (
        each.model_copy(update={"message": fit_text(each.message, _MESSAGE_BYTES)})
        for each in newest.excluded[:_MOST]
    )
    return newest.model_copy(
        update={
            "partition": fit_text(newest.partition, _TEXT_BYTES),
            "sources": fit_items(newest.sources[:_MOST], _SOURCES_BYTES),
            "excluded": fit_items(excluded, _EXCLUDED_BYTES),
            "joins": fit_items(newest.joins[:_MOST], _JOINS_BYTES),
            "warnings": fit_texts(newest.warnings[:_MOST], _WARNINGS_BYTES, _TEXT_BYTES),
        }
    )


def _pointer(manifest: ManifestPointer) -> ManifestPointer:
    fixed = {key: text for key, text in manifest.fixed.items() if len(key) + len(text) <= 100}
    kept = dict(list(fixed.items())[:10])
    return manifest.model_copy(update={"fixed": kept})


_PUBLISHED = "the newest snapshot was published"


def decide_output(observed: ObservedOutput, settings: DecideSettings) -> Decision:
    """Decide about an OutputDataset."""
    broken = fault_of(observed)
    declared = (validated(observed, broken), *_planned(observed, broken))
    view = run_view(observed, broken, settings)
    step = advance_runs(view)
    status = _output_status(observed, step)
    data = _output_state(view, status)
    conditions = (*declared, _snapshot_fresh(data))
    # The plan comes last: a ConfigMap that cannot be written must not block a run.
    return conclude(view, step, status, data, conditions, plan_actions(observed, status.plan))


def _output_status(observed: ObservedOutput, step: Step) -> OutputDatasetStatus:
    before = observed.resource.status or OutputDatasetStatus()
    status = before.model_copy(
        update={
            "observed_generation": observed.resource.metadata.generation,
            "plan": plan_status(observed, before.plan),
            "current_run": step.current,
            "last_run": step.ended or before.last_run,
            "realised": realised(before.realised, step.ended),
        }
    )
    if step.report is None:
        return status
    return with_published(status, step.report, is_over=step.ended is not None)


def realised(before: str | None, ended: LastRun | None) -> str | None:
    """Hash of the declarations of the last successful run."""
    if ended is None or ended.phase is not LastPhase.SUCCEEDED:
        return before
    return ended.trigger.declarations if ended.action is RunAction.RUN else None


def _output_state(view: RunView, status: OutputDatasetStatus) -> DataState:
    latest = status.latest_snapshot
    since = latest.published_at if latest is not None else None
    overdue = overdue_text(_PUBLISHED, view.settings, since, view.now)
    if latest is None:
        text = "the last run succeeded, and there is no snapshot to publish yet"
        return DataState(Reason.NOTHING_DUE, text, overdue, since)
    text = f"snapshot {latest.time} is published: {latest.rows:,} rows in {latest.files:,} files"
    return DataState(Reason.PUBLISHED, text, overdue, since)


def _planned(observed: ObservedOutput, broken: Fault | None) -> tuple[ConditionValue, ...]:
    if broken is not None and broken.is_about_tree:
        return (ConditionValue(ConditionType.PLANNED, False, broken.reason, broken.message),)
    if broken is not None or observed.plan is None:
        return ()
    joins = len(observed.plan.tree.joins)
    text = f"{joins} join{'' if joins == 1 else 's'}"
    return (ConditionValue(ConditionType.PLANNED, True, Reason.PLANNED, text),)


def _snapshot_fresh(data: DataState) -> ConditionValue:
    reason, text = Reason.FRESH, f"{_PUBLISHED} at {data.since}"
    if data.since is None:
        reason, text = Reason.NEVER_PUBLISHED, "there is no snapshot yet"
    elif data.overdue:
        reason, text = Reason.STALE, data.overdue
    return ConditionValue(ConditionType.SNAPSHOT_FRESH, reason is Reason.FRESH, reason, text)


_RESTING = (IndexState.EMPTY, IndexState.ACTIVE, IndexState.FAILED, IndexState.DELETED)


def decide_index(observed: ObservedIndex, settings: DecideSettings) -> Decision:
    """Decide about a SkippingIndex."""
    broken = fault_of(observed)
    view = run_view(observed, broken, settings)
    step = advance_runs(view)
    status = _index_status(view, observed.resource.status or SkippingIndexStatus(), step)
    data = _index_state(observed, status)
    conditions = (validated(observed, broken), _index_fresh(observed, status, data))
    return conclude(view, step, status, data, conditions)


def _index_status(view: RunView, before: SkippingIndexStatus, step: Step) -> SkippingIndexStatus:
    facts = step.report.index if step.report is not None else None
    reported = facts.state if facts is not None else None
    changes: dict[str, object] = {
        "observed_generation": view.owner.metadata.generation,
        "current_run": step.current,
        "last_run": step.ended or before.last_run,
        "realised": realised(before.realised, step.ended),
        "state": _state(view, before, step, reported),
    }
    if facts is not None:
        changes["files"] = facts.files
        changes["bytes"] = facts.bytes
        changes["last_refreshed"] = facts.last_refreshed or before.last_refreshed
    return before.model_copy(update=changes)


def _state(
    view: RunView, before: SkippingIndexStatus, step: Step, reported: IndexState | None
) -> IndexState:
    if step.ended is not None:
        return _after(step.ended, reported)
    known = before.state or IndexState.EMPTY
    current = step.current
    if current is None or current.phase in UNSUBMITTED:
        return known
    if reported is not None:
        return reported
    if current.action is RunAction.DELETE:
        return IndexState.DELETING
    if current.phase is CurrentPhase.ENDING and known not in _RESTING:
        return known
    if before.last_refreshed is None:
        return IndexState.CREATING
    last = view.last
    if last is not None and last.phase is not LastPhase.SUCCEEDED:
        return IndexState.RECOVERING
    changes = current.trigger.declarations != view.realised
    return IndexState.UPDATING if changes else IndexState.REFRESHING


def _after(ended: LastRun, reported: IndexState | None) -> IndexState:
    if ended.phase is not LastPhase.SUCCEEDED:
        return IndexState.FAILED
    if reported is not None:
        return reported
    return IndexState.DELETED if ended.action is RunAction.DELETE else IndexState.ACTIVE


def _index_state(observed: ObservedIndex, status: SkippingIndexStatus) -> DataState:
    spec, since = observed.resource.spec, status.last_refreshed
    overdue = overdue_text("the index was last refreshed", spec.run, since, observed.now)
    covered = f"{status.files.indexed:,} files are indexed" if status.files else "it is built"
    if spec.enabled:
        return DataState(Reason.INDEX_ACTIVE, covered, overdue, since)
    text = f"{covered}; enabled is false: queries do not use it"
    return DataState(Reason.DISABLED, text, overdue, since)


def _index_fresh(
    observed: ObservedIndex, status: SkippingIndexStatus, data: DataState
) -> ConditionValue:
    files, reason, text = status.files, Reason.STALE, data.overdue
    if files is None or data.since is None:
        reason, text = Reason.NEVER_BUILT, "there is no index yet"
    elif files.stale or files.missing:
        text = f"{files.stale:,} files changed and {files.missing:,} files were added since"
    elif observed.is_overdue:
        text = "the output that is indexed has published since the last refresh"
    elif not data.overdue:
        reason, text = Reason.FRESH, f"{files.indexed:,} files are indexed"
    return ConditionValue(ConditionType.INDEX_FRESH, reason is Reason.FRESH, reason, text)


def expires_at(settings: RunSettings, since: str | None) -> EpochNanos | None:
    """The instant from which it is stale; None if it never is, or its age is unknown."""
    start = known_instant(since)
    if settings.freshness is None or start is None:
        return None
    zone = settings.schedule.time_zone if settings.schedule is not None else "UTC"
    try:
        return plus(start, settings.freshness.max_age, zone)
    except (OutOfCalendar, ValueError, KeyError):
        return None


def overdue_text(what: str, settings: RunSettings, since: str | None, now: EpochNanos) -> str:
    """The message that it is stale; empty if it is fresh.

    It begins with a subject and verb, such as `the newest snapshot was published`.
    """
    if settings.freshness is None:
        return ""
    if since is None:
        return "run.freshness is set, and nothing has been published yet"
    expires = expires_at(settings, since)
    if expires is None or now < expires:
        return ""
    return f"{what} at {since}; run.freshness.maxAge ended at {format_instant(expires)}"


def conclude(
    view: RunView,
    step: Step,
    status: OutputDatasetStatus | SkippingIndexStatus,
    data: DataState,
    conditions: tuple[ConditionValue, ...],
    actions: tuple[Action, ...] = (),
) -> Decision:
    """Combine the step of a run and the state of its resource into a decision.

    The new status comes without conditions and next run; further actions follow those of the run.
    """
    before = view.conditions
    after = replace(view, owner=view.owner.model_copy(update={"status": status}))
    expiry, upcoming = expires_at(view.settings, data.since), next_run_at(after)
    fault = view.fault or step.fault
    values = (*readiness(after, data, fault), *conditions)
    decided = next_conditions(before, values, view.owner.metadata.generation, view.now)
    wakes = (*step.wakes, upcoming, expiry, stalls_at(fault, before, view.now))
    next_run = format_instant(upcoming) if upcoming is not None else None
    return Decision(
        status=status.model_copy(update={"conditions": decided, "next_run_time": next_run}),
        actions=(*step.actions, *actions),
        notes=(*step.notes, *condition_notes(before, decided, step.ended)),
        requeue_after=seconds_until(wakes, view.now),
    )

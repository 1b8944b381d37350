"""`decide`: the decision about a resource of any kind from its observation."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from snaploom.models.common import ResourceStatus
from snaploom.models.datarelationship import DataRelationship, DataRelationshipStatus
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.fieldtransformer import (
    FieldTransformer,
    FieldTransformerStatus,
    MetadataApplicator,
    MetadataApplicatorStatus,
)
from snaploom.models.findings import Finding, errors_of
from snaploom.models.outputdataset import OutputDatasetStatus, PlanStatus
from snaploom.models.run import CurrentPhase, LastPhase, LastRun, RunAction
from snaploom.models.skippingindex import (
    IndexState,
    RefreshTrigger,
    SkippingIndex,
    SkippingIndexStatus,
)
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.readiness import Judged, conclude
from snaploom_operator.decide.runsteps import advance_runs
from snaploom_operator.decide.runview import (
    UNSUBMITTED,
    DecideSettings,
    Fault,
    RunView,
    Step,
)
from snaploom_operator.decide.statuses import output_changes, run_changes
from snaploom_operator.decision import (
    Action,
    Decision,
    Delete,
    Ensure,
    EventType,
    Note,
    ObservedIndex,
    ObservedOutput,
    ObservedResource,
    ObservedRunnable,
    RemoveFinalizer,
    Unparsable,
)
from snaploom_operator.objects import is_pause
from snaploom_operator.submit.manifests import plan_config_map
from snaploom_operator.submit.quota import why_no_queue

_LOGGER = logging.getLogger(__name__)


Configuration = DataSource | DataRelationship | MetadataApplicator | FieldTransformer

_STATUSES: Mapping[type[Configuration], type[ResourceStatus]] = {
    DataSource: DataSourceStatus,
    DataRelationship: DataRelationshipStatus,
    MetadataApplicator: MetadataApplicatorStatus,
    FieldTransformer: FieldTransformerStatus,
}

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
    judged = _judge(observed)
    view, step = None, Step(None)
    if isinstance(observed, ObservedRunnable):
        view = _run_view(observed, judged.fault, settings)
        step = advance_runs(view)
    status = _status(observed, view, step)
    if isinstance(observed, ObservedOutput) and isinstance(status, OutputDatasetStatus):
        # The plan comes last: a ConfigMap that cannot be written must not block a run.
        written = _plan_actions(observed, status.plan)
        step = replace(step, actions=(*step.actions, *written))
    decided = conclude(observed, judged, status, step, view)
    if not isinstance(observed, Unparsable):
        return decided
    if not (observed.is_deleting and observed.has_finalizer):
        return decided
    # What it published, and where, is unknown: it must not block its deletion (rule R12).
    text = "what was published stays: the declaration cannot be read"
    left = Note(EventType.WARNING, Reason.DATA_LEFT, text)
    return replace(decided, actions=(RemoveFinalizer(),), notes=(*decided.notes, left))


def _crashed(observed: ObservedResource | Unparsable, error: Exception) -> Decision:
    message = f"bug in Snaploom: {type(error).__name__}; see the operator's log"
    if isinstance(observed, Unparsable):
        before, generation = observed.status, observed.generation
    else:
        before = getattr(observed.resource, "status", None)
        generation = observed.resource.metadata.generation or 0
    status = (before or ResourceStatus()).model_copy(update={"observed_generation": generation})
    judged = Judged(Fault(Reason.INTERNAL_ERROR, message), ())
    decided = conclude(observed, judged, status, Step(None), None)
    return replace(decided, requeue_after=RETRY_AFTER_CRASH)


_REASONS = {
    "SL130": Reason.REFERENCE_MISSING,
    "SL301": Reason.TREE_AMBIGUOUS,
    "SL302": Reason.SOURCE_UNREACHABLE,
}
"""Reasons by the code of an error; any other error is `Invalid`."""
LISTED = 5
"""Findings in a message; the others are counted."""


def _judge(observed: ObservedResource | Unparsable) -> Judged:
    """The most severe fault of a resource, and the conditions about its declarations."""
    fault = _fault_of(observed)
    joins = _planned(observed, fault) if isinstance(observed, ObservedOutput) else ()
    if fault is not None and not fault.is_about_tree:
        value = ConditionValue(ConditionType.VALIDATED, False, fault.reason, fault.message)
        return Judged(fault, (value, *joins))
    warnings = [finding for finding in observed.findings if not finding.is_error]
    count = f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}"
    text = f"{count}: {_findings_text(warnings)}" if warnings else ""
    value = ConditionValue(ConditionType.VALIDATED, True, Reason.VALID, text)
    return Judged(fault, (value, *joins))


def _fault_of(observed: ObservedResource | Unparsable) -> Fault | None:
    if observed.outdated:
        return Fault(Reason.CRD_OUTDATED, observed.outdated)
    if isinstance(observed, Unparsable):
        return Fault(Reason.INVALID, _findings_text(observed.findings))
    groups: defaultdict[Reason, list[Finding]] = defaultdict(list)
    for finding in errors_of(observed.findings):
        groups[_REASONS.get(finding.code, Reason.INVALID)].append(finding)
    for reason in (Reason.INVALID, Reason.REFERENCE_MISSING):
        if groups[reason]:
            return Fault(reason, _findings_text(groups[reason]))
    if observed.faulty:
        names, count = ", ".join(observed.faulty[:LISTED]), len(observed.faulty)
        more = f" and {count - LISTED} more" if count > LISTED else ""
        text = f"{names}{more} cannot be used; see their conditions"
        return Fault(Reason.REFERENCE_NOT_READY, text)
    for reason in (Reason.TREE_AMBIGUOUS, Reason.SOURCE_UNREACHABLE):
        if groups[reason]:
            return Fault(reason, _findings_text(groups[reason]), is_about_tree=True)
    return None


def _planned(observed: ObservedOutput, broken: Fault | None) -> tuple[ConditionValue, ...]:
    if broken is not None and broken.is_about_tree:
        return (ConditionValue(ConditionType.PLANNED, False, broken.reason, broken.message),)
    if broken is not None or observed.plan is None:
        return ()
    joins = len(observed.plan.tree.joins)
    text = f"{joins} join{'' if joins == 1 else 's'}"
    return (ConditionValue(ConditionType.PLANNED, True, Reason.PLANNED, text),)


def _findings_text(findings: Iterable[Finding]) -> str:
    """Findings as text, one per line: field path, message and fix."""
    listed = tuple(findings)
    lines = [_line(finding) for finding in listed[:LISTED]]
    if len(listed) > LISTED:
        lines.append(f"and {len(listed) - LISTED} more")
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    place = f"{finding.path}: " if finding.path else ""
    found = f" (found {finding.found})" if finding.found else ""
    hint = f"; {finding.hint}" if finding.hint else ""
    return f"{place}{finding.message}{found}{hint}"


def _run_view(
    observed: ObservedRunnable, broken: Fault | None, settings: DecideSettings
) -> RunView:
    """The inputs of a run's decision; `broken` is the fault of the declarations."""
    resource = observed.resource
    is_followed = (
        not isinstance(resource, SkippingIndex)
        or resource.spec.refresh.trigger is RefreshTrigger.ON_PUBLISH
    )
    view = RunView(
        now=observed.now,
        owner=resource,
        runs=observed.runs,
        bundle=observed.bundle,
        declarations=observed.declarations,
        upstream=observed.upstream if is_followed else "",
        unpublished=observed.unpublished,
        refusal=observed.refusal,
        defaults=settings,
        fault=broken,
    )
    if broken is not None:
        return view
    return replace(view, fault=_unable(view))


def _unable(view: RunView) -> Fault | None:
    """The fault of a resource whose runs cannot be submitted, or not into their queue."""
    submitter, available = view.submitter, view.runs.available
    if submitter in available:
        queue, scheduler = view.settings.queue, view.defaults.operator.queue_scheduler
        why = why_no_queue(scheduler, queue, submitter)
        return Fault(Reason.QUEUE_NOT_AVAILABLE, why) if why else None
    names = ", ".join(sorted(available)) or "none"
    return Fault(
        Reason.SUBMITTER_NOT_AVAILABLE,
        f"the submitter {submitter} is not available here (available: {names}); "
        "change run.submitter, or install it and allow it in the operator's settings",
    )


def _status(
    observed: ObservedResource | Unparsable, view: RunView | None, step: Step
) -> ResourceStatus:
    """The new status, with the conditions as observed."""
    if isinstance(observed, Unparsable):
        status = observed.status or ResourceStatus()
        return status.model_copy(update={"observed_generation": observed.generation})
    resource = observed.resource
    changes: dict[str, object] = {"observed_generation": resource.metadata.generation}
    if isinstance(observed, ObservedOutput):
        before = observed.resource.status or OutputDatasetStatus()
        changes |= output_changes(observed, before, step)
        return before.model_copy(update=changes)
    if isinstance(observed, ObservedIndex) and view is not None:
        return _index_status(view, observed.resource.status or SkippingIndexStatus(), step)
    if not isinstance(resource, Configuration):
        raise TypeError(f"nothing is known about the kind {resource.kind}")
    changes["used_by"] = observed.used_by
    if observed.last_seen is not None:
        changes["last_seen"] = observed.last_seen
    return (resource.status or _STATUSES[type(resource)]()).model_copy(update=changes)


_RESTING = (IndexState.EMPTY, IndexState.ACTIVE, IndexState.FAILED, IndexState.DELETED)


def _index_status(view: RunView, before: SkippingIndexStatus, step: Step) -> SkippingIndexStatus:
    facts = step.report.index if step.report is not None else None
    reported = facts.state if facts is not None else None
    changes: dict[str, object] = {
        "observed_generation": view.owner.metadata.generation,
        **run_changes(before, step),
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


def _plan_actions(observed: ObservedOutput, shown: PlanStatus | None) -> tuple[Action, ...]:
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
        return tuple(Delete(CONFIG_MAPS, namespace, each.name, each.uid) for each in found)
    written = resource.status.plan if resource.status is not None else None
    if found and written is not None and written.hash == plan.hash:
        return ()
    return (Ensure(plan_config_map(resource, plan)),)

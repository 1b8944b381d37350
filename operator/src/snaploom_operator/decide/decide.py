"""`decide`: the decision about a resource of any kind from its observation."""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from snaploom.models.findings import Finding
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.skippingindex import RefreshTrigger, SkippingIndex
from snaploom_operator import decision
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.readiness import Judged, conclude, crashed
from snaploom_operator.decide.runsteps import advance_runs
from snaploom_operator.decide.runview import DecideSettings, Fault, RunView, Step
from snaploom_operator.decide.statuses import new_status, plan_actions
from snaploom_operator.submit.quota import why_no_queue

_LOGGER = logging.getLogger(__name__)


def decide(
    observed: decision.ObservedResource | decision.Unparsable, settings: DecideSettings
) -> decision.Decision:
    """Decide about one resource; never raises."""
    try:
        return _decided(observed, settings)
    except Exception as error:
        _LOGGER.exception("decision failed")
        return crashed(observed, error)


def _decided(
    observed: decision.ObservedResource | decision.Unparsable, settings: DecideSettings
) -> decision.Decision:
    judged = _judge(observed)
    view, step = None, Step(None)
    if isinstance(observed, decision.ObservedRunnable):
        view = _run_view(observed, judged.fault, settings)
        step = advance_runs(view)
    status = new_status(observed, view, step)
    if isinstance(observed, decision.ObservedOutput) and isinstance(status, OutputDatasetStatus):
        # The plan comes last: a ConfigMap that cannot be written must not block a run.
        written = plan_actions(observed, status.plan)
        step = replace(step, actions=(*step.actions, *written))
    decided = conclude(observed, judged, status, step, view)
    if not isinstance(observed, decision.Unparsable):
        return decided
    if not (observed.is_deleting and observed.has_finalizer):
        return decided
    # What it published, and where, is unknown: it must not block its deletion (rule R12).
    text = "what was published stays: the declaration cannot be read"
    left = decision.Note(decision.EventType.WARNING, Reason.DATA_LEFT, text)
    return replace(decided, actions=(decision.RemoveFinalizer(),), notes=(*decided.notes, left))


_REASONS = {
    "SL130": Reason.REFERENCE_MISSING,
    "SL301": Reason.TREE_AMBIGUOUS,
    "SL302": Reason.SOURCE_UNREACHABLE,
}
"""Reasons by the code of an error; any other error is `Invalid`."""
LISTED = 5
"""Findings in a message; the others are counted."""


def _judge(observed: decision.ObservedResource | decision.Unparsable) -> Judged:
    """The most severe fault of a resource, and the conditions about its declarations."""
    fault = _fault_of(observed)
    joins = _planned(observed, fault) if isinstance(observed, decision.ObservedOutput) else ()
    if fault is not None and not fault.is_about_tree:
        value = ConditionValue(ConditionType.VALIDATED, False, fault.reason, fault.message)
        return Judged(fault, (value, *joins))
    warnings = [finding for finding in observed.findings if not finding.is_error]
    count = f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}"
    text = f"{count}: {_findings_text(warnings)}" if warnings else ""
    value = ConditionValue(ConditionType.VALIDATED, True, Reason.VALID, text)
    return Judged(fault, (value, *joins))


def _fault_of(observed: decision.ObservedResource | decision.Unparsable) -> Fault | None:
    if observed.outdated:
        return Fault(Reason.CRD_OUTDATED, observed.outdated)
    if isinstance(observed, decision.Unparsable):
        return Fault(Reason.INVALID, _findings_text(observed.findings))
    groups: defaultdict[Reason, list[Finding]] = defaultdict(list)
    for finding in observed.findings:
        if finding.is_error:
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


def _planned(observed: decision.ObservedOutput, broken: Fault | None) -> tuple[ConditionValue, ...]:
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
    observed: decision.ObservedRunnable, broken: Fault | None, settings: DecideSettings
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

"""The most severe fault of declarations, as a reason and a message with the fix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.common import Condition
from snaploom.models.finding import Finding, errors_of
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.instants import is_past, known_instant, later
from snaploom_operator.observed import ObservedResource

_REASONS = {
    "SL130": Reason.REFERENCE_MISSING,
    "SL301": Reason.TREE_AMBIGUOUS,
    "SL302": Reason.SOURCE_UNREACHABLE,
}
"""Reasons by the code of an error; any other error is `Invalid`."""
LISTED = 5
"""Findings in a message; the others are counted."""
GRACE_SECONDS = 10.0
"""Seconds for which a reference may be missing before the resource stalls: a folder of declarations
is applied one by one, in the order of file names, and takes seconds."""
_ARRIVING = frozenset({Reason.REFERENCE_MISSING, Reason.REFERENCE_NOT_READY})
"""Reasons that a resource which is being applied may fix."""


@dataclass(frozen=True)
class Fault:
    """A cause that makes a resource unusable."""

    reason: Reason
    message: str
    is_about_tree: bool = False
    """True if all is valid, but there is not exactly one join tree."""


def fault_of(observed: ObservedResource) -> Fault | None:
    """The most severe fault of a resource; None without one."""
    if observed.outdated:
        return Fault(Reason.CRD_OUTDATED, observed.outdated)
    groups: defaultdict[Reason, list[Finding]] = defaultdict(list)
    for finding in errors_of(observed.findings):
        groups[_REASONS.get(finding.code, Reason.INVALID)].append(finding)
    for reason in (Reason.INVALID, Reason.REFERENCE_MISSING):
        if groups[reason]:
            return Fault(reason, findings_text(groups[reason]))
    if observed.faulty:
        return Fault(Reason.REFERENCE_NOT_READY, _faulty_text(observed.faulty))
    for reason in (Reason.TREE_AMBIGUOUS, Reason.SOURCE_UNREACHABLE):
        if groups[reason]:
            return Fault(reason, findings_text(groups[reason]), is_about_tree=True)
    return None


def stalls_at(
    fault: Fault | None, before: Iterable[Condition], now: EpochNanos
) -> EpochNanos | None:
    """The end of the grace period of a fault; None if it is over, or the fault has none.

    Until then the resource is Reconciling, with the same reason, and no event is posted.
    """
    if fault is None or fault.reason not in _ARRIVING:
        return None
    since = {condition.type: condition.last_transition_time for condition in before}
    if ConditionType.STALLED in since:
        return None
    start = since.get(ConditionType.RECONCILING, format_instant(now))
    if is_past(start, GRACE_SECONDS, now):
        return None
    return later(known_instant(start) or now, GRACE_SECONDS)


def unusable(
    fault: Fault, before: Iterable[Condition], now: EpochNanos
) -> tuple[ConditionValue, ...]:
    """The conditions of a resource with a fault: Stalled, or Reconciling in its grace period."""
    make = stalled if stalls_at(fault, before, now) is None else reconciling
    return make(fault.reason, fault.message)


def stalled(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    """The conditions of a resource that is not Ready and Stalled."""
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.STALLED, True, reason, message),
    )


def reconciling(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    """The conditions of a resource that is not Ready and Reconciling."""
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.RECONCILING, True, reason, message),
    )


def validated(observed: ObservedResource, fault: Fault | None) -> ConditionValue:
    """The condition Validated."""
    if fault is not None and not fault.is_about_tree:
        return ConditionValue(ConditionType.VALIDATED, False, fault.reason, fault.message)
    warnings = [finding for finding in observed.findings if not finding.is_error]
    count = f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}"
    text = f"{count}: {findings_text(warnings)}" if warnings else ""
    return ConditionValue(ConditionType.VALIDATED, True, Reason.VALID, text)


def findings_text(findings: Iterable[Finding]) -> str:
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


def _faulty_text(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:LISTED])
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{shown}{more} cannot be used; see their conditions"

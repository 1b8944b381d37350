"""The most severe fault of declarations, as a reason and a message with the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.common import Condition
from snaploom.models.finding import Finding, errors_of
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.instants import is_past, known_instant, later
from snaploom_operator.observed import ObservedResource

MISSING = "SL130"
"""A missing reference."""
AMBIGUOUS = "SL301"
UNREACHABLE = "SL302"
LISTED = 5
"""Findings in a message; the others are counted."""
GRACE_SECONDS = 10.0
"""How long a reference may be missing before the resource stalls: a folder of declarations is
applied one by one, in the order of file names, and takes seconds."""
_ARRIVING = frozenset({Reason.REFERENCE_MISSING, Reason.REFERENCE_NOT_READY})
"""Reasons that a resource which is being applied may fix."""


@dataclass(frozen=True)
class Fault:
    """Why a resource cannot be used."""

    reason: Reason
    message: str
    is_about_tree: bool = False
    """Whether all is valid, but there is not exactly one join tree."""


def fault_of(observed: ObservedResource) -> Fault | None:
    """The most severe fault of a resource; None without one."""
    if observed.outdated:
        return Fault(Reason.CRD_OUTDATED, observed.outdated)
    errors = errors_of(observed.findings)
    groups = {
        Reason.REFERENCE_MISSING: [f for f in errors if f.code == MISSING],
        Reason.TREE_AMBIGUOUS: [f for f in errors if f.code == AMBIGUOUS],
        Reason.SOURCE_UNREACHABLE: [f for f in errors if f.code == UNREACHABLE],
    }
    sorted_out = {id(finding) for group in groups.values() for finding in group}
    invalid = [finding for finding in errors if id(finding) not in sorted_out]
    if invalid:
        return Fault(Reason.INVALID, findings_text(invalid))
    if groups[Reason.REFERENCE_MISSING]:
        return Fault(Reason.REFERENCE_MISSING, findings_text(groups[Reason.REFERENCE_MISSING]))
    if observed.faulty:
        return Fault(Reason.REFERENCE_NOT_READY, _faulty_text(observed.faulty))
    for reason in (Reason.TREE_AMBIGUOUS, Reason.SOURCE_UNREACHABLE):
        if groups[reason]:
            return Fault(reason, findings_text(groups[reason]), is_about_tree=True)
    return None


def stalls_at(
    fault: Fault | None, before: Iterable[Condition], now: EpochNanos
) -> EpochNanos | None:
    """When a fault makes a resource stall; None if it does so immediately, or there is none.

    Until then the resource is Reconciling, with the same reason, and no event is posted.

    Args:
        fault: why it cannot be used.
        before: the conditions of the status observed.
        now: the present.
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


def validated(observed: ObservedResource, fault: Fault | None) -> ConditionValue:
    """The condition Validated."""
    if fault is not None and not fault.is_about_tree:
        return ConditionValue(ConditionType.VALIDATED, False, fault.reason, fault.message)
    warnings = [finding for finding in observed.findings if not finding.is_error]
    text = f"{_counted(len(warnings), 'warning')}: {findings_text(warnings)}" if warnings else ""
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


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

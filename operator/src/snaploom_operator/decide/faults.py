"""What is wrong with declarations, as one reason and a message that says how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.finding import Finding, errors_of
from snaploom_operator.conditions import ConditionType, Reason, Told
from snaploom_operator.observed import ObservedResource

MISSING = "SL130"
"""A reference to nothing."""
AMBIGUOUS = "SL301"
UNREACHABLE = "SL302"
LISTED = 5
"""Findings that a message shows before it says how many more there are."""


@dataclass(frozen=True)
class Fault:
    """Why a resource cannot be worked with."""

    reason: Reason
    message: str
    is_about_tree: bool = False
    """Whether all is valid, but there is not exactly one join tree."""


def fault_of(observed: ObservedResource) -> Fault | None:
    """The gravest fault of a resource; None when nothing stops the work."""
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


def validated(observed: ObservedResource, fault: Fault | None) -> Told:
    """The condition Validated."""
    if fault is not None and not fault.is_about_tree:
        return Told(ConditionType.VALIDATED, False, fault.reason, fault.message)
    warnings = [finding for finding in observed.findings if not finding.is_error]
    text = f"{_counted(len(warnings), 'warning')}: {findings_text(warnings)}" if warnings else ""
    return Told(ConditionType.VALIDATED, True, Reason.VALID, text)


def findings_text(findings: Iterable[Finding]) -> str:
    """Findings for people, one a line: where, what, and what to do."""
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
    return f"{shown}{more} cannot be used; their own conditions say why"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

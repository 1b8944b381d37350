"""Errors of preflight as findings; without Spark and Arrow, since the operator shows them too."""

from __future__ import annotations

from snaploom.errors import SnaploomError
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.remedies import REMEDY_BY_REASON


def remedy_of(reason: str) -> str:
    """General remedy of a reason."""
    remedy = REMEDY_BY_REASON.get(reason)
    return remedy.fix if remedy else f"see {reason} in the reference of reasons"


def preflight_finding(error: SnaploomError, reason: str = "") -> Finding:
    """An error that is not only about declarations, as a finding."""
    return make_finding(
        "SL192",
        f"{reason}: {error.message}" if reason else error.message,
        resource=error.resource or "",
        path=error.path or "",
        found=error.found or "",
        expected=error.expected or "",
        hint=error.hint or remedy_of(error.reason),
    )

"""One code of the catalogue, and whether it or its caller sets the severity of a finding."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.finding import Severity


@dataclass(frozen=True)
class Code:
    """One code of the catalogue."""

    code: str
    """`SL` and three digits."""
    title: str
    """A few words, which no other code has."""
    severity: Severity | None
    """How grave it is; None where the caller decides."""
    meaning: str
    """The fault, for the reader who looks up the code."""
    fix: str
    """The fix."""


def error(code: str, title: str, meaning: str, fix: str) -> Code:
    """A code that is always an error."""
    return Code(code, title, Severity.ERROR, meaning, fix)


def warning(code: str, title: str, meaning: str, fix: str) -> Code:
    """A code that is always a warning."""
    return Code(code, title, Severity.WARNING, meaning, fix)


def either(code: str, title: str, meaning: str, fix: str) -> Code:
    """A code that is an error or a warning, as the caller decides."""
    return Code(code, title, None, meaning, fix)

"""Usual causes of a reason, and fixes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """The documentation's addition to the meaning of one reason.

    The meaning stands where the reason is defined; the message of a condition shows the case.
    """

    cause: str
    """Its usual causes, as sentences."""
    fix: str
    """The fix, as sentences; commands and field paths in backticks."""
    see: str = ""
    """The page below `docs/` with details; empty for none."""
    codes: tuple[str, ...] = ()
    """Codes of the findings that are reported with this reason."""

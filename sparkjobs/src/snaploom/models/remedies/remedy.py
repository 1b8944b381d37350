"""What usually leads to a reason, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """What the documentation adds to the meaning of one reason.

    The meaning stands where the reason is defined; the message of a condition shows the case.
    """

    cause: str
    """What usually leads to it, as sentences."""
    fix: str
    """What to do, as sentences; commands and field paths in backticks."""
    see: str = ""
    """The page below `docs/` with details; empty for none."""
    codes: tuple[str, ...] = ()
    """Codes of the findings that are reported with this reason."""

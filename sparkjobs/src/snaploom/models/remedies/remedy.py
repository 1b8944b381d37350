"""What usually leads to a reason, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """What an operator is told of one reason, besides its meaning.

    The meaning stands where the reason is defined, and the message of a condition tells the case.
    """

    cause: str
    """What usually leads to it, as sentences."""
    fix: str
    """What to do, as sentences; commands and field paths in backticks."""
    see: str = ""
    """The page below `docs/` that tells more; empty for none."""
    codes: tuple[str, ...] = ()
    """Codes of the findings that are told with this reason."""

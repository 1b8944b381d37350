"""Instants: integers of nanoseconds since 1970-01-01T00:00:00Z, and their ISO 8601 form.

Python's `datetime` stops at microseconds and at year 1; sources may be finer, so instants are
plain integers inside and ISO 8601 in UTC outside (rule W14).
"""

from __future__ import annotations

from typing import NewType

from whenever import Instant, OffsetDateTime

EpochNanos = NewType("EpochNanos", int)
"""Nanoseconds since the epoch, UTC."""

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_MILLISECOND = 1_000_000
NANOS_PER_MICROSECOND = 1_000


def format_instant(instant: EpochNanos) -> str:
    """ISO 8601 in UTC, with as many fractional digits as needed: `2020-01-01T00:00:00Z`."""
    return Instant.from_timestamp(instant, unit="nanosecond").format_iso()


def parse_instant(text: str) -> EpochNanos:
    """Parse ISO 8601 with `Z` or an offset.

    Raises:
        ValueError: without an offset, or when it is no ISO 8601 date-time.
    """
    return EpochNanos(OffsetDateTime.parse_iso(text).to_instant().timestamp(unit="nanosecond"))


def with_zone(text: str) -> str:
    """A time without a zone, or a date, completed to an instant in UTC; empty if it is neither."""
    for ending in ("Z", "T00:00:00Z"):
        try:
            parse_instant(text + ending)
        except ValueError:
            continue
        return text + ending
    return ""


def now() -> EpochNanos:
    """The wall clock; only entry points call it, everything below takes `now` as an argument."""
    return EpochNanos(Instant.now().timestamp(unit="nanosecond"))

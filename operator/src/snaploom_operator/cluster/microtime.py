"""Times with exactly six fractional digits, as events and leases want them (`MicroTime`)."""

from __future__ import annotations

from datetime import UTC, datetime

from snaploom.models.times import NANOS_PER_MICROSECOND, EpochNanos

_MICROS_PER_SECOND = 1_000_000


def format_micro_time(instant: EpochNanos) -> str:
    """`2020-01-01T00:00:00.000000Z`: the API server refuses any other number of digits."""
    seconds, micros = divmod(instant // NANOS_PER_MICROSECOND, _MICROS_PER_SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06}Z"

"""Ticks of a schedule: the latest past one, and the next.

Of missed ticks only the latest counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from cronsim import CronSimError

from snaploom.models.run import Schedule
from snaploom.models.times import EpochNanos
from snaploom.planning.cron import CronTicks


@dataclass(frozen=True)
class Ticks:
    """The ticks of a schedule around an instant."""

    latest: EpochNanos | None = None
    """The latest past tick."""
    next: EpochNanos | None = None
    """The next tick."""


NO_TICKS = Ticks()


def ticks(schedule: Schedule | None, now: EpochNanos) -> Ticks:
    """The ticks around an instant; none without a schedule, or with one that validation refuses."""
    if schedule is None:
        return NO_TICKS
    known = CronTicks(schedule.cron, schedule.time_zone)
    try:
        return Ticks(known.latest(now), known.following(now))
    except (CronSimError, KeyError, ValueError, OSError, OverflowError):
        return NO_TICKS

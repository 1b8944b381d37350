"""Ticks of a schedule: the latest that has come, and the next.

However many ticks were missed, only the latest counts, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from snaploom.models.run import Schedule
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos


@dataclass(frozen=True)
class Ticks:
    """Where a schedule stands."""

    latest: EpochNanos | None = None
    """The latest tick that has come."""
    next: EpochNanos | None = None
    """The first that has not."""


NO_TICKS = Ticks()


def ticks(schedule: Schedule | None, now: EpochNanos) -> Ticks:
    """The ticks around an instant; none without a schedule, or with one that validation refuses."""
    if schedule is None:
        return NO_TICKS
    try:
        zone = ZoneInfo(schedule.time_zone)
        minute = datetime.fromtimestamp(now // NANOS_PER_SECOND, UTC).replace(second=0)
        # Backwards cronsim says what lies before a minute: the present one has to count.
        after = (minute + timedelta(minutes=1)).astimezone(zone)
        latest = next(CronSim(schedule.cron, after, reverse=True), None)
        following = next(CronSim(schedule.cron, minute.astimezone(zone)), None)
    except (CronSimError, KeyError, ValueError, OSError, OverflowError):
        return NO_TICKS
    return Ticks(_instant(latest), _instant(following))


def _instant(tick: datetime | None) -> EpochNanos | None:
    return None if tick is None else EpochNanos(int(tick.timestamp()) * NANOS_PER_SECOND)

"""Freshness of snapshots and indexes: `run.freshness`.

The age counts from the publication, not from the time of the snapshot: freshness is about runs. An
output of historical data has old snapshots on purpose.
"""

from __future__ import annotations

from snaploom.models.run import RunSettings
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.calendar import OutOfCalendar, plus
from snaploom_operator.instants import known_instant


def expires_at(settings: RunSettings, since: str | None) -> EpochNanos | None:
    """The instant from which it is stale; None if it never is, or its age is unknown."""
    start = known_instant(since)
    if settings.freshness is None or start is None:
        return None
    zone = settings.schedule.time_zone if settings.schedule is not None else "UTC"
    try:
        return plus(start, settings.freshness.max_age, zone)
    except (OutOfCalendar, ValueError, KeyError):
        return None


def overdue_text(what: str, settings: RunSettings, since: str | None, now: EpochNanos) -> str:
    """The message that it is stale; empty if it is fresh.

    It begins with a subject and verb, such as `the newest snapshot was published`.
    """
    if settings.freshness is None:
        return ""
    if since is None:
        return "run.freshness is set, and nothing has been published yet"
    expires = expires_at(settings, since)
    if expires is None or now < expires:
        return ""
    return f"{what} at {since}; run.freshness.maxAge ended at {format_instant(expires)}"

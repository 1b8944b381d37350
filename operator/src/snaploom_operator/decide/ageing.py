"""How old what was published, or built, may become: `run.freshness`.

Age counts from the publication, not from the time of the snapshot: it tells that the work goes on.
An output of history has old snapshots for good reasons; what its sources offer is not its fault.
"""

from __future__ import annotations

from snaploom.models.run import RunSettings
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.calendar import OutOfCalendar, plus
from snaploom_operator.instants import known_instant


def expires_at(settings: RunSettings, since: str | None) -> EpochNanos | None:
    """When it becomes too old; None when it never does, or its age is not known."""
    start = known_instant(since)
    if settings.freshness is None or start is None:
        return None
    zone = settings.schedule.time_zone if settings.schedule is not None else "UTC"
    try:
        return plus(start, settings.freshness.max_age, zone)
    except (OutOfCalendar, ValueError, KeyError):
        return None


def overdue_text(what: str, settings: RunSettings, since: str | None, now: EpochNanos) -> str:
    """What to say when it is too old; empty while it is not.

    Args:
        what: the beginning of the sentence, such as `the newest snapshot was published`.
        settings: how old it may become.
        since: when it was published or built; None when it never was.
        now: the present.
    """
    if settings.freshness is None:
        return ""
    if since is None:
        return "run.freshness is set, and nothing has been published yet"
    expires = expires_at(settings, since)
    if expires is None or now < expires:
        return ""
    return f"{what} at {since}; run.freshness.maxAge ended at {format_instant(expires)}"

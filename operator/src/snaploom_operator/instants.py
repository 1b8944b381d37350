"""Times of statuses, parsed leniently: users and older versions can write statuses too."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.times import NANOS_PER_SECOND, EpochNanos, parse_instant


def known_instant(text: str | None) -> EpochNanos | None:
    """The parsed instant of a status field; None when it is missing or invalid."""
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError:
        return None


def later(instant: EpochNanos, seconds: float) -> EpochNanos:
    """An instant some seconds after another."""
    return EpochNanos(instant + round(seconds * NANOS_PER_SECOND))


def is_past(start: str | None, seconds: float, now: EpochNanos) -> bool:
    """Return whether some seconds have passed since a time.

    An invalid time, or one in the future because a clock was set back, counts as past: waiting for
    it could last for ever.
    """
    since = known_instant(start)
    return since is None or since > now or now >= later(since, seconds)


def has_lasted(start: str | None, seconds: float, now: EpochNanos) -> bool:
    """Return whether something that began at a time has certainly lasted some seconds.

    In doubt it is False, unlike `is_past`: nothing is stopped because a clock was set back.
    """
    since = known_instant(start)
    return since is not None and now >= later(since, seconds)


def seconds_until(instants: Iterable[EpochNanos | None], now: EpochNanos) -> float | None:
    """Seconds until the first of some instants that are not past; None when there is none."""
    ahead = [instant for instant in instants if instant is not None and instant > now]
    return (min(ahead) - now) / NANOS_PER_SECOND if ahead else None

"""Times of a status: read without trust, since people and older versions can write one too."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.times import NANOS_PER_SECOND, EpochNanos, parse_instant


def known_instant(text: str | None) -> EpochNanos | None:
    """The instant that a status names; None when it names none."""
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
    """Whether so many seconds have gone by since a time.

    A time that cannot be read, or lies ahead because a clock was set back, is long ago: to wait
    for it could take for ever.
    """
    since = known_instant(start)
    return since is None or since > now or now >= later(since, seconds)


def has_lasted(start: str | None, seconds: float, now: EpochNanos) -> bool:
    """Whether something that began at a time has certainly lasted so many seconds.

    The opposite doubt to `is_past`: nothing is stopped because a clock was set back.
    """
    since = known_instant(start)
    return since is not None and now >= later(since, seconds)


def seconds_until(instants: Iterable[EpochNanos | None], now: EpochNanos) -> float | None:
    """Seconds until the first of some instants that are not past; None when there is none."""
    ahead = [instant for instant in instants if instant is not None and instant > now]
    return (min(ahead) - now) / NANOS_PER_SECOND if ahead else None

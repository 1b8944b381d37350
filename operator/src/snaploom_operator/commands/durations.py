"""Durations as `kubectl` prints them: one or two units."""

from __future__ import annotations

from snaploom.models.times import NANOS_PER_SECOND, EpochNanos, parse_instant

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def duration_text(seconds: float) -> str:
    """Format seconds as `45s`, `3m10s`, `5h` or `12d`; two units only below ten of the larger."""
    left = max(0, int(seconds))
    for index, (unit, size) in enumerate(_UNITS):
        if left < size and unit != "s":
            continue
        count, rest = divmod(left, size)
        if index + 1 < len(_UNITS) and count < 10:
            smaller, smaller_size = _UNITS[index + 1]
            if rest >= smaller_size:
                return f"{count}{unit}{rest // smaller_size}{smaller}"
        return f"{count}{unit}"
    return "0s"


def elapsed(since: str, now: EpochNanos) -> str:
    """The duration since a time in ISO 8601: `3m10s`."""
    return duration_text((now - parse_instant(since)) / NANOS_PER_SECOND)


def ago(time: str, now: EpochNanos) -> str:
    """A time in ISO 8601 relative to now: `3m10s ago` or `in 2h`."""
    seconds = (now - parse_instant(time)) / NANOS_PER_SECOND
    return f"in {duration_text(-seconds)}" if seconds < 0 else f"{duration_text(seconds)} ago"

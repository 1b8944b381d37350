"""Lengths of time for people: one unit, two at most, as `kubectl` writes them."""

from __future__ import annotations

from snaploom.models.times import NANOS_PER_SECOND, EpochNanos, parse_instant

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def length_text(seconds: float) -> str:
    """`45s`, `3m10s`, `5h`, `12d`: the two largest units, the second only where it matters."""
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


def lasting(since: str, now: EpochNanos) -> str:
    """How long something has been so, since a time in ISO 8601: `3m10s`."""
    return length_text((now - parse_instant(since)) / NANOS_PER_SECOND)


def ago(time: str, now: EpochNanos) -> str:
    """How long ago a time in ISO 8601 was: `3m10s ago`; of one to come, `in 2h`."""
    seconds = (now - parse_instant(time)) / NANOS_PER_SECOND
    return f"in {length_text(-seconds)}" if seconds < 0 else f"{length_text(seconds)} ago"

"""Numbers, sizes and lengths of time as people read them."""

from __future__ import annotations

from snaploom.models.times import NANOS_PER_SECOND, EpochNanos, format_instant
from snaploom.site.markup import Html, tag

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def size(count: float) -> str:
    """Bytes in the largest unit of 1,024 that leaves at least one: `1.5 MiB`."""
    for unit in _UNITS[:-1]:
        if abs(count) < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} {_UNITS[-1]}"


def number(count: float) -> str:
    """A whole number with separators."""
    return f"{count:,.0f}"


def share(part: float, whole: float) -> str:
    """Per cent; a dash if the whole is zero. Neither 0 nor 100 is shown of a share only near it."""
    if not whole:
        return "–"
    value = 100 * part / whole
    if 0 < value < 0.1:
        return "< 0.1%"
    if 99.9 < value < 100:
        return "> 99.9%"
    return f"{value:.1f}%".replace(".0%", "%")


def span(nanos: int) -> str:
    """A length of time in its two largest units: `2 d 3 h`; `0 s` for less than a second."""
    seconds = abs(nanos) // NANOS_PER_SECOND
    parts = []
    for length, unit in _SPANS:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts[:2]) or "0 s"


def moment(time: EpochNanos | None) -> Html:
    """An instant in UTC; a dash where there is none."""
    if time is None:
        return Html("–")
    return tag("time", shortened(time), datetime=format_instant(time))


def shortened(time: EpochNanos) -> str:
    """An instant in UTC without trailing zeros: `2024-05-31`, `2024-05-31 15:00`."""
    date, _, clock = format_instant(time).removesuffix("Z").partition("T")
    return date if clock == "00:00:00" else f"{date} {clock.removesuffix(':00')}"


def ago(time: EpochNanos, now: EpochNanos, is_present: bool) -> Html:
    """An age, which the page's script keeps up to date where `now` is the present."""
    written = f"{span(now - time)} ago" if now >= time else f"in {span(time - now)}"
    return tag("span", written, data_since=time // 1_000_000 if is_present else None)


def counted(count: int, noun: str) -> str:
    """`1 gap`, `2 gaps`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

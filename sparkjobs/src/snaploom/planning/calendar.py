"""Arithmetic with calendar lengths on instants, as java.time does it (rule W14).

A `TimeOffset` is applied from year to nano, in a time zone. Year, month, week and day move the
*local* date, one after the other, and each result is resolved before the next: a local time that
occurs twice keeps the offset it had if that is one of the two, else the earlier; one that does not
occur moves forward by the length of the gap. Hours and less are exact and move the instant. This
is `java.time.ZonedDateTime`, to the nanosecond; a fixture of its answers guards it.

The calendar ends with the years 1 and 9999; a result beyond raises `OutOfCalendar`, so that callers
decide whether "too far" means infinity (a window) or never (an interval).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whenever import Date, Instant, PlainDateTime, TimeZoneNotFoundError, ZonedDateTime

from snaploom.models.common import TimeOffset
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos

FIRST_INSTANT = EpochNanos(Instant.MIN.timestamp(unit="nanosecond"))
"""Start of the year 1, UTC."""
LAST_INSTANT = EpochNanos(Instant.MAX.timestamp(unit="nanosecond"))
"""End of the year 9999, UTC."""


class OutOfCalendar(ArithmeticError):
    """A result lies before the year 1 or after the year 9999."""


@dataclass(frozen=True, slots=True)
class CalendarLength:
    """A calendar length whose parts may be negative, the exact ones summed to nanoseconds."""

    years: int
    months: int
    weeks: int
    days: int
    nanos: int

    def times(self, factor: int) -> CalendarLength:
        """Every part multiplied; not the same as applying the length `factor` times."""
        return CalendarLength(
            self.years * factor,
            self.months * factor,
            self.weeks * factor,
            self.days * factor,
            self.nanos * factor,
        )


def length_of(offset: TimeOffset) -> CalendarLength:
    """The length that a declaration gives."""
    seconds = (offset.hour * 60 + offset.minute) * 60 + offset.second
    return CalendarLength(
        offset.year,
        offset.month,
        offset.week,
        offset.day,
        seconds * NANOS_PER_SECOND + offset.nano,
    )


def times(offset: TimeOffset, factor: int) -> CalendarLength:
    """The length with every part multiplied by `factor`."""
    return length_of(offset).times(factor)


def plus(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """The instant moved forward by a calendar length.

    Raises:
        OutOfCalendar: when a step leaves the years 1 to 9999.
    """
    return advance(instant, length_of(offset), zone)


def minus(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """The instant moved back: the parts negated, in the same order; not the inverse of `plus`.

    Raises:
        OutOfCalendar: when a step leaves the years 1 to 9999.
    """
    return advance(instant, times(offset, -1), zone)


def plus_bounded(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """As `plus`, with the calendar's end for everything beyond it."""
    return _bounded(plus, instant, offset, zone, LAST_INSTANT)


def minus_bounded(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """As `minus`, with the calendar's beginning for everything before it."""
    return _bounded(minus, instant, offset, zone, FIRST_INSTANT)


def _bounded(
    move: Callable[[EpochNanos, TimeOffset, str], EpochNanos],
    instant: EpochNanos,
    offset: TimeOffset,
    zone: str,
    bound: EpochNanos,
) -> EpochNanos:
    try:
        return move(instant, offset, zone)
    except OutOfCalendar:
        return bound


def advance(instant: EpochNanos, length: CalendarLength, zone: str) -> EpochNanos:
    """The instant moved by a length, forward or back.

    Raises:
        OutOfCalendar: when a step leaves the years 1 to 9999.
        whenever.TimeZoneNotFoundError: when the tz database does not have the zone.
    """
    try:
        moved = _advance_date(instant, length, zone)
    except TimeZoneNotFoundError:
        raise
    except (ValueError, OverflowError) as error:
        raise OutOfCalendar("beyond the years 1 to 9999") from error
    result = EpochNanos(moved + length.nanos)
    if not FIRST_INSTANT <= result <= LAST_INSTANT:
        raise OutOfCalendar("beyond the years 1 to 9999")
    return result


def _advance_date(instant: EpochNanos, length: CalendarLength, zone: str) -> EpochNanos:
    if not (length.years or length.months or length.weeks or length.days):
        return instant
    moment = Instant.from_timestamp(instant, unit="nanosecond").to_tz(zone)
    if length.years:
        moment = _on_date(moment, moment.date().add(years=length.years), zone)
    if length.months:
        moment = _on_date(moment, moment.date().add(months=length.months), zone)
    if length.weeks:
        moment = _on_date(moment, moment.date().add(weeks=length.weeks), zone)
    if length.days:
        moment = _on_date(moment, moment.date().add(days=length.days), zone)
    return EpochNanos(moment.timestamp(unit="nanosecond"))


def _on_date(previous: ZonedDateTime, date: Date, zone: str) -> ZonedDateTime:
    """The same local time on another date, preferring the same offset where the time repeats."""
    local = date.at(previous.time())
    earlier = local.assume_tz(zone, disambiguation="compatible")
    if earlier.offset != previous.offset and earlier.is_repeated():
        later = local.assume_tz(zone, disambiguation="later")
        if later.offset == previous.offset:
            return later
    return earlier


def local_instant(local: PlainDateTime, zone: str) -> EpochNanos:
    """The instant of a local date and time in a zone.

    A local time that occurs twice is the earlier of the two; one that does not occur moves forward
    by the length of the gap, so that a missing midnight is the start of the day.

    Raises:
        OutOfCalendar: when the instant lies outside the years 1 to 9999.
        whenever.TimeZoneNotFoundError: when the tz database does not have the zone.
    """
    try:
        moment = local.assume_tz(zone, disambiguation="compatible")
    except TimeZoneNotFoundError:
        raise
    except ValueError as error:
        raise OutOfCalendar("beyond the years 1 to 9999") from error
    return EpochNanos(moment.timestamp(unit="nanosecond"))

"""Snapshot values as instants: one rule for captures of paths and for columns, on the driver.

Distinct snapshot values are few, so they are converted in Python by the rules of the planning
calendar instead of Spark's, whose parsers stop at microseconds and read more forms than were
declared (rule W14).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from whenever import Date, OffsetDateTime, PlainDateTime

from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.models.timepatterns import parse_pattern
from snaploom.models.times import NANOS_PER_MILLISECOND, NANOS_PER_SECOND, EpochNanos
from snaploom.planning.calendar import (
    FIRST_INSTANT,
    LAST_INSTANT,
    OutOfCalendar,
    local_instant,
)

EXPECTED = {
    TimeFormat.ISO8601_DATE: "a date such as 2020-01-31",
    TimeFormat.ISO8601_DATE_TIME: "a date and time such as 2020-01-31T12:00:00Z",
    TimeFormat.TIMESTAMP: "a timestamp",
    TimeFormat.UNIX_MILLISECONDS: "whole milliseconds since 1970",
    TimeFormat.UNIX_SECONDS: "whole seconds since 1970",
    TimeFormat.PATTERN: "a date as timePattern has it",
}
"""Examples of values of each format, for messages."""

_UNITS = {
    TimeFormat.UNIX_MILLISECONDS: NANOS_PER_MILLISECOND,
    TimeFormat.UNIX_SECONDS: NANOS_PER_SECOND,
}
_UNIX_EPOCH = Date(1970, 1, 1)
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


_MONTH = re.compile(r"[0-9]{4}[-_/.]?(0?[1-9]|1[0-2])")
_MONTH_HINT = (
    "a month is not a date: write `timeFormat: PATTERN` and `timePattern: {}`, or {}, as in "
    "2020-01-01, or name {} as fieldName"
)


def month_hint(values: Iterable[object], *, in_paths: bool) -> str:
    """Hint where values that are not dates are months; empty otherwise."""
    texts = {str(value) for value in values}
    if not texts or not all(map(_MONTH.fullmatch, texts)):
        return ""
    pattern = re.sub("[0-9]{1,2}$", "MM", re.sub("^[0-9]{4}", "yyyy", min(texts)))
    if in_paths:
        column = "a column of the data that holds a date"
        return _MONTH_HINT.format(pattern, "name the files by its first day", column)
    return _MONTH_HINT.format(pattern, "write its first day", "another column that holds a date")


class NotAnInstant(ValueError):
    """A value is not of its format, or lies beyond the years 1 to 9999."""


def instant_of(value: str | int, settings: FromFieldValue) -> EpochNanos:
    """Instant of a text or number in the declared format, else `NotAnInstant`."""
    if settings.time_pattern is not None:
        return instant_of_pattern(value, settings.time_pattern, settings.default_timezone)
    unit = _UNITS.get(settings.time_format)
    if unit is not None:
        return bounded(_whole(value) * unit)
    if not isinstance(value, str):
        raise NotAnInstant
    if settings.time_format is TimeFormat.ISO8601_DATE:
        return instant_of_date(value, settings.default_timezone)
    return instant_of_date_time(value, settings.default_timezone)


def instant_of_pattern(value: str | int, pattern: str, zone: str) -> EpochNanos:
    """Start of the period that a value names, in a zone; `NotAnInstant` if it names none."""
    try:
        return local_instant(parse_pattern(pattern).start(value), zone)
    except (ValueError, OutOfCalendar) as error:
        raise NotAnInstant from error


def instant_of_date(text: str, zone: str) -> EpochNanos:
    """The start of a day in a zone; a midnight that the zone skips is the first moment after.

    Raises:
        NotAnInstant: the text is not an ISO 8601 date.
    """
    try:
        day = Date.parse_iso(text)
        return local_instant(PlainDateTime(day.year, day.month, day.day), zone)
    except (ValueError, OutOfCalendar) as error:
        raise NotAnInstant from error


def instant_of_days(days: int, zone: str) -> EpochNanos:
    """Start of a day in a zone, from days since 1970; `NotAnInstant` beyond the calendar."""
    try:
        day = _UNIX_EPOCH.add(days=days)
    except ValueError as error:
        raise NotAnInstant from error
    return instant_of_date(day.format_iso(), zone)


def instant_of_date_time(text: str, zone: str) -> EpochNanos:
    """Instant of an ISO 8601 date-time, by default in the zone; else `NotAnInstant`."""
    try:
        return EpochNanos(OffsetDateTime.parse_iso(text).timestamp(unit="nanosecond"))
    except ValueError:
        pass
    try:
        return local_instant(PlainDateTime.parse_iso(text), zone)
    except (ValueError, OutOfCalendar) as error:
        raise NotAnInstant from error


def bounded(nanos: int) -> EpochNanos:
    """Nanoseconds as an instant; `NotAnInstant` beyond the calendar."""
    if not FIRST_INSTANT <= nanos <= LAST_INSTANT:
        raise NotAnInstant
    return EpochNanos(nanos)


def _whole(value: str | int) -> int:
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) is None:
        raise NotAnInstant
    return int(value)

"""Types of columns, and dates in them and in names of files and folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.models.common import DataType, DecimalType, Empty
from snaploom.models.datasource import TimeFormat
from snaploom.types.arrow import spark_type
from snaploom.types.schemas import SIMPLE_TYPES, Decimal, Simple

# Types of columns: those that files have, and those that values of text fit.


class Family(StrEnum):
    """Types whose values can be equal."""

    WHOLE = "whole number"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    OTHER = "other"
    """Fractions, booleans and everything nested: no part of a key."""


@dataclass(frozen=True)
class ColumnType:
    """A type as declarations have it."""

    data_type: DataType
    family: Family


LONG = ColumnType(DataType(long=Empty()), Family.WHOLE)
STRING = ColumnType(DataType(string=Empty()), Family.TEXT)
DOUBLE = ColumnType(DataType(double=Empty()), Family.OTHER)
BOOLEAN = ColumnType(DataType(boolean=Empty()), Family.OTHER)
DATE = ColumnType(DataType(date=Empty()), Family.DATE)
UNSIGNED = ColumnType(DataType(decimal=DecimalType(precision=20, scale=0)), Family.WHOLE)
"""Of whole numbers beyond those of 64 bits with a sign."""
TIMESTAMP = ColumnType(DataType(timestamp=Empty()), Family.TIME)


def type_of_arrow(found: pa.DataType) -> ColumnType:
    """The type that Spark reads a column of a file as, which has types of its own."""
    match spark_type(found):
        case Decimal(precision, scale):
            decimal = DecimalType(precision=precision, scale=scale)
            family = Family.OTHER if scale else Family.WHOLE
            return ColumnType(DataType(decimal=decimal), family)
        case Simple(name) if name in _OF_SPARK:
            return _OF_SPARK[name]
    return _OTHER


_OTHER = ColumnType(DataType(binary=Empty()), Family.OTHER)
_FAMILIES = {
    "string": Family.TEXT, "date": Family.DATE, "timestamp": Family.TIME,
    "timestampNtz": Family.TIME,
}  # fmt: skip
_OF_SPARK = {
    each.spark: ColumnType(
        DataType.model_validate({each.declared: Empty()}),
        Family.WHOLE if each.bits else _FAMILIES.get(each.declared, Family.OTHER),
    )
    for each in SIMPLE_TYPES
}


# Dates in names of files and folders: their forms, and the instants that they mean.

EARLIEST, LATEST = 1970, 2100
"""Years of dates in names: other numbers are numbers."""


class Unit(StrEnum):
    """Precision of a date."""

    SECOND = "second"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True)
class DateForm:
    """One way to write a date in a name."""

    name: str
    """As people write it, and Spark's patterns."""
    pattern: str
    strptime: str
    """Python's format of the text without separators that the engine takes apart; empty for seconds
    or milliseconds since 1970."""
    unit: Unit
    time_format: TimeFormat | None
    """Format by which the engine reads it; None where `name` is the pattern by which it does."""

    def instant(self, text: str) -> datetime | None:
        """The time in UTC; None where the text is no such date."""
        if not re.fullmatch(self.pattern, text):
            return None
        try:
            if not self.strptime:
                seconds = int(text) / (1000 if self.time_format is _MILLIS else 1)
                found = datetime.fromtimestamp(seconds, UTC)
            elif self.unit is Unit.WEEK:  # strptime takes a week 53 of any year
                found = datetime.fromisocalendar(int(text[:4]), int(text[-2:]), 1)
                found = found.replace(tzinfo=UTC)
            else:
                found = datetime.strptime(text.rstrip("Z"), self.strptime).replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            return None
        return found if EARLIEST <= found.year <= LATEST else None


_MILLIS = TimeFormat.UNIX_MILLISECONDS
_DATE, _TIME = TimeFormat.ISO8601_DATE, TimeFormat.ISO8601_DATE_TIME


def _week(separator: str, letters: str) -> DateForm:
    """An ISO week such as `2026-W05`, by the text between year and number."""
    return DateForm(
        f"YYYY{separator}'{letters}'ww", rf"\d{{4}}{separator}{letters}\d\d",
        f"%G{separator}{letters}%V", Unit.WEEK, None,
    )  # fmt: skip


FORMS: tuple[DateForm, ...] = (
    *(_week(between, letters) for between in ("-", "_", "") for letters in ("W", "w", "KW", "kw")),
    DateForm("yyyy-MM-ddTHH:mm:ss", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", "%Y-%m-%dT%H:%M:%S",
             Unit.SECOND, _TIME),
    DateForm("yyyyMMddTHHmmss", r"\d{8}T\d{6}Z?", "%Y%m%dT%H%M%S", Unit.SECOND, _TIME),
    DateForm("yyyyMMdd_HHmmss", r"\d{8}_\d{6}", "%Y%m%d_%H%M%S", Unit.SECOND, None),
    DateForm("yyyy-MM-dd_HH-mm-ss", r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", "%Y-%m-%d_%H-%M-%S",
             Unit.SECOND, None),
    DateForm("yyyy-MM-dd", r"\d{4}-\d\d-\d\d", "%Y-%m-%d", Unit.DAY, _DATE),
    DateForm("yyyy_MM_dd", r"\d{4}_\d\d_\d\d", "%Y_%m_%d", Unit.DAY, None),
    DateForm("yyyy.MM.dd", r"\d{4}\.\d\d\.\d\d", "%Y.%m.%d", Unit.DAY, None),
    DateForm("dd.MM.yyyy", r"\d\d\.\d\d\.\d{4}", "%d.%m.%Y", Unit.DAY, None),
    DateForm("dd-MM-yyyy", r"\d\d-\d\d-\d{4}", "%d-%m-%Y", Unit.DAY, None),
    DateForm("dd_MM_yyyy", r"\d\d_\d\d_\d{4}", "%d_%m_%Y", Unit.DAY, None),
    DateForm("yyyyMMddHHmmss", r"\d{14}", "%Y%m%d%H%M%S", Unit.SECOND, None),
    DateForm("milliseconds since 1970", r"1\d{12}", "", Unit.SECOND, _MILLIS),
    DateForm("yyyyMMddHHmm", r"\d{12}", "%Y%m%d%H%M", Unit.SECOND, None),
    DateForm("yyyyMMddHH", r"20\d{8}", "%Y%m%d%H", Unit.HOUR, None),
    DateForm("seconds since 1970", r"1\d{9}", "", Unit.SECOND, TimeFormat.UNIX_SECONDS),
    DateForm("yyyyMMdd", r"\d{8}", "%Y%m%d", Unit.DAY, _DATE),
    DateForm("yyyy-MM", r"\d{4}-\d\d", "%Y-%m", Unit.MONTH, None),
    DateForm("yyyy_MM", r"\d{4}_\d\d", "%Y_%m", Unit.MONTH, None),
    DateForm("yyyyMM", r"\d{6}", "%Y%m", Unit.MONTH, None),
    DateForm("yyyy", r"\d{4}", "%Y", Unit.YEAR, None),
)  # fmt: skip
"""Longer forms first: the first that fits a text is taken."""

_DATE_TEXT = re.compile(
    r"(?<![0-9])(?:" + "|".join(f"(?:{form.pattern})" for form in FORMS) + r")(?![0-9])"
)


@dataclass(frozen=True)
class FoundDate:
    """A date inside a text."""

    start: int
    end: int
    form: DateForm
    instant: datetime


def date_of(text: str) -> FoundDate | None:
    """The date that a whole text is; None for another text."""
    for form in FORMS:
        instant = form.instant(text)
        if instant is not None:
            return FoundDate(0, len(text), form, instant)
    return None


def dates_in(text: str) -> Iterator[FoundDate]:
    """The dates in a text, one after the other."""
    for match in _DATE_TEXT.finditer(text):
        found = date_of(match[0])
        if found is not None:
            yield FoundDate(match.start(), match.end(), found.form, found.instant)


# Dates in a column, where they are few enough to be the snapshots of a source.

MOST_DAYS = 3_660
"""Distinct days up to which a column may hold snapshots, ten years of them: dates of birth are
more, and plans of so many snapshots are read by nobody."""
_UNITS = (Unit.DAY, Unit.WEEK, Unit.MONTH)
_DIGITS = re.compile(r"[0-9]{8}")


@dataclass(frozen=True)
class ColumnDates:
    """The days that occur in a column."""

    times: tuple[datetime, ...]
    """Beginnings of its days (or weeks, or months), ascending."""
    unit: Unit
    is_exact: bool
    """Whether each of these is one value, so that a value is a snapshot."""
    time_format: TimeFormat
    """Format by which the engine reads an exact one."""
    time_pattern: str | None = None
    """Of `PATTERN`."""


def column_dates(kind: ColumnType, values: pa.Array) -> ColumnDates | None:
    """The days of a column; None where it has other values, or more days than snapshots.

    The values are of all rows that were read; those of dates in text files are texts.
    """
    if kind.family is Family.OTHER:
        return None
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    distinct = pc.unique(values.drop_null())
    if len(distinct) == 0:
        return None
    if pa.types.is_timestamp(distinct.type):
        return _of_timestamps(distinct)
    if len(distinct) > MOST_DAYS:
        return None
    if pa.types.is_date(distinct.type):
        found = [_midnight(day) for day in pc.cast(distinct, pa.date32()).to_pylist()]
        return _days(found, TimeFormat.ISO8601_DATE)
    if pa.types.is_integer(distinct.type) or pa.types.is_string(distinct.type):
        return _of_texts([str(value) for value in distinct.to_pylist()], kind)
    return None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _days(times: list[datetime], time_format: TimeFormat) -> ColumnDates | None:
    if not all(EARLIEST <= found.year <= LATEST for found in times):
        return None
    return ColumnDates(tuple(sorted(times)), Unit.DAY, True, time_format)


def _of_timestamps(distinct: pa.Array) -> ColumnDates | None:
    plain = pc.cast(pc.cast(distinct, pa.timestamp("us", distinct.type.tz), safe=False), pa.int64())
    bounds = pc.min_max(plain).as_py()
    if any(not _EARLIEST <= bound < _LATEST for bound in bounds.values()):
        return None
    days = pc.unique(pc.divide(plain, _DAY))
    if len(days) > MOST_DAYS:
        return None
    found = sorted(datetime.fromtimestamp(day * 86_400, UTC) for day in days.to_pylist())
    exact = len(days) == len(distinct) and all(n % _DAY == 0 for n in plain.to_pylist())
    return ColumnDates(tuple(found), Unit.DAY, exact, TimeFormat.TIMESTAMP)


_DAY = 86_400 * 10**6
"""Microseconds of a day."""
_EARLIEST, _LATEST = 0, int(datetime(LATEST, 1, 1, tzinfo=UTC).timestamp()) * 10**6


def _of_texts(texts: list[str], kind: ColumnType) -> ColumnDates | None:
    """Days, weeks or months as text, all of one form; of numbers only 20260131."""
    first = date_of(texts[0])
    if first is None or first.form.unit not in _UNITS:
        return None
    if kind.family is Family.WHOLE and not all(map(_DIGITS.fullmatch, texts)):
        return None
    found = [first.form.instant(text) for text in texts]
    times = [instant for instant in found if instant is not None]
    if len(times) < len(texts):
        return None
    time_format, pattern = _reading(first.form, kind)
    return ColumnDates(tuple(sorted(times)), first.form.unit, True, time_format, pattern)


def _reading(form: DateForm, kind: ColumnType) -> tuple[TimeFormat, str | None]:
    """Return the format by which the engine reads the form in a column of a type."""
    if form.time_format is None:
        return TimeFormat.PATTERN, form.name
    if kind.family is Family.WHOLE:
        return TimeFormat.PATTERN, "yyyyMMdd"
    return form.time_format, None

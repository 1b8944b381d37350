"""Dates in a column, where they are few enough to be the snapshots of a source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.discovery.columntypes import ColumnType, Family
from snaploom.discovery.dates import EARLIEST, LATEST, DateForm, Unit, date_of
from snaploom.models.datasource import TimeFormat

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
    """How the engine reads an exact one."""
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
    """How the engine reads the form in a column of a type."""
    if form.time_format is None:
        return TimeFormat.PATTERN, form.name
    if kind.family is Family.WHOLE:
        return TimeFormat.PATTERN, "yyyyMMdd"
    return form.time_format, None

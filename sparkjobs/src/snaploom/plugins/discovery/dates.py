"""Types of columns, and dates in them and in names of files and folders."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.models.common import DataType, DecimalType, Empty
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.models.shortforms import MONTH_NAME, Granularity, PatternInvalid, parse_pattern
from snaploom.sources.prefix import NotAnInstant, instant_of
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


# Dates in names of files and folders, and in columns: their forms, and the instants that they mean.

EARLIEST, LATEST = 1970, 2100
"""Years of dates in names: other numbers are numbers."""


class Unit(StrEnum):
    """Precision of a date."""

    SECOND = "second"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True)
class DateForm:
    """One way to write a date, as the engine reads it."""

    name: str
    """Its pattern, or what it counts."""
    unit: Unit
    time_format: TimeFormat

    @property
    def pattern(self) -> str | None:
        """The `timePattern`; None where the format needs none."""
        return self.name if self.time_format is TimeFormat.PATTERN else None

    @property
    def has_names(self) -> bool:
        """Whether months have names."""
        return "MMM" in self.name

    @property
    def has_short_year(self) -> bool:
        """Whether years have two digits."""
        return "yy" in self.name and "yyyy" not in self.name

    @property
    def may_be_parts(self) -> bool:
        """Whether its numbers may as well be those of parts or versions."""
        is_short = self.unit is Unit.MONTH or self.has_short_year
        return is_short and not self.has_one_width and not self.has_names

    @property
    def has_one_width(self) -> bool:
        """Whether all of its texts have the same length."""
        return self.pattern is None or parse_pattern(self.pattern).has_one_width

    def instant(self, text: str) -> datetime | None:
        """The time in UTC; None where the text is no such date."""
        return _instant(self, text)


_PER_MICROSECOND = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=65_536)  # names of many files have the same days
def _instant(form: DateForm, text: str) -> datetime | None:
    settings = FromFieldValue(
        field_name="date", time_format=form.time_format, time_pattern=form.pattern
    )
    try:
        found = _EPOCH + timedelta(microseconds=instant_of(text, settings) // _PER_MICROSECOND)
    except (NotAnInstant, OverflowError):
        return None
    return found if EARLIEST <= found.year <= LATEST else None


Orders = tuple[tuple[tuple[DateForm, ...], ...], ...]
"""The ways to read a text by its characters: of an order of year, month and day the form with all
digits and that without leading zeros. Orders of a later group count where none before fits."""

_YEAR = "(?:19[7-9][0-9]|20[0-9]{2}|2100)"
_LETTER = r"[^\W\d_]"
_PARTS = {
    "Y": _YEAR, "N": "[0-9]{1,2}", "9": "[0-9]",
    "1": f"(?:[0-9]{{2}}|(?<!{_LETTER})[0-9])",
    "A": rf"(?<!{_LETTER}){MONTH_NAME}(?!{_LETTER})\.?", ":": r"(?P<s>[-_. ]|\. )",
    "+": "(?P<t>[-_. ]|[.,] )",
    "L": f"(?<!{_LETTER})(?P<letters>W|w|KW|kw)", "Q": f"(?<!{_LETTER})(?P<letters>[Qq])[1-4]",
    "R": f"[1-4](?P<letters>[Qq])(?!{_LETTER})", "8": f"(?:{_YEAR}[0-9]{{4}}|[0-9]{{4}}{_YEAR})",
    "T": r"(?P<time>[T_ -][0-9]{2}(?P<c>[-_.:]?)[0-9]{2}(?P=c)[0-9]{2}Z?"
         r"|[T_ -][0-9]{2}h(?:[0-9]{2}(?:m(?:[0-9]{2}s)?)?)?(?![a-z])"
         r"|T[0-9]{2}(?:[-_.:]?[0-9]{2})?Z?)?(?![-_ ]?[AaPp][Mm](?![A-Za-z]))",
    "/": "/", "<": "(?<![0-9][-.])", ">": "(?!(?P=s)[0-9])",
}  # fmt: skip
_SHAPES = tuple(
    (
        re.compile(
            "(?<![0-9])"
            + "".join(
                _PARTS.get(letter, "(?P=s)" if letter in text[:place] else
                           "(?P<s>[-_. /])" if letter == "-" else "(?P<s>[-_. /]?)")
                for place, letter in enumerate(text)
            )
            + "(?![0-9])"
        ),
        orders,
    )
    for text, *orders in (
        ("Y~LN", ("YYYY-'L'ww",)),
        ("LN~Y", ("'L'ww-YYYY",)),
        ("Y~Q", ("yyyy-'L'Q",)),
        ("Q~Y", ("'L'Q-yyyy",)),
        ("R~Y", ("Q'L'-yyyy",)),
        ("Y9999999999", ("yyyyMMddHHmmss",)),
        ("9999999999999", ("milliseconds since 1970",)),
        ("Y99999999", ("yyyyMMddHHmm",)),
        ("9999999999", ("yyyyMMddHH",), ("seconds since 1970",)),
        ("Y-N-NT", ("yyyy-MM-dd",), ("yyyy-dd-MM",)),
        ("N-N-YT", ("dd-MM-yyyy", "MM-dd-yyyy")),
        ("8T", ("yyyyMMdd",), ("ddMMyyyy", "MMddyyyy"), ("yyyyddMM",)),
        ("Y/N-N", ("yyyy/MM-dd",), ("yyyy/dd-MM",)),
        ("N~A~Y", ("dd-MMM-yyyy",)),
        ("A~N~Y", ("MMM-dd-yyyy",)),
        ("Y~A~N", ("yyyy-MMM-dd",)),
        ("N~A~99", ("dd-MMM-yy", "yy-MMM-dd")),
        ("1:A+Y", ("dd-MMM+yyyy",)),
        ("A:N+Y", ("MMM-dd+yyyy",)),
        ("A~Y", ("MMM-yyyy",)),
        ("Y~A", ("yyyy-MMM",)),
        ("Y-999", ("yyyy-DDD",)),
        ("Y999", ("yyyyDDD",)),
        ("Y-9999", ("yyyy-MMdd",), ("yyyy-ddMM",)),
        ("9999-Y", ("ddMM-yyyy", "MMdd-yyyy")),
        ("<N-N-99>", ("dd-MM-yy", "MM-dd-yy", "yy-MM-dd")),
        ("A~99", ("MMM-yy",)),
        ("Y-N", ("yyyy-MM",), ("YYYY/ww",), ("yyyy/Q",)),
        ("1-Y", ("MM-yyyy",)),
        ("999999", ("yyyyMM", "yyMMdd", "ddMMyy", "MMddyy", "MMyyyy")),
        ("Y", ("yyyy",)),
    )
)  # fmt: skip
"""Dates by their characters, longer ones first: `Y` is a year, `N` a number of one or two digits
(`1` as well, but not that of `T1`), `A` the name of a month, `Q` or `R` a quarter, `T` a time, `-`
a separator, the same everywhere, `~` one that may be missing, and `:` and `+` are two of them."""
_FORMATS = {
    "yyyy-MM-dd": TimeFormat.ISO8601_DATE,
    "yyyyMMdd": TimeFormat.ISO8601_DATE,
    "milliseconds since 1970": TimeFormat.UNIX_MILLISECONDS,
    "seconds since 1970": TimeFormat.UNIX_SECONDS,
}
_MOST_DAYS_APART = 3_650
"""Days over which orders that differ in the year may spread the files of a few months."""


@dataclass(frozen=True)
class FoundDate:
    """A text inside another one that may be a date."""

    start: int
    end: int
    orders: Orders


def dates_in(text: str, without: Container[Orders] = ()) -> list[FoundDate]:
    """The texts that may be dates, one after the other, but for some ways to read them."""
    found: list[FoundDate] = []
    for place, (shape, _) in enumerate(_SHAPES) if re.search("[0-9]", text) else ():
        for match in shape.finditer(text):
            (start, end), orders = match.span(), _orders(place, *_marks(match))
            is_free = not any(start < other.end and other.start < end for other in found)
            if is_free and orders not in without:
                found.append(FoundDate(start, end, orders))
    return sorted(found, key=lambda date: date.start)


def orders_of(text: str) -> Orders:
    """The ways to read a whole text as a date; none for another text."""
    return next(
        (_orders(place, *_marks(match)) for place, (shape, _) in enumerate(_SHAPES)
         if (match := shape.fullmatch(text))), (),
    )  # fmt: skip


def fitting(orders: Orders, texts: Iterable[str]) -> tuple[DateForm, ...]:
    """The forms by which all texts are dates, the likeliest first.

    There are several where nothing shows which number is the day. Years of two digits count where
    texts differ, and numbers of one digit beside them where they fit in one order only: versions
    look like that.
    """
    distinct = set(texts)
    for group in orders:
        first = [next((f for f in one if all(map(f.instant, distinct))), None) for one in group]
        found = [f for f in first if f and (len(distinct) > 1 or not f.has_short_year)]
        found = [f for f in found if not _is_other_word(f, distinct)]
        if len(found) > 1:
            found = [f for f in found if not f.has_short_year or f.has_names or f.has_one_width]
        if found:
            return _likeliest(found, distinct)
    return ()


def exceptions(orders: Orders, texts: Sequence[str]) -> str:
    """Name the texts that are no dates where most are; empty where most are something else."""
    for form in (form for group in orders for one in group for form in one):
        odd = [text for text in texts if form.instant(text) is None]
        is_day = form.unit in (Unit.DAY, Unit.SECOND) and not form.has_short_year
        if is_day and 2 * len(odd) < len(texts):
            shown = ", ".join(odd[:3])
            return f"{shown} is no {form.name}, as {len(texts) - len(odd):,} others are"
    return ""


_OTHER_WORDS = frozenset({"ago", "des", "dic", "gen", "mag", "out", "set"})
"""Months of some language that mean something else in names of files, unless others are there."""


def _is_other_word(form: DateForm, texts: Iterable[str]) -> bool:
    """Whether the only month beside the years is such a word, or these may be days: `May-01`."""
    if not form.has_names or form.unit is not Unit.MONTH:
        return False
    if form.has_short_year:
        starts = [found for found in map(form.instant, texts) if found]
        years = [found.year for found in starts]
        return (
            max(years) - min(years) + 1 > len({found.month for found in starts}) or len(years) < 2
        )
    names = {re.sub(r"[\W\d_]", "", text).lower() for text in texts}
    return len(names) == 1 and names <= _OTHER_WORDS


def _likeliest(forms: Sequence[DateForm], texts: Iterable[str]) -> tuple[DateForm, ...]:
    """Forms without gaps first, then by the time between first and last day, then day first."""
    spans = {form: sorted({d.date() for d in map(form.instant, texts) if d}) for form in forms}
    first, *others = sorted(forms, key=lambda form: _irregularity(spans[form]))
    least = max(20 * _length(spans[first]), _MOST_DAYS_APART)
    return (first, *(form for form in others if _length(spans[form]) <= least))


def _length(days: Sequence[date]) -> int:
    return (days[-1] - days[0]).days


def _irregularity(days: Sequence[date]) -> int:
    """Return 0 for all days, all workdays, or first days of months; else days between the ends."""
    gaps = {(later - earlier).days for earlier, later in pairwise(days)}
    months = {(b.year - a.year) * 12 + b.month - a.month for a, b in pairwise(days)}
    is_monthly = months == {1} and all(day.day == 1 for day in days)
    are_workdays = len(days) > 3 and gaps == {1, 3} and all(day.weekday() < 5 for day in days)
    return 0 if gaps == {1} or is_monthly or are_workdays else _length(days)


def _marks(match: re.Match[str]) -> tuple[str, ...]:
    groups = match.groupdict()
    separator, other, letters, time = (
        groups.get(name) or "" for name in ("s", "t", "letters", "time")
    )
    units = iter(("HH", "mm", "ss"))
    pattern = re.sub("[0-9]{2}", lambda _: next(units), re.sub("[TZhms]", r"'\g<0>'", time))
    return separator, other, letters, pattern


_SHORT = {"MM": "M", "dd": "d", "ww": "w"}


@cache
def _orders(place: int, separator: str, other: str, letters: str, time: str) -> Orders:
    found: list[tuple[tuple[DateForm, ...], ...]] = []
    for group in _SHAPES[place][1]:
        texts = (text.replace("+", "\0").replace("-", separator) for text in group)
        names = [text.replace("\0", other).replace("L", letters) + time for text in texts]
        found.append(tuple(_variants(name) for name in names))
    return tuple(found)


def _variants(name: str) -> tuple[DateForm, ...]:
    """The form of a pattern, and that without leading zeros where it can be read."""
    time_format = _FORMATS.get(name, TimeFormat.PATTERN)
    if time_format in (TimeFormat.UNIX_MILLISECONDS, TimeFormat.UNIX_SECONDS):
        return (DateForm(name, Unit.SECOND, time_format),)
    units = {Granularity.MINUTE: Unit.SECOND}
    granularity = parse_pattern(name).granularity
    unit = units.get(granularity) or Unit(granularity)
    forms = [DateForm(name, unit, time_format)]
    short = re.sub(r"([A-Za-z])\1*", lambda unit: _SHORT.get(unit[0], unit[0]), name)
    with suppress(PatternInvalid):
        parse_pattern(short)
        forms.append(DateForm(short, unit, TimeFormat.PATTERN))
    return tuple(forms)


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
    others: tuple[ColumnDates, ...] = ()
    """The same texts in other orders of day and month, which they do not exclude."""


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
        found = [
            datetime.combine(day, time(), UTC) for day in pc.cast(distinct, pa.date32()).to_pylist()
        ]
        return _days(found, TimeFormat.ISO8601_DATE)
    if pa.types.is_integer(distinct.type) or pa.types.is_string(distinct.type):
        return _of_texts([str(value) for value in distinct.to_pylist()], kind)
    return None


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
    if kind.family is Family.WHOLE and not all(map(_DIGITS.fullmatch, texts)):
        return None
    found = [
        _by_form(form, texts, kind)
        for form in fitting(orders_of(texts[0]), texts)
        if form.unit in _UNITS and (kind.family is not Family.WHOLE or form.name == "yyyyMMdd")
    ]
    return replace(found[0], others=tuple(found[1:])) if found else None


def _by_form(form: DateForm, texts: list[str], kind: ColumnType) -> ColumnDates:
    times = tuple(sorted(found for text in texts if (found := form.instant(text)) is not None))
    is_number = kind.family is Family.WHOLE
    time_format = TimeFormat.PATTERN if is_number else form.time_format
    pattern = form.name if is_number else form.pattern
    return ColumnDates(times, form.unit, True, time_format, pattern)

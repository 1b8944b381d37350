"""Tables whose values have types and whose columns have none: of workbooks and of SQLite.

The type of a column holds all of its values, or is declared; a value that does not fit is refused
by its place. So a table is read twice where no types are declared.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from itertools import islice

import pyarrow as pa

Value = bool | int | float | str | bytes | date | None
"""The content of a cell; a `datetime` is a date with a time."""
Row = tuple[int, Sequence[Value]]
"""The number of a row, and its values, as many as there are columns."""

_ROWS = 10_000
_CHARACTERS = 8 << 20
"""Of the texts of a batch: long ones make it shorter."""
_EXACT = 1 << 53
"""Up to which a binary fraction has every whole number."""
LARGE = b"larger than"
"""Metadata of a column of larger ones: fractions in other files do not make it all fractions."""
_LONGEST_SHOWN = 60
_INT64 = range(-(1 << 63), 1 << 63)
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?"
)
_LONG, _DOUBLE, _TEXT, _BOOLEAN = pa.int64(), pa.float64(), pa.string(), pa.bool_()
_DAY, _TIME, _BYTES = pa.date32(), pa.timestamp("us"), pa.binary()


@dataclass(frozen=True)
class TableKey:
    """A foreign key that a file declares."""

    name: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True)
class FileTable:
    """One of the tables that a file has."""

    name: str
    options: Mapping[str, str]
    """With which the reader of its format finds it."""
    rows: int | None = None
    """None where only reading shows that."""
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[TableKey, ...] = ()
    head: tuple[tuple[str, ...], ...] = ()
    """Its first rows as texts, where the first of all may be a header."""
    why_not: str = ""
    """Reason why it is not read unless somebody declares it; empty where it is."""


class TableMissing(ValueError):
    """An option that names none of the tables of a file, or is left out where it has several."""

    def __init__(self, option: str, given: str, names: Sequence[str]) -> None:
        fault = f"there is no {option} {given}" if given else f"the option `{option}` names none"
        super().__init__(f"{fault}; its {option}s are {', '.join(names[:20]) or 'none'}")


@dataclass(frozen=True)
class MeasuredTable:
    """A table that can be read again and again."""

    names: Sequence[str]
    rows: Callable[[], Iterator[Row]]
    place: Callable[[int, str], str]
    """The place of a value for people, by the number of its row and its column."""
    hints: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types that columns have if all of their values fit."""

    def opened(self, schema: pa.Schema | None, most: int) -> pa.RecordBatchReader:
        """The rows, with the types of a schema, or with those that hold them.

        Only `most` values are looked at, unless that is 0.

        Raises:
            ValueError: a value does not fit; then or from a batch.
        """
        folded = [name.lower() for name in self.names]
        twice = [name for name in self.names if folded.count(name.lower()) > 1]
        if twice:
            raise ValueError(f"columns have equal names: {', '.join(twice[:20])}")
        known = {one.name.lower(): one.with_type(_carrier(one.type)) for one in schema or ()}
        rows = most // max(1, len(self.names)) if most else None
        if schema is None:
            columns = [_Column(name, self.hints.get(name)) for name in self.names]
            for numbers, values in self._batches(rows):
                for column, found in zip(columns, values, strict=True):
                    column.add(found, self._places(numbers, column.name))
            known = {column.name.lower(): column.field for column in columns}
        read = (known[name.lower()].with_name(name) for name in self.names if name.lower() in known)
        fields = pa.schema(read)
        return pa.RecordBatchReader.from_batches(fields, self._typed(fields, rows))

    def _typed(self, fields: pa.Schema, most: int | None) -> Iterator[pa.RecordBatch]:
        for numbers, values in self._batches(most):
            by_name = dict(zip(self.names, values, strict=True))
            arrays = [
                _array(by_name[one.name], one.type, self._places(numbers, one.name))
                for one in fields
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=fields)

    def _places(self, numbers: Sequence[int], column: str) -> Callable[[int], str]:
        return lambda at: self.place(numbers[at], column)

    def _batches(self, most: int | None) -> Iterator[tuple[list[int], list[tuple[Value, ...]]]]:
        numbers: list[int] = []
        rows: list[Sequence[Value]] = []
        characters = 0
        for number, row in islice(self.rows(), most):
            numbers.append(number)
            rows.append(row)
            characters += sum(len(each) for each in row if isinstance(each, str | bytes))
            if len(rows) == _ROWS or characters > _CHARACTERS:
                yield numbers, list(zip(*rows, strict=True))
                numbers, rows, characters = [], [], 0
        if rows:
            yield numbers, list(zip(*rows, strict=True))


class _Column:
    """Collects which types the values of a column fit."""

    def __init__(self, name: str, hint: pa.DataType | None) -> None:
        self.name = name
        self._hint = hint
        self._kinds: set[type] = set()
        self._largest = 0

    def add(self, values: Sequence[Value], place: Callable[[int], str]) -> None:
        """Look at some values."""
        kinds = set(map(type, values)) - {type(None)}
        self._kinds |= kinds
        if int in kinds:
            whole = (abs(each) for each in values if type(each) is int)
            self._largest = max(self._largest, *whole, 0)
        if bytes in self._kinds and len(self._kinds) > 1:
            at = next(n for n, each in enumerate(values) if isinstance(each, bytes))
            raise ValueError(f"{place(at)} has bytes, and others of its column have no bytes")
        if self._hint is not None:
            try:
                _array(values, self._hint, place)
            except ValueError:
                self._hint = None

    @property
    def field(self) -> pa.Field:
        """Its name, and the narrowest type that holds all values."""
        found = self._type
        is_large = found == _LONG and self._largest > _EXACT
        return pa.field(self.name, found, metadata={LARGE: str(_EXACT)} if is_large else None)

    @property
    def _type(self) -> pa.DataType:
        if not self._kinds:
            return pa.null()
        if self._hint is not None:
            return self._hint
        for kinds, found in _TYPES:
            if self._kinds <= kinds:
                is_exact = self._largest <= _EXACT if found == _DOUBLE else self._largest in _INT64
                return found if is_exact else _TEXT
        return _TEXT


_TYPES = (
    ({bool}, _BOOLEAN), ({int}, _LONG), ({int, float}, _DOUBLE), ({date}, _DAY),
    ({date, datetime}, _TIME), ({bytes}, _BYTES),
)  # fmt: skip


def _carrier(wanted: pa.DataType) -> pa.DataType:
    """The type as which values are given that are of another one in the end."""
    if pa.types.is_integer(wanted):
        return _LONG
    if pa.types.is_floating(wanted):
        return _DOUBLE
    if pa.types.is_timestamp(wanted):
        return _TIME
    if wanted in (_BOOLEAN, _DAY, _BYTES):
        return wanted
    return _TEXT


def _array(values: Sequence[Value], kind: pa.DataType, place: Callable[[int], str]) -> pa.Array:
    if kind == pa.null():
        return pa.nulls(len(values))
    plain, convert = _conversion(kind)
    if set(map(type, values)) <= plain:
        return pa.array(values, kind)
    found: list[Value] = []
    for at, value in enumerate(values):
        try:
            found.append(None if value is None else convert(value))
        except ValueError:
            shown = "bytes" if isinstance(value, bytes) else _text(value)[:_LONGEST_SHOWN]
            raise ValueError(f"{place(at)} has {shown}, which is no {_NAMES[kind]}") from None
    return pa.array(found, kind)


_NAMES = {
    _LONG: "whole number of 64 bits", _DOUBLE: "number that a double holds",
    _BOOLEAN: "boolean", _DAY: "date", _TIME: "time", _BYTES: "bytes", _TEXT: "text",
}  # fmt: skip


@cache
def _conversion(kind: pa.DataType) -> tuple[set[type], Callable[[Value], Value]]:
    """The types of values that are of a kind already, and what makes others one of it."""
    none = type(None)
    own: Mapping[pa.DataType, tuple[set[type], Callable[[Value], Value]]] = {
        _LONG: ({none}, _whole), _DOUBLE: ({none, float}, _fraction), _BOOLEAN: (
            {none, bool}, _boolean), _DAY: ({none, date}, _day), _TIME: ({none, datetime}, _time),
        _BYTES: ({none, bytes}, _bytes), _TEXT: ({none, str}, _text),
    }  # fmt: skip
    return own[kind]


def _whole(value: Value) -> Value:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if type(value) is int and value in _INT64:
        return value
    raise ValueError


def _fraction(value: Value) -> Value:
    if isinstance(value, float):
        return value
    if type(value) is int and abs(value) <= _EXACT:
        return float(value)
    raise ValueError


def _boolean(value: Value) -> Value:
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise ValueError


def _day(value: Value) -> Value:
    if isinstance(value, str) and len(value) == len("2026-01-31") and _ISO.fullmatch(value):
        return date.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ValueError


def _time(value: Value) -> Value:
    if isinstance(value, str) and _ISO.fullmatch(value):
        return datetime.fromisoformat(value)
    if isinstance(value, date):
        return value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
    raise ValueError


def _bytes(value: Value) -> Value:
    if isinstance(value, bytes):
        return value
    raise ValueError


def _text(value: Value) -> str:
    if isinstance(value, bytes):
        raise ValueError
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def names_of(header: Sequence[str]) -> tuple[str, ...]:
    """Names of columns as Spark makes them of a header, where one is empty or stands twice."""
    times = Counter(name.lower() for name in header)
    return tuple(
        f"_c{place}" if not name else f"{name}{place}" if times[name.lower()] > 1 else name
        for place, name in enumerate(header)
    )

"""Columns of a metadata store, decoded: values, partitions, one row a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.plugins.xskipper import javastream, layout
from snaploom.plugins.xskipper.layout import BLOOM, MIN_MAX, SPARK_VERSION, VALUE_LIST, StoredIndex
from snaploom.skipping.core.definition import Value, arrow_type

# Values of partition columns, from the names of folders.

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Folder name for NULL."""

_EPOCH = date(1970, 1, 1).toordinal()

_READERS: dict[str, Callable[[str], Value]] = {
    "tinyint": int,
    "smallint": int,
    "int": int,
    "bigint": int,
    "float": float,
    "double": float,
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "date": lambda text: date.fromisoformat(text).toordinal() - _EPOCH,
}


def partition_values(paths: Sequence[str], column: str, data_type: str) -> pa.Array:
    """Value in each path, in Catalyst's internal form; NULL where it is not plain."""
    known: dict[str, Value | None] = {}
    values: list[Value | None] = []
    for path in paths:
        text = _folder(path, column)
        if text not in known:
            known[text] = _value(text, data_type)
        values.append(known[text])
    return pa.array(values, arrow_type(data_type))


def _folder(path: str, column: str) -> str:
    for segment in reversed(path.split("/")[:-1]):
        name, equals, text = segment.partition("=")
        if equals and _decoded(name) == column.encode():
            return text
    return HIVE_NULL


def _decoded(text: str) -> bytes:
    return unquote_to_bytes(text)


def _value(text: str, data_type: str) -> Value | None:
    if text == HIVE_NULL:
        return None
    decoded = _decoded(text)
    if data_type in ("string", "binary"):
        return decoded
    try:
        if data_type.startswith("decimal("):
            value: Value = Decimal(decoded.decode())
        else:
            value = _READERS[data_type](decoded.decode())
        pa.scalar(value, arrow_type(data_type))
    except (ValueError, KeyError, InvalidOperation, pa.ArrowException, OverflowError):
        return None
    return value


# Values of a metadata store, from and to the form in which Snaploom keeps them.

FIRST_GREGORIAN_DAY = -141427
"""1582-10-15 in days since 1970: from here on both calendars name days alike."""

FIRST_SURE_MOMENT = -2208988800000000
"""1900-01-01T00:00:00Z in microseconds: from here on both calendars and all time zones' local
mean times agree; Spark's own limit (`RebaseDateTime.lastSwitchJulianTs`)."""

_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_NEW_DATES, _NEW_INT96 = (3, 0), (3, 1)
"""Spark versions that write the calendar of today unless a footer key names another."""


@dataclass(frozen=True)
class Calendar:
    """Reliability of a file's old values."""

    dates: bool
    timestamps: bool


def calendar_of(footer: Mapping[bytes, bytes]) -> Calendar:
    """The calendar of a file, from its footer's keys."""
    parts = footer.get(SPARK_VERSION, b"").decode("ascii", "replace").split(".")[:2]
    version = tuple(int(part) for part in parts) if all(map(str.isdecimal, parts)) else ()
    return Calendar(
        dates=version >= _NEW_DATES and _LEGACY_DATES not in footer,
        timestamps=version >= _NEW_INT96 and _LEGACY_INT96 not in footer,
    )


def from_store(values: pa.Array, data_type: str) -> pa.Array | None:
    """Values of a Parquet column as they are kept; None where the column has another type."""
    kept_as = arrow_type(data_type)
    if kept_as is None or not _holds(values.type, data_type):
        return None
    if pa.types.is_timestamp(values.type):
        # Through microseconds without zone: the moment itself, whatever zone the type names.
        return values.cast(pa.timestamp("us")).view(pa.int64())
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    if pa.types.is_floating(kept_as):
        # -0.0 and 0.0 are one value (rule S4).
        return pc.add(values.cast(kept_as), pa.scalar(0.0, kept_as))
    return values.cast(kept_as)


def unsure(values: pa.Array, data_type: str, calendar: Calendar) -> pa.Array:
    """For each kept value, whether it is too old for its meaning to be certain; null for null."""
    if data_type == "date" and not calendar.dates:
        return pc.less(values, FIRST_GREGORIAN_DAY)
    if data_type == "timestamp" and not calendar.timestamps:
        return pc.less(values, FIRST_SURE_MOMENT)
    return pc.and_(values.is_null(), False)


def to_store(values: pa.Array, data_type: str) -> pa.Array:
    """Kept values as a Parquet column; `pyarrow.ArrowInvalid` for text that is not UTF-8."""
    match data_type:
        case "timestamp":
            return values.view(pa.timestamp("us", "UTC"))
        case "date":
            return values.view(pa.date32())
        case "string":
            return values.cast(pa.large_string())
    return values


def store_type(data_type: str) -> pa.DataType:
    """Arrow type of a Spark type in the store."""
    return to_store(pa.array([], arrow_type(data_type)), data_type).type


def _holds(stored: pa.DataType, data_type: str) -> bool:
    match data_type:
        case "timestamp" | "timestamp_ntz":
            return bool(pa.types.is_timestamp(stored))
        case "date":
            return bool(pa.types.is_date32(stored))
        case "string":
            return bool(pa.types.is_string(stored) or pa.types.is_large_string(stored))
        case "binary":
            return bool(pa.types.is_binary(stored) or pa.types.is_large_binary(stored))
    return bool(stored == arrow_type(data_type))


# Rows of a metadata store of any version: one row per file, columns by position of the index.

PATH, MODIFIED = "path", "modified"

KNOWN, PRESENT, MINIMUM, MAXIMUM = "known", "present", "min", "max"
SET, FILTER = "set", "filter"


def row_column(position: int, part: str) -> str:
    """Column of an index."""
    return f"{position}.{part}"


def partition_column(position: int) -> str:
    """Column of a partition column's values."""
    return f"p{position}"


def kept_type(data_type: str | None) -> pa.DataType:
    """Arrow type of kept values; null where the type is unknown or cannot be kept."""
    return (arrow_type(data_type) if data_type is not None else None) or pa.null()


def index_fields(position: int, index: StoredIndex) -> list[pa.Field]:
    """Columns of one index."""
    kept_as = kept_type(index.data_type)
    parts: dict[str, pa.DataType] = {KNOWN: pa.bool_(), PRESENT: pa.bool_()}
    if index.name == MIN_MAX:
        parts |= {MINIMUM: kept_as, MAXIMUM: kept_as}
    elif index.name == VALUE_LIST:
        parts |= {SET: pa.large_list(kept_as)}
    elif index.name == BLOOM:
        parts |= {FILTER: pa.large_binary()}
    return [pa.field(row_column(position, part), kept) for part, kept in parts.items()]


# Columns of a metadata store's indexes, decoded into the parts that `storedrows` lists.


@dataclass(frozen=True)
class Decoded:
    """One index of one part file."""

    data_type: str | None
    """Spark type of its values; None where neither store nor values show it."""
    parts: dict[str, pa.Array]
    """Columns by their names without the position."""
    reason: str = ""
    """Unreadable values; empty when there are none."""


def decode(column: pa.Array, index: StoredIndex, calendar: Calendar) -> Decoded:
    """The column of an index; unreadable values are unknown, with the reason."""
    is_java = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    match index.name:
        case layout.BLOOM if is_java:
            return _blooms(column)
        case layout.MIN_MAX if is_java:
            return _old(column, index, _both_bounds)
        case layout.VALUE_LIST if is_java:
            return _old(column, index, javastream.read_values)
        case layout.MIN_MAX if pa.types.is_struct(column.type):
            return _bounds(column, index, calendar)
        case layout.VALUE_LIST if is_list:
            return _sets(column, index, calendar)
    return _unknown(column, index, "an index of this type and form is not read")


def nothing_known(part: str, part_type: pa.DataType, count: int) -> pa.Array:
    """A part's column for files without facts about an index."""
    return pa.repeat(False, count) if part in (KNOWN, PRESENT) else pa.nulls(count, part_type)


def _unknown(column: pa.Array, index: StoredIndex, reason: str) -> Decoded:
    types = {field.name.partition(".")[2]: field.type for field in index_fields(0, index)}
    parts = {part: nothing_known(part, each, len(column)) for part, each in types.items()}
    return Decoded(index.data_type, parts, reason)


def _bounds(column: pa.Array, index: StoredIndex, calendar: Calendar) -> Decoded:
    data_type = index.data_type or ""
    names = [field.name for field in column.type]
    kept = [
        # A NULL struct has fields of no meaning beneath it.
        from_store(pc.if_else(column.is_valid(), column.field(name), None), data_type)
        for name in ("min", "max")
        if name in names
    ]
    if len(kept) != 2 or kept[0] is None or kept[1] is None:
        return _unknown(column, index, "its values have another type than in the schema")
    present = pc.or_(kept[0].is_valid(), kept[1].is_valid())
    minimum, maximum = (pc.if_else(_sure(each, data_type, calendar), each, None) for each in kept)
    known = pa.repeat(True, len(column))
    parts = {KNOWN: known, PRESENT: present, MINIMUM: minimum, MAXIMUM: maximum}
    return Decoded(data_type, parts)


def _sure(values: pa.Array, data_type: str, calendar: Calendar) -> pa.Array:
    return pc.invert(pc.fill_null(unsure(values, data_type, calendar), False))


def _sets(column: pa.Array, index: StoredIndex, calendar: Calendar) -> Decoded:
    data_type = index.data_type or ""
    rows = pc.list_parent_indices(column)
    values = from_store(pc.list_flatten(column), data_type)
    if values is None:
        return _unknown(column, index, "its values have another type than in the schema")
    rows, values = rows.filter(values.is_valid()), values.drop_null()
    doubtful = rows.filter(pc.invert(_sure(values, data_type, calendar)))
    everyone = pa.array(range(len(column)), rows.type)
    known = pc.invert(pc.is_in(everyone, value_set=doubtful))
    parts = {
        KNOWN: known,
        PRESENT: pc.is_in(everyone, value_set=rows),
        SET: pc.if_else(known, _lists(rows, values, len(column)), None),
    }
    return Decoded(data_type, parts)


def _lists(rows: pa.Array, values: pa.Array, count: int) -> pa.Array:
    starts = rows.to_numpy().searchsorted(range(count + 1))
    return pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), values)


def _blooms(column: pa.Array) -> Decoded:
    filters: list[bytes | None] = []
    reason = ""
    for data in column.to_pylist():
        try:
            filters.append(None if data is None else javastream.read_bloom(data))
        except javastream.StreamInvalid as error:
            filters.append(None)
            reason = str(error)
    kept = pa.array(filters, pa.large_binary())
    return Decoded(None, {KNOWN: kept.is_valid(), PRESENT: kept.is_valid(), FILTER: kept}, reason)


def _both_bounds(data: bytes) -> list[javastream.TypedValue]:
    minimum, maximum = javastream.read_bounds(data)
    if minimum is None and maximum is None:
        return []
    if minimum is None or maximum is None:
        raise javastream.StreamInvalid("it has one bound only")
    return [minimum, maximum]


def _old(
    column: pa.Array, index: StoredIndex, read: Callable[[bytes], list[javastream.TypedValue]]
) -> Decoded:
    found: list[list[javastream.TypedValue] | None] = []
    reason = ""
    for data in column.to_pylist():
        try:
            found.append([] if data is None else read(data))
        except javastream.StreamInvalid as error:
            found.append(None)
            reason = str(error)
    types = {name for row in found if row for name, _ in row}
    values = [None if row is None else [value for _, value in row] for row in found]
    data_type = _one_type(types, values)
    if data_type is None:
        return _unknown(column, index, reason or "its values are of several types or of none")
    known = pa.array([row is not None for row in values])
    present = pa.array([bool(row) for row in values])
    parts = {KNOWN: known, PRESENT: present}
    kept_as = kept_type(data_type)
    if index.name == MIN_MAX:
        parts[MINIMUM] = pa.array([row[0] if row else None for row in values], kept_as)
        parts[MAXIMUM] = pa.array([row[1] if row else None for row in values], kept_as)
    else:
        parts[SET] = pa.array(values, pa.large_list(kept_as))
    return Decoded(data_type, parts, reason)


def _one_type(types: set[str], values: Sequence[Sequence[Value] | None]) -> str | None:
    if len(types) != 1:
        return None
    (only,) = types
    if only != javastream.DECIMAL:
        return only
    exponents = [
        value.as_tuple().exponent
        for row in values
        if row
        for value in row
        if isinstance(value, Decimal)
    ]
    scale = max((-each for each in exponents if isinstance(each, int)), default=0)
    return f"decimal(38,{max(scale, 0)})"

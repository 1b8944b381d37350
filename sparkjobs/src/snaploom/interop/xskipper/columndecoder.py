"""Columns of a metadata store's indexes, decoded into the parts that `storedrows` lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.interop.xskipper import layout
from snaploom.interop.xskipper.bloomstream import read_bloom
from snaploom.interop.xskipper.javastream import StreamInvalid
from snaploom.interop.xskipper.layout import MIN_MAX, StoredIndex
from snaploom.interop.xskipper.oldvalues import (
    DECIMAL,
    TypedValue,
    read_bounds,
    read_values,
)
from snaploom.interop.xskipper.storedrows import (
    FILTER,
    KNOWN,
    MAXIMUM,
    MINIMUM,
    PRESENT,
    SET,
    index_fields,
    kept_type,
)
from snaploom.interop.xskipper.values import Calendar, from_store, unsure
from snaploom.skipping.core.terms import Value


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
    match index.name:
        case layout.BLOOM if is_java:
            return _blooms(column)
        case layout.MIN_MAX if is_java:
            return _old(column, index, _both_bounds)
        case layout.VALUE_LIST if is_java:
            return _old(column, index, read_values)
        case layout.MIN_MAX if pa.types.is_struct(column.type):
            return _bounds(column, index, calendar)
        case layout.VALUE_LIST if _is_list(column.type):
            return _sets(column, index, calendar)
    return _unknown(column, index, "an index of this type and form is not read")


def _is_list(column_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(column_type) or pa.types.is_large_list(column_type))


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
            filters.append(None if data is None else read_bloom(data))
        except StreamInvalid as error:
            filters.append(None)
            reason = str(error)
    kept = pa.array(filters, pa.large_binary())
    return Decoded(None, {KNOWN: kept.is_valid(), PRESENT: kept.is_valid(), FILTER: kept}, reason)


def _both_bounds(data: bytes) -> list[TypedValue]:
    minimum, maximum = read_bounds(data)
    if minimum is None and maximum is None:
        return []
    if minimum is None or maximum is None:
        raise StreamInvalid("it has one bound only")
    return [minimum, maximum]


def _old(
    column: pa.Array, index: StoredIndex, read: Callable[[bytes], list[TypedValue]]
) -> Decoded:
    found: list[list[TypedValue] | None] = []
    reason = ""
    for data in column.to_pylist():
        try:
            found.append([] if data is None else read(data))
        except StreamInvalid as error:
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
    if only != DECIMAL:
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

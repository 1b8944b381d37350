"""The table of simple types with a column for each system, and Arrow's types as Spark's."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from snaploom.types.schemas import (
    MOST_DIGITS,
    Array,
    Decimal,
    Field,
    Map,
    Simple,
    Struct,
    Type,
    describe,
    quote,
)


@dataclass(frozen=True)
class SimpleType:
    """A type without parts, as each system has it."""

    spark: str
    """Spark's name in the JSON of schemas."""
    sql: str
    """Spark's name in SQL."""
    arrow: pa.DataType
    """The type of Arrow as which Spark exchanges it."""
    wider: tuple[pa.DataType, ...] = ()
    """Further types of Arrow whose values it holds."""


TABLE = (
    SimpleType("boolean", "boolean", pa.bool_()),
    SimpleType("byte", "tinyint", pa.int8()),
    SimpleType("short", "smallint", pa.int16(), (pa.uint8(),)),
    SimpleType("integer", "int", pa.int32(), (pa.uint16(),)),
    SimpleType("long", "bigint", pa.int64(), (pa.uint32(),)),
    SimpleType("float", "float", pa.float32(), (pa.float16(),)),
    SimpleType("double", "double", pa.float64()),
    SimpleType("string", "string", pa.string(), (pa.large_string(), pa.string_view())),
    SimpleType("binary", "binary", pa.binary(), (pa.large_binary(), pa.binary_view())),
    SimpleType("date", "date", pa.date32(), (pa.date64(),)),
    SimpleType("timestamp", "timestamp", pa.timestamp("us", "UTC")),
    SimpleType("timestamp_ntz", "timestamp_ntz", pa.timestamp("us")),
    SimpleType("interval day to second", "interval day to second", pa.duration("us")),
    SimpleType("void", "void", pa.null()),
)

_OF_SPARK = {row.spark: row.arrow for row in TABLE}
_OF_ARROW = {kind: row.spark for row in TABLE for kind in (row.arrow, *row.wider)}


def arrow_type(wanted: Type) -> pa.DataType:
    """The type of Arrow as which Spark exchanges a type; all of its parts may be null.

    Raises:
        ValueError: Arrow has none.
    """
    match wanted:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])
        case Simple(name) if name in _OF_SPARK:
            return _OF_SPARK[name]
    raise ValueError(f"Arrow has no type for {describe(wanted)}")


def arrow_schema(schema: Struct) -> pa.Schema:
    """Columns of Arrow as which Spark exchanges those of a schema; raises as `arrow_type`."""
    return pa.schema([pa.field(one.name, arrow_type(one.type)) for one in schema.fields])


def schema_of_arrow(schema: pa.Schema, seen: str) -> Struct:
    """The schema as which Spark reads columns of Arrow; `seen` names its file, for messages.

    Raises:
        ValueError: Spark has no type for a column.
    """
    return _struct(list(schema), seen)


def _struct(fields: list[pa.Field], seen: str) -> Struct:
    found = []
    for field in fields:
        data_type = spark_type(field.type, seen)
        if data_type is None:
            raise ValueError(f"Spark has no type for {quote(field.name)}, which is {field.type}")
        found.append(Field(field.name, data_type, nullable=True, metadata="{}"))
    return Struct(tuple(found), seen)


def spark_type(found: pa.DataType, seen: str = "") -> Type | None:
    """Spark's type for values of Arrow; None where it has none that holds them."""
    found = plain(found)
    name = _OF_ARROW.get(found)
    if name is not None:
        return Simple(name, seen)
    if found == pa.uint64():
        return Decimal(20, 0, seen)
    if pa.types.is_decimal(found):
        is_held = 0 <= found.scale <= found.precision <= MOST_DIGITS
        return Decimal(found.precision, found.scale, seen) if is_held else None
    if pa.types.is_timestamp(found):
        return Simple("timestamp_ntz" if found.tz is None else "timestamp", seen)
    if pa.types.is_duration(found):
        return Simple("interval day to second", seen)
    if pa.types.is_fixed_size_binary(found):
        return Simple("binary", seen)
    if pa.types.is_struct(found):
        return _struct(list(found), seen)
    if pa.types.is_map(found):
        key, value = spark_type(found.key_type, seen), spark_type(found.item_type, seen)
        return None if key is None or value is None else Map(key, value, True, seen)
    if is_list(found):
        element = spark_type(found.value_type, seen)
        return None if element is None else Array(element, True, seen)
    return None


def plain(found: pa.DataType) -> pa.DataType:
    """The type of the values, however they are encoded."""
    while isinstance(found, pa.BaseExtensionType):
        found = found.storage_type
    if pa.types.is_dictionary(found) or pa.types.is_run_end_encoded(found):
        return plain(found.value_type)
    return found


def is_list(found: pa.DataType) -> bool:
    """Whether values are lists, of any form."""
    return bool(
        pa.types.is_list(found)
        or pa.types.is_large_list(found)
        or pa.types.is_fixed_size_list(found)
        or pa.types.is_list_view(found)
        or pa.types.is_large_list_view(found)
    )

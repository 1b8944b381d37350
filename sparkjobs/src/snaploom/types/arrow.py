"""Types of Arrow as Spark's, both ways."""

import pyarrow as pa

from snaploom.types import schemas


def _of_alias(alias: str) -> pa.DataType:
    is_zoned = alias == "timestamp[us, UTC]"
    return pa.timestamp("us", "UTC") if is_zoned else pa.type_for_alias(alias)


_OF_SPARK = {each.spark: _of_alias(each.arrow) for each in schemas.SIMPLE_TYPES if each.arrow} | {
    "interval day to second": pa.duration("us")
}
OF_SQL = {
    each.sql: _of_alias(each.arrow) for each in schemas.SIMPLE_TYPES if each.arrow and each.kept
}
"""Types of Arrow, as Spark exchanges them, by the names in SQL of those that indexes keep."""
KEPT = {each.sql: _of_alias(each.kept) for each in schemas.SIMPLE_TYPES if each.kept}
"""Types of Arrow in which indexes keep values, by the names in SQL."""
_OF_ARROW = {kind: name for name, kind in _OF_SPARK.items()} | {
    pa.uint8(): "short", pa.uint16(): "integer", pa.uint32(): "long", pa.float16(): "float",
    pa.large_string(): "string", pa.string_view(): "string", pa.large_binary(): "binary",
    pa.binary_view(): "binary", pa.date64(): "date",
}  # fmt: skip
"""Further types have values that Spark's type holds."""


def arrow_type(wanted: schemas.Type) -> pa.DataType:
    """The type of Arrow as which Spark exchanges a type; all of its parts may be null.

    Raises:
        ValueError: Arrow has none.
    """
    match wanted:
        case schemas.Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case schemas.Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case schemas.Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case schemas.Struct(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])
        case schemas.Simple(name) if name in _OF_SPARK:
            return _OF_SPARK[name]
    raise ValueError(f"Arrow has no type for {schemas.describe(wanted)}")


def arrow_schema(schema: schemas.Struct) -> pa.Schema:
    """Columns of Arrow as which Spark exchanges those of a schema; raises as `arrow_type`."""
    return pa.schema([pa.field(one.name, arrow_type(one.type)) for one in schema.fields])


def schema_of_arrow(schema: pa.Schema, seen: str) -> schemas.Struct:
    """The schema as which Spark reads columns of Arrow; `seen` names its file, for messages."""
    return _struct(list(schema), seen)


def _struct(fields: list[pa.Field], seen: str) -> schemas.Struct:
    found = []
    for field in fields:
        data_type = spark_type(field.type, seen)
        if data_type is None:
            raise ValueError(
                f"Spark has no type for {schemas.quote(field.name)}, which is {field.type}"
            )
        found.append(schemas.Field(field.name, data_type, nullable=True, metadata="{}"))
    return schemas.Struct(tuple(found), seen)


def spark_type(found: pa.DataType, seen: str = "") -> schemas.Type | None:
    """Spark's type for values of Arrow; None where it has none that holds them."""
    found = plain(found)
    name = _OF_ARROW.get(found)
    if name is not None:
        return schemas.Simple(name, seen)
    if found == pa.uint64():
        return schemas.Decimal(20, 0, seen)
    if pa.types.is_decimal(found):
        is_held = 0 <= found.scale <= found.precision <= schemas.MOST_DIGITS
        return schemas.Decimal(found.precision, found.scale, seen) if is_held else None
    if pa.types.is_timestamp(found):
        return schemas.Simple("timestamp_ntz" if found.tz is None else "timestamp", seen)
    if pa.types.is_duration(found):
        return schemas.Simple("interval day to second", seen)
    if pa.types.is_fixed_size_binary(found):
        return schemas.Simple("binary", seen)
    if pa.types.is_struct(found):
        return _struct(list(found), seen)
    if pa.types.is_map(found):
        key, value = spark_type(found.key_type, seen), spark_type(found.item_type, seen)
        return None if key is None or value is None else schemas.Map(key, value, True, seen)
    if is_list(found):
        element = spark_type(found.value_type, seen)
        return None if element is None else schemas.Array(element, True, seen)
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

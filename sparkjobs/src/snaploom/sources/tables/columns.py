"""Columns as Iceberg declares them, in the document that its library reads."""

from collections.abc import Iterator, Mapping
from itertools import count

from pydantic import JsonValue
from pyspark.sql import types as spark

from snaploom.spark.types import fold_case

_SIMPLE: Mapping[type[spark.DataType], str] = {
    spark.BooleanType: "boolean",
    spark.ByteType: "int",
    spark.ShortType: "int",
    spark.IntegerType: "int",
    spark.LongType: "long",
    spark.FloatType: "float",
    spark.DoubleType: "double",
    spark.StringType: "string",
    spark.BinaryType: "binary",
    spark.DateType: "date",
    spark.TimestampType: "timestamptz",
    spark.TimestampNTZType: "timestamp",
}


def has_type(data_type: spark.DataType) -> bool:
    """Whether Iceberg has a column type for one that is not made of others."""
    return isinstance(data_type, spark.DecimalType) or type(data_type) in _SIMPLE


def iceberg_schema(schema: spark.StructType) -> dict[str, JsonValue]:
    """The columns as the document that Iceberg's `SchemaParser` reads; ids are provisional.

    Raises:
        KeyError: a type that `has_type` denies.
    """
    return {"schema-id": 0, **_struct(schema, count(1))}


def renamed(schema: spark.StructType, table: JsonValue) -> list[str]:
    """Columns that a table has in other letters, by path: Iceberg distinguishes `ID` and `id`.

    `table` has the existing columns, as in Iceberg's document.
    """
    return list(_renamed(schema, table, ""))


def _renamed(data_type: spark.DataType, table: JsonValue, path: str) -> Iterator[str]:
    if not isinstance(table, dict):
        return
    match data_type:
        case spark.StructType():
            listed = table.get("fields")
            known = {
                fold_case(str(one["name"])): one
                for one in (listed if isinstance(listed, list) else [])
                if isinstance(one, dict) and "name" in one
            }
            for field in data_type.fields:
                found = known.get(fold_case(field.name))
                if found is None:
                    continue
                here = f"{path}{field.name}"
                if found["name"] != field.name:
                    yield f"{here} (was {found['name']})"
                yield from _renamed(field.dataType, found.get("type"), f"{here}.")
        case spark.ArrayType():
            yield from _renamed(data_type.elementType, table.get("element"), f"{path}element.")
        case spark.MapType():
            yield from _renamed(data_type.keyType, table.get("key"), f"{path}key.")
            yield from _renamed(data_type.valueType, table.get("value"), f"{path}value.")


def _type(data_type: spark.DataType, ids: Iterator[int]) -> JsonValue:
    match data_type:
        case spark.StructType():
            return _struct(data_type, ids)
        case spark.ArrayType():
            return {
                "type": "list",
                "element-id": next(ids),
                "element": _type(data_type.elementType, ids),
                "element-required": False,
            }
        case spark.MapType():
            return {
                "type": "map",
                "key-id": next(ids),
                "key": _type(data_type.keyType, ids),
                "value-id": next(ids),
                "value": _type(data_type.valueType, ids),
                "value-required": False,
            }
        case spark.DecimalType():
            return f"decimal({data_type.precision}, {data_type.scale})"
        case _:
            return _SIMPLE[type(data_type)]


def _struct(struct: spark.StructType, ids: Iterator[int]) -> dict[str, JsonValue]:
    fields: list[JsonValue] = [
        {
            "id": next(ids),
            "name": field.name,
            "required": False,
            "type": _type(field.dataType, ids),
        }
        for field in struct.fields
    ]
    return {"type": "struct", "fields": fields}

"""Data types as declarations write them, and as Spark has them.

Spark knows types that a declaration cannot name (intervals of days, text with a collation,
variants); they pass through the engine untouched and match no declaration.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as spark

from snaploom.models.common import (
    ArrayType,
    DataType,
    DecimalType,
    Empty,
    MapType,
    SchemaField,
    StructType,
)

_SIMPLE: dict[str, spark.DataType] = {
    "binary": spark.BinaryType(),
    "boolean": spark.BooleanType(),
    "byte": spark.ByteType(),
    "calendarInterval": spark.CalendarIntervalType(),
    "date": spark.DateType(),
    "double": spark.DoubleType(),
    "float": spark.FloatType(),
    "integer": spark.IntegerType(),
    "long": spark.LongType(),
    "null": spark.NullType(),
    "short": spark.ShortType(),
    "string": spark.StringType(),
    "timestamp": spark.TimestampType(),
    "timestampNtz": spark.TimestampNTZType(),
}


def to_spark(declared: DataType) -> spark.DataType:
    """The Spark type of a declared type."""
    if declared.array is not None:
        return spark.ArrayType(to_spark(declared.array.element_type), declared.array.contains_null)
    if declared.map_ is not None:
        entry = declared.map_
        return spark.MapType(
            to_spark(entry.key_type), to_spark(entry.value_type), entry.value_contains_null
        )
    if declared.struct is not None:
        return struct_of(declared.struct.fields_)
    if declared.decimal is not None:
        return spark.DecimalType(declared.decimal.precision, declared.decimal.scale)
    return _SIMPLE[DataType.variant_of(declared)]


def struct_of(fields: Iterable[SchemaField]) -> spark.StructType:
    """The Spark schema of declared fields, with their nullability and metadata."""
    return spark.StructType(
        [
            spark.StructField(
                field.name, to_spark(field.data_type), field.nullable, dict(field.metadata)
            )
            for field in fields
        ]
    )


def from_spark(actual: spark.DataType) -> DataType | None:
    """The declaration of a Spark type; None when declarations have no name for it."""
    if isinstance(actual, spark.ArrayType):
        element = from_spark(actual.elementType)
        if element is None:
            return None
        return DataType(array=ArrayType(element_type=element, contains_null=actual.containsNull))
    if isinstance(actual, spark.MapType):
        key, value = from_spark(actual.keyType), from_spark(actual.valueType)
        if key is None or value is None:
            return None
        nulls = actual.valueContainsNull
        return DataType(map_=MapType(key_type=key, value_type=value, value_contains_null=nulls))
    if isinstance(actual, spark.StructType):
        return _from_struct(actual)
    if isinstance(actual, spark.DecimalType):
        return DataType(decimal=DecimalType(precision=actual.precision, scale=actual.scale))
    tag = next((tag for tag, simple in _SIMPLE.items() if simple == actual), None)
    return None if tag is None else DataType.model_validate({tag: Empty()})


def _from_struct(actual: spark.StructType) -> DataType | None:
    fields: list[SchemaField] = []
    for field in actual.fields:
        data_type = from_spark(field.dataType)
        if data_type is None:
            return None
        metadata = {key: str(value) for key, value in (field.metadata or {}).items()}
        fields.append(
            SchemaField(
                name=field.name, data_type=data_type, nullable=field.nullable, metadata=metadata
            )
        )
    return DataType(struct=StructType(fields_=tuple(fields))) if fields else None

"""Metadata of columns: the same rows under a schema that differs in metadata only.

Spark keeps metadata beside a column's type; that of a field inside a struct is part of the struct's
type, so that it is changed by a cast which leaves every value as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.planning.fieldpaths import quote

Metadata = dict[str, object]
MetadataChange = Callable[[str, Metadata], Metadata]
"""From coordinate (see `below`) and metadata of a field to the metadata that it is to have."""


def relabelled(frame: DataFrame, schema: spark.StructType) -> DataFrame:
    """The same rows with the metadata of a schema that differs from the frame's in nothing else."""
    if frame.schema == schema:
        return frame
    pairs = zip(frame.schema.fields, schema.fields, strict=True)
    return frame.select(*(_column(own, wanted) for own, wanted in pairs))


def _column(own: spark.StructField, wanted: spark.StructField) -> Column:
    column = sf.col(quote(own.name))
    if own.dataType != wanted.dataType:
        column = column.cast(wanted.dataType)
    elif own.metadata == wanted.metadata:
        return column
    return column.alias(own.name, metadata=wanted.metadata)


def without_metadata(schema: spark.StructType) -> spark.StructType:
    """The schema with no metadata on any field."""
    return changed(schema, lambda _coordinate, _metadata: {})


def changed(schema: spark.StructType, change: MetadataChange) -> spark.StructType:
    """The schema with the metadata of every field changed, those inside others included."""
    found = _changed(schema, "", change)
    assert isinstance(found, spark.StructType)
    return found


def below(coordinate: str, name: str) -> str:
    """The coordinate of a field inside another (rule W20): names joined by `:`.

    Arrays add no name of their own, `list:field` is a field of the list's elements; maps add `key`
    or `value`.
    """
    return f"{coordinate}:{name}" if coordinate else name


def _changed(data_type: spark.DataType, at: str, change: MetadataChange) -> spark.DataType:
    match data_type:
        case spark.StructType():
            return spark.StructType([_field(field, at, change) for field in data_type.fields])
        case spark.ArrayType():
            element = _changed(data_type.elementType, at, change)
            return spark.ArrayType(element, data_type.containsNull)
        case spark.MapType():
            return spark.MapType(
                _changed(data_type.keyType, below(at, "key"), change),
                _changed(data_type.valueType, below(at, "value"), change),
                data_type.valueContainsNull,
            )
    return data_type


def _field(field: spark.StructField, at: str, change: MetadataChange) -> spark.StructField:
    here = below(at, field.name)
    return spark.StructField(
        field.name,
        _changed(field.dataType, here, change),
        field.nullable,
        change(here, dict(field.metadata or {})),
    )

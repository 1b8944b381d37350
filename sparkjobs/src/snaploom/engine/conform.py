"""Frames of older or newer schemas, made to look like the merged one.

Struct fields are matched by name ignoring case, numbers are widened, what is absent is NULL; a
NULL struct stays NULL instead of becoming a struct of NULLs.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.planning.fieldpaths import quote


def conform_frame(frame: DataFrame, schema: spark.StructType) -> DataFrame:
    """The frame's rows under a schema that its own was merged into."""
    own = {field.name.casefold(): field for field in frame.schema.fields}
    columns = []
    for field in schema.fields:
        source = own.get(field.name.casefold())
        if source is None:
            column = sf.lit(None).cast(field.dataType)
        else:
            column = conform(sf.col(quote(source.name)), source.dataType, field.dataType)
        columns.append(column.alias(field.name, metadata=field.metadata))
    return frame.select(*columns)


def conform(column: Column, own: spark.DataType, wanted: spark.DataType) -> Column:
    """A value of one type as the wider one; the types must have been merged."""
    match own, wanted:
        case spark.StructType(), spark.StructType():
            return sf.when(column.isNotNull(), _struct(column, own, wanted))
        case spark.ArrayType(), spark.ArrayType():
            elements, target = own.elementType, wanted.elementType
            return sf.transform(column, lambda element: conform(element, elements, target))
        case spark.MapType(), spark.MapType():
            return _map(column, own, wanted)
    return column if own == wanted else column.cast(wanted)


def _struct(column: Column, own: spark.StructType, wanted: spark.StructType) -> Column:
    fields = {field.name.casefold(): field for field in own.fields}
    parts = []
    for field in wanted.fields:
        source = fields.get(field.name.casefold())
        if source is None:
            part = sf.lit(None).cast(field.dataType)
        else:
            part = conform(column.getField(source.name), source.dataType, field.dataType)
        parts.append(part.alias(field.name, metadata=field.metadata))
    return sf.struct(*parts)


def _map(column: Column, own: spark.MapType, wanted: spark.MapType) -> Column:
    keys = sf.transform(sf.map_keys(column), lambda key: conform(key, own.keyType, wanted.keyType))
    values = sf.transform(
        sf.map_values(column), lambda value: conform(value, own.valueType, wanted.valueType)
    )
    return sf.when(column.isNotNull(), sf.map_from_arrays(keys, values))

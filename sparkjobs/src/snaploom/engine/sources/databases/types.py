"""Columns of a table in their declared types: never rounded, never cut short.

Handing the declared types to Spark would make the driver convert, each in its own way: some read a
number that does not fit as another number. So a column is read as what it is, and converted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.fields import fold_case
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import SchemaField
from snaploom.planning.fieldpaths import quote

_WIDER = (
    (spark.DateType, spark.TimestampType),
    (spark.TimestampNTZType, spark.TimestampType),
)
"""Pairs besides numbers and texts: a day is its first moment, a local time is one in UTC."""
_AS_TEXT = (
    spark.NumericType,
    spark.BooleanType,
    spark.DateType,
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.CharType,
    spark.VarcharType,
)


def as_declared(frame: DataFrame, fields: Sequence[SchemaField] | None, resource: str) -> DataFrame:
    """The declared columns in their declared types; everything as it is where none are declared.

    Raises:
        SourceSchemaInvalid: a column is not there, is of another kind, or Spark would change it.
    """
    if fields is None:
        _refuse_changed(frame.schema.fields, resource)
        return frame
    by_name = {fold_case(field.name): field for field in frame.schema.fields}
    wrong: list[str] = []
    columns: list[Column] = []
    for declared in fields:
        found = by_name.get(fold_case(declared.name))
        wanted = to_spark(declared.data_type)
        column = None if found is None else _converted(found, wanted)
        if column is None:
            actual = "no such column" if found is None else found.dataType.simpleString()
            wrong.append(f"{declared.name}: {actual}, declared as {wanted.simpleString()}")
        else:
            columns.append(column.alias(declared.name, metadata=dict(declared.metadata)))
    if wrong:
        raise SourceSchemaInvalid(
            f"{len(wrong)} of {len(fields)} columns do not fit their declaration",
            resource=resource,
            path="spec.jdbc.schemaFields",
            found="; ".join(wrong),
            expected="columns that the table has, of types that hold their values",
            hint="the table was changed, or schemaFields was never right: correct it",
        )
    read = (by_name[fold_case(field.name)] for field in fields)
    _refuse_changed(read, resource)
    return frame.select(*columns)


def _refuse_changed(read: Iterable[spark.StructField], resource: str) -> None:
    """Refuse columns whose values Spark would change before anybody sees them."""
    changed = [f"{field.name}: {why}" for field in read if (why := _change(field))]
    if changed:
        raise SourceSchemaInvalid(
            "Spark cannot read columns as they are",
            resource=resource,
            path="spec.jdbc.tableReference",
            found="; ".join(changed),
            expected="columns that Spark has types for",
            hint="leave them out by schemaFields, or read a view that casts them",
        )


def _change(field: spark.StructField) -> str:
    """Spark's change of the values of a column, from its metadata; empty for none."""
    digits = field.metadata.get("scale", 0)
    if isinstance(field.dataType, spark.DecimalType) and digits > field.dataType.scale:
        return f"of {digits} digits after the point, {field.dataType.scale} would be left"
    return "bits would become text" if field.metadata.get("binarylong") else ""


def _converted(found: spark.StructField, wanted: spark.DataType) -> Column | None:
    column, actual = sf.col(quote(found.name)), found.dataType
    if actual.simpleString() == wanted.simpleString():
        return column
    if isinstance(actual, spark.NumericType) and isinstance(wanted, spark.NumericType):
        converted = column.try_cast(wanted)
        message = f"a value of column {found.name} does not fit {wanted.simpleString()}: "
        fault = sf.raise_error(sf.concat(sf.lit(message), column.cast("string"))).cast(wanted)
        fits = column.isNull() | sf.coalesce(converted.try_cast(actual) == column, sf.lit(False))
        return sf.when(fits, converted).otherwise(fault)
    if isinstance(wanted, spark.StringType) and isinstance(actual, _AS_TEXT):
        return column.cast(wanted)
    if any(isinstance(actual, a) and isinstance(wanted, w) for a, w in _WIDER):
        return column.cast(wanted)
    return None

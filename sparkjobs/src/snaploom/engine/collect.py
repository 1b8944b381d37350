"""Grouping: the rows of a source that share a key become one array, in an order of their own.

Rows are grouped by the *evaluated* join key, not by the raw fields: two raw keys that evaluate to
one (`lower(code)`) would otherwise give the parent two matches, and the one shuffle by this key
serves grouping and join alike. Rows with a NULL in it can never match and are dropped first (rule
W26). Spark collects in the order in which tasks end; sorting makes equal data give equal files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark


def collect_groups(frame: DataFrame, keys: Sequence[str], packed: str) -> DataFrame:
    """One row a key: the key columns, and a sorted array of the rows, named `packed`."""
    whole = reduce(and_, [sf.col(key).isNotNull() for key in keys])
    array = _sorted_list(sf.col(packed), frame.schema[packed].dataType)
    return frame.where(whole).groupBy(*keys).agg(array.alias(packed))


def _sorted_list(packed: Column, data_type: spark.DataType) -> Column:
    if is_orderable(data_type):
        return sf.sort_array(sf.collect_list(packed))
    ordered = sf.struct(orderable_form(packed, data_type).alias("o"), packed.alias("v"))
    return sf.transform(sf.array_sort(sf.collect_list(ordered), _compare), lambda e: e["v"])


def _compare(left: Column, right: Column) -> Column:
    return sf.when(left["o"] < right["o"], -1).when(left["o"] > right["o"], 1).otherwise(0)


def is_orderable(data_type: spark.DataType) -> bool:
    """Whether Spark can sort values of a type."""
    if isinstance(data_type, spark.StructType):
        return all(is_orderable(field.dataType) for field in data_type.fields)
    if isinstance(data_type, spark.ArrayType):
        return is_orderable(data_type.elementType)
    return not isinstance(data_type, (spark.MapType, spark.VariantType, spark.CalendarIntervalType))


def orderable_form(value: Column, data_type: spark.DataType) -> Column:
    """A value that sorts, and is equal only for equal values: maps become sorted entries."""
    if is_orderable(data_type):
        return value
    if isinstance(data_type, spark.MapType):
        return sf.sort_array(
            sf.transform(
                sf.map_entries(value),
                lambda e: sf.struct(e["key"], orderable_form(e["value"], data_type.valueType)),
            )
        )
    if isinstance(data_type, spark.ArrayType):
        return sf.transform(value, lambda e: orderable_form(e, data_type.elementType))
    if isinstance(data_type, spark.StructType):
        # The first member distinguishes a NULL struct from a struct of NULLs.
        members = [orderable_form(value.getField(f.name), f.dataType) for f in data_type.fields]
        return sf.struct(value.isNull(), *members)
    return value.cast("string")

"""Which types the data may have where a relationship declares another one.

Columns widen: files of last year have `int` where those of today have `bigint`, and Spark infers
`int` of a CSV file whose identifiers are small. Such a field is the declared one wherever its
values come to the same key: the type that both sides are cast to holds every value of the data's
type, and two values that are equal come to one value of it. As text that is so for whole numbers,
and for decimals with the same digits after the point; not for `float` beside `double`, whose texts
differ.

Where they come to another key, as 1.50 and 1.5000 do as text, data is cast to the declared type
first, if that type holds every value of the data's type (decision 0047). What a query gives for a
value may depend on its type, as a hash does: it reads such data as the declared type.
"""

from __future__ import annotations

from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.fields import matches
from snaploom.models.datarelationship import KeyComponent, KeyField
from snaploom.planning.sqlgate.width import depends_on_width

_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 19,
}
"""Decimal digits of the largest value of each whole number."""

_EXACT_DIGITS: dict[type[spark.DataType], int] = {spark.FloatType: 7, spark.DoubleType: 15}
"""Digits of whole numbers that binary fractions hold without loss (IEEE 754: 24 and 53 bits)."""


_FLOATS = (spark.FloatType, spark.DoubleType)
_TIMES = (spark.TimestampType, spark.TimestampNTZType)


def is_of_declared_type(field: KeyField, actual: spark.DataType, component: KeyComponent) -> bool:
    """Whether data of a type gives the key that the declared type would give."""
    if _gives_declared_keys(field, actual, component):
        return True
    return first_cast(field, actual, component) is not None


def first_cast(
    field: KeyField, actual: spark.DataType, component: KeyComponent
) -> spark.DataType | None:
    """The declared type, where data is cast to it before anything else; None where it is not."""
    declared = to_spark(field.data_type)
    if component.query is not None:
        is_as_declared = matches(field.data_type, actual)
        is_whole = not is_as_declared and _are_whole(declared, actual)
        if is_whole and depends_on_width(component.query):
            return declared
    else:
        is_as_declared = _gives_declared_keys(field, actual, component)
    return declared if not is_as_declared and holds(declared, actual) else None


def _gives_declared_keys(field: KeyField, actual: spark.DataType, component: KeyComponent) -> bool:
    """Whether data of a type, as it is, gives the key that the declared type would give."""
    if matches(field.data_type, actual):
        return True
    declared = to_spark(field.data_type)
    if component.query is not None:
        # A wider one is cast where it matters (`first_cast`).
        return _are_whole(declared, actual)
    wanted = to_spark(component.cast_data_type)
    if isinstance(wanted, spark.StringType):
        scale, other_scale = _scale(declared), _scale(actual)
        return scale is not None and scale == other_scale
    if isinstance(declared, _FLOATS) and isinstance(actual, _FLOATS):
        return isinstance(wanted, spark.DoubleType)
    if _scale(declared) is None or _scale(actual) is None:
        return False
    # A narrower type has no value that the declared one has not.
    return holds(declared, actual) or holds(wanted, actual)


def _are_whole(one: spark.DataType, other: spark.DataType) -> bool:
    return type(one) in _DIGITS and type(other) in _DIGITS


def _scale(data_type: spark.DataType) -> int | None:
    """Digits after the point of an exact number; None for other types."""
    if isinstance(data_type, spark.DecimalType):
        return data_type.scale
    return 0 if type(data_type) in _DIGITS else None


def holds(wanted: spark.DataType, given: spark.DataType) -> bool:
    """Whether a type has every value of another one, so that a cast to it loses nothing.

    A day is the midnight that begins it, in the session's zone, which is UTC in a run. Text holds
    nothing but text: 7 would not be the 007 that was declared.
    """
    if wanted == given:
        return True
    if isinstance(given, spark.DateType):
        return isinstance(wanted, _TIMES)
    if isinstance(given, spark.FloatType):
        return isinstance(wanted, spark.DoubleType)
    scale = _scale(given)
    if scale is None:
        return False
    whole = given.precision - scale if isinstance(given, spark.DecimalType) else _digits(given)
    if isinstance(wanted, spark.DecimalType):
        return wanted.scale >= scale and wanted.precision - wanted.scale >= whole
    if type(wanted) in _EXACT_DIGITS:
        return scale == 0 and whole <= _EXACT_DIGITS[type(wanted)]
    if scale:
        return False
    if isinstance(given, spark.DecimalType):
        return whole < _digits(wanted)
    return whole <= _digits(wanted)


def _digits(data_type: spark.DataType) -> int:
    return _DIGITS.get(type(data_type), 0)

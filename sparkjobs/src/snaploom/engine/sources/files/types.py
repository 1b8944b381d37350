"""Types that files have, against those that are declared for them (decision 0043).

Spark's readers of Parquet, ORC and Avro are given the declared types and convert what they find:
ORC reads text as NULL where a number is declared, Parquet cuts off the upper bytes of an integer
and reads a decimal's digits as a whole number, Avro a number as a date. So a file's own types are
compared with the declared ones first, and only a type that holds every value of the file's is
passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import types as spark

from snaploom.engine.fields import fold_case
from snaploom.engine.schemadocument import HIVE_PLACE

_DIGITS: Mapping[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 19,
}
"""Whole numbers, each wider than those before it, and the most digits of one."""
_EXACT_IN: Mapping[type[spark.DataType], tuple[type[spark.DataType], ...]] = {
    spark.FloatType: (spark.ByteType, spark.ShortType),
    spark.DoubleType: (spark.ByteType, spark.ShortType, spark.IntegerType, spark.FloatType),
}
"""Types of which a binary fraction holds every value: it has 24 or 53 bits for digits."""
_SAME_BYTES: Mapping[str, frozenset[tuple[type[spark.DataType], type[spark.DataType]]]] = {
    # Parquet keeps text as bytes, which older writers do not mark as text, and both kinds of
    # timestamps as microseconds.
    "parquet": frozenset(
        [
            (spark.BinaryType, spark.StringType),
            (spark.StringType, spark.BinaryType),
            (spark.DateType, spark.TimestampNTZType),
            (spark.TimestampType, spark.TimestampNTZType),
            (spark.TimestampNTZType, spark.TimestampType),
        ]
    )
}
"""Types of a file and declared ones by format, which its reader takes for each other unchanged."""


@dataclass(frozen=True, slots=True)
class TypeMismatch:
    """A column of a file whose declared type does not hold all values of its own."""

    place: int
    """Place of the declared column, from 0."""
    path: str
    found: str
    """The file's type, by Spark's name."""
    expected: str


def type_mismatches(
    own: spark.StructType, declared: spark.StructType, data_format: str
) -> Iterator[TypeMismatch]:
    """The columns whose values reading would change or lose; pure.

    `own` has at least the declared columns; a column that files lack is no mismatch. The format is
    `parquet`, `orc` or `avro`.
    """
    by_place = data_format == "orc" and _is_by_place(own.names)
    fields = {fold_case(field.name): field for field in own.fields}
    for place, field in enumerate(declared.fields):
        found = fields.get(fold_case(field.name))
        if by_place:
            found = own.fields[place] if place < len(own.fields) else None
        if found is None:
            continue
        inner = _mismatches(found.dataType, field.dataType, data_format, field.name)
        for path, one, other in inner:
            yield TypeMismatch(place, path, one.simpleString(), other.simpleString())


def _is_by_place(names: list[str]) -> bool:
    return bool(names) and all(name.startswith(HIVE_PLACE) for name in names)


def _mismatches(
    own: spark.DataType, declared: spark.DataType, data_format: str, path: str
) -> Iterator[tuple[str, spark.DataType, spark.DataType]]:
    match own, declared:
        case spark.StructType(), spark.StructType():
            fields = {fold_case(field.name): field.dataType for field in own.fields}
            for field in declared.fields:
                found = fields.get(fold_case(field.name))
                if found is not None:
                    inner = f"{path}.{field.name}"
                    yield from _mismatches(found, field.dataType, data_format, inner)
        case spark.ArrayType(), spark.ArrayType():
            elements = own.elementType, declared.elementType
            yield from _mismatches(*elements, data_format, f"{path}[]")
        case spark.MapType(), spark.MapType():
            keys, values = (own.keyType, declared.keyType), (own.valueType, declared.valueType)
            yield from _mismatches(*keys, data_format, f"{path}{{key}}")
            yield from _mismatches(*values, data_format, f"{path}{{value}}")
        case _:
            if not _holds(own, declared, data_format):
                yield path, own, declared


def _holds(own: spark.DataType, declared: spark.DataType, data_format: str) -> bool:
    """Whether a type without parts holds all values of another, as the format is read."""
    if own == declared or isinstance(own, spark.NullType):
        return True
    one, other = type(own), type(declared)
    if (one, other) in _SAME_BYTES.get(data_format, ()):
        return True
    if one in _DIGITS and other in _DIGITS:
        return _DIGITS[one] <= _DIGITS[other]
    if isinstance(declared, spark.DecimalType):
        scale = own.scale if isinstance(own, spark.DecimalType) else 0
        digits = own.precision if isinstance(own, spark.DecimalType) else _DIGITS.get(one, 99)
        whole = declared.precision - declared.scale
        return declared.scale >= scale and whole >= digits - scale
    return one in _EXACT_IN.get(other, ())

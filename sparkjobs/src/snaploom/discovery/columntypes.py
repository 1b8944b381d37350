"""Types of columns: those that files have, and those that values of text fit.

A declared type has to hold every value, also of files that nobody looked at: so whole numbers are
`long`, fractions `double`, and what is not certain is `string`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.models.common import ArrayType, DataType, DecimalType, Empty, SchemaField, StructType

WHOLE_TEXT = r"^(0|-?[1-9][0-9]{0,17})$"
FRACTION_TEXT = r"^-?((0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?|\.[0-9]{1,15})([eE][+-]?[0-9]{1,2})?$"
DATE_TEXT = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
TIME_TEXT = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[T ]"
    r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?$"
)
NULL_TEXTS = ("NULL", "null", "NA", "N/A", "\\N", "None", "NaN")
"""Texts that exports write for a missing value."""


class Family(StrEnum):
    """Types whose values can be equal."""

    WHOLE = "whole number"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    OTHER = "other"
    """Fractions, booleans and everything nested: no part of a key."""


@dataclass(frozen=True)
class ColumnType:
    """A type as declarations have it."""

    data_type: DataType
    family: Family


LONG = ColumnType(DataType(long=Empty()), Family.WHOLE)
STRING = ColumnType(DataType(string=Empty()), Family.TEXT)
DOUBLE = ColumnType(DataType(double=Empty()), Family.OTHER)
BOOLEAN = ColumnType(DataType(boolean=Empty()), Family.OTHER)
DATE = ColumnType(DataType(date=Empty()), Family.DATE)
TIMESTAMP = ColumnType(DataType(timestamp=Empty()), Family.TIME)


def type_of_arrow(found: pa.DataType) -> ColumnType:
    """The type that Spark reads a column of a Parquet or ORC file as."""
    if pa.types.is_dictionary(found):
        return type_of_arrow(found.value_type)
    for is_type, data_type in _WHOLES:
        if is_type(found):
            return ColumnType(data_type, Family.WHOLE)
    if pa.types.is_string(found) or pa.types.is_large_string(found) or found == pa.string_view():
        return STRING
    if pa.types.is_date(found):
        return DATE
    if pa.types.is_timestamp(found):
        if found.tz is not None:
            return TIMESTAMP
        return ColumnType(DataType(timestamp_ntz=Empty()), Family.TIME)
    if pa.types.is_decimal(found):
        decimal = DecimalType(precision=min(found.precision, 38), scale=max(found.scale, 0))
        return ColumnType(
            DataType(decimal=decimal), Family.WHOLE if found.scale == 0 else Family.OTHER
        )
    if pa.types.is_boolean(found):
        return BOOLEAN
    return DOUBLE if pa.types.is_float64(found) else _OTHER


_OTHER = ColumnType(DataType(binary=Empty()), Family.OTHER)
_WHOLES = (
    (pa.types.is_int8, DataType(byte=Empty())),
    (pa.types.is_int16, DataType(short=Empty())),
    (pa.types.is_int32, DataType(integer=Empty())),
    (pa.types.is_int64, DataType(long=Empty())),
    (pa.types.is_uint8, DataType(short=Empty())),
    (pa.types.is_uint16, DataType(integer=Empty())),
    (pa.types.is_uint32, DataType(long=Empty())),
)


@dataclass(frozen=True)
class TextColumn:
    """A column of text with the type that its values fit."""

    type: ColumnType
    values: pa.Array
    """Of that type where it is a key's, else as they are; NULL for no value."""
    null_text: str | None
    """The text that stands for no value; None where none is needed."""


def type_of_texts(values: pa.Array) -> TextColumn:
    """The type that all values of a column of CSV fit.

    A value that is not written is NULL, `""` an empty text.
    """
    given = pc.unique(values.drop_null())
    if len(given) == 0:
        return TextColumn(STRING, values, None)
    found = _fitting(given)
    if found is not None:
        return TextColumn(found, values, None)
    for text in ("", *NULL_TEXTS):
        rest = given.filter(pc.not_equal(given, text))
        if 0 < len(rest) < len(given):
            found = _fitting(rest)
            if found is not None:
                is_null = pc.equal(values, text)
                return TextColumn(found, pc.if_else(is_null, None, values), text)
    return TextColumn(STRING, values, None)


def _fitting(texts: pa.Array) -> ColumnType | None:
    for pattern, found in (
        (WHOLE_TEXT, LONG),
        (FRACTION_TEXT, DOUBLE),
        (DATE_TEXT, DATE),
        (TIME_TEXT, TIMESTAMP),
        (r"^(true|false|TRUE|FALSE|True|False)$", BOOLEAN),
    ):
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            return found
    return None


def type_of_json(values: Sequence[object]) -> ColumnType:
    """The type that all values of a field of JSON fit; NULL fits any."""
    given = [value for value in values if value is not None]
    kinds = {type(value) for value in given}
    if kinds == {bool}:
        return BOOLEAN
    if kinds == {int}:
        return LONG if all(isinstance(v, int) and abs(v) < 2**63 for v in given) else STRING
    if kinds and kinds <= {int, float}:
        return DOUBLE
    if kinds == {dict}:
        return ColumnType(_struct(given), Family.OTHER)
    if kinds == {list}:
        inner = [item for value in given if isinstance(value, list) for item in value]
        element = type_of_json(inner).data_type
        return ColumnType(DataType(array=ArrayType(element_type=element)), Family.OTHER)
    if kinds == {str}:
        texts = [value for value in given if isinstance(value, str)]
        for pattern, found in ((DATE_TEXT, DATE), (TIME_TEXT, TIMESTAMP)):
            if all(re.match(pattern, text) for text in texts):
                return found
    return STRING


def _struct(values: Sequence[object]) -> DataType:
    fields: dict[str, list[object]] = {}
    for value in values:
        if isinstance(value, dict):
            for name, inner in value.items():
                fields.setdefault(str(name), []).append(inner)
    if not fields:
        return DataType(string=Empty())
    return DataType(struct=StructType(fields_=tuple(
        SchemaField(name=name, data_type=type_of_json(inner).data_type)
        for name, inner in fields.items()
    )))  # fmt: skip

"""Columns of Avro as Arrow has them: values as they are stored become those that they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa
from pydantic import JsonValue

_PLAIN = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "bytes": pa.binary(), "enum": pa.string(),
    "fixed": pa.binary(),
}  # fmt: skip
_TIMES = {
    "date": pa.date32(), "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"), "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"), "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}  # fmt: skip
"""Types of logical types whose stored numbers Arrow has as they are."""
_NESTED = pa.null()
"""Of records, arrays and maps, which are no part of a key: their values are left out."""


def avro_table(schema: dict[str, JsonValue], records: Sequence[dict[str, object]]) -> pa.Table:
    """Records as a table."""
    given = schema.get("fields")
    fields = (
        [field for field in given if isinstance(field, dict)] if isinstance(given, list) else []
    )
    names = [str(field["name"]) for field in fields]
    columns = [
        _column([record[name] for record in records], field.get("type"))
        for name, field in zip(names, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=names)


def _column(values: Sequence[object], declared: JsonValue) -> pa.Array:
    found, convert = _type_of(declared)
    if found == _NESTED:
        return pa.array([None if value is None else b"" for value in values], pa.binary())
    return pa.array([None if value is None else convert(value) for value in values], found)


def _same(value: object) -> object:
    return value


def _type_of(declared: JsonValue) -> tuple[pa.DataType, Callable[[object], object]]:
    """The type of a column, and the conversion of its stored values."""
    if isinstance(declared, list):
        others = [each for each in declared if each != "null"]
        found = [_type_of(each) for each in others]
        if len(found) == 1:
            return found[0]
        if {str(each) for each in others} == {"int", "long"}:
            return pa.int64(), _same
        return _NESTED, _same
    if isinstance(declared, str):
        return _PLAIN.get(declared, _NESTED), _same
    if not isinstance(declared, dict):
        return _NESTED, _same
    logical, kind = declared.get("logicalType"), declared.get("type")
    if logical in _TIMES and kind in ("int", "long"):
        return _TIMES[str(logical)], _same
    scale, precision = declared.get("scale", 0), declared.get("precision")
    if logical == "decimal" and isinstance(scale, int) and isinstance(precision, int):
        if 1 <= precision <= 38 and 0 <= scale <= precision:
            return pa.decimal128(precision, scale), _decimals(scale)
        return _NESTED, _same
    if isinstance(kind, str):
        return _PLAIN.get(kind, _NESTED), _same
    return _type_of(kind)


def _decimals(scale: int) -> Callable[[object], object]:
    def convert(stored: object) -> object:
        assert isinstance(stored, bytes)
        return Decimal(f"{int.from_bytes(stored, 'big', signed=True)}E-{scale}")

    return convert

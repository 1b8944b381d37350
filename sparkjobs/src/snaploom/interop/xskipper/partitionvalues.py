"""Values of partition columns, from the names of folders.

Only the reference's partition filter reads them. Where a name does not show plainly what the value
is (a timestamp has a session's time zone), it stays NULL: the reference then takes the file
for one that is not indexed, and reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from snaploom.skipping.core.terms import Value, arrow_type

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Folder name for NULL."""

_EPOCH = date(1970, 1, 1).toordinal()

_READERS: dict[str, Callable[[str], Value]] = {
    "tinyint": int,
    "smallint": int,
    "int": int,
    "bigint": int,
    "float": float,
    "double": float,
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "date": lambda text: date.fromisoformat(text).toordinal() - _EPOCH,
}


def partition_values(paths: Sequence[str], column: str, data_type: str) -> pa.Array:
    """Value in each path, in Catalyst's internal form; NULL where it is not plain."""
    known: dict[str, Value | None] = {}
    values: list[Value | None] = []
    for path in paths:
        text = _folder(path, column)
        if text not in known:
            known[text] = _value(text, data_type)
        values.append(known[text])
    return pa.array(values, arrow_type(data_type))


def _folder(path: str, column: str) -> str:
    for segment in reversed(path.split("/")[:-1]):
        name, equals, text = segment.partition("=")
        if equals and _decoded(name) == column.encode():
            return text
    return HIVE_NULL


def _decoded(text: str) -> bytes:
    return unquote_to_bytes(text)


def _value(text: str, data_type: str) -> Value | None:
    if text == HIVE_NULL:
        return None
    decoded = _decoded(text)
    if data_type in ("string", "binary"):
        return decoded
    try:
        if data_type.startswith("decimal("):
            value: Value = Decimal(decoded.decode())
        else:
            value = _READERS[data_type](decoded.decode())
        pa.scalar(value, arrow_type(data_type))
    except (ValueError, KeyError, InvalidOperation, pa.ArrowException, OverflowError):
        return None
    return value

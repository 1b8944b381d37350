"""Values of documents (JSON) for values of Spark (Arrow), both ways.

OpenSearch keeps a document as it was sent: a number may stand there as text, a moment as
milliseconds, and any field may hold several values. What does not fit the schema is an error that
names the field, never a NULL.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructType

from snaploom.errors import IndexUnreadable, SkippingError
from snaploom.interop.flintspark.schemas import DOCUMENT_ID, simple_name
from snaploom.interop.opensearch.shardreader import Hit

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class ValueNotWritable(SkippingError):
    """A value that JSON or OpenSearch cannot hold."""

    reason = "ValueNotWritable"


def row_of(hit: Hit, schema: StructType) -> dict[str, object]:
    """A document as a row of a schema; `IndexUnreadable` for values of another type."""
    return {
        field.name: hit.document_id
        if field.name == DOCUMENT_ID
        else _read(field.name, _member(hit.source, field.name), field.dataType)
        for field in schema.fields
    }


def _member(source: Mapping[str, Any], name: str) -> Any:
    if name in source or "." not in name:
        return source.get(name)
    outer, _, rest = name.partition(".")
    inner = source.get(outer)
    return _member(inner, rest) if isinstance(inner, Mapping) else None


def _read(name: str, value: Any, data_type: DataType) -> object:
    if isinstance(data_type, ArrayType):
        if value is None:
            return None
        values = value if isinstance(value, list) else [value]
        return [_read(name, one, data_type.elementType) for one in values]
    if isinstance(value, list):
        if len(value) > 1:
            raise IndexUnreadable(
                f"the field {name} holds several values",
                found=f"{len(value)} values",
                expected=data_type.simpleString(),
                hint=f"give a schema with {name} ARRAY<{data_type.simpleString()}>",
            )
        value = value[0] if value else None
    if value is None:
        return None
    try:
        if isinstance(data_type, StructType):
            return {
                field.name: _read(
                    f"{name}.{field.name}", _member(value, field.name), field.dataType
                )
                for field in data_type.fields
            }
        return _READERS[simple_name(data_type)](value)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise IndexUnreadable(
            f"the field {name} holds a value of another type",
            found=json.dumps(value)[:80],
            expected=data_type.simpleString(),
            hint="give a schema with the type of these values",
        ) from error


def _boolean(value: Any) -> bool:
    return {True: True, False: False, "true": True, "false": False, "": False}[value]


def _integer(value: Any) -> int:
    # OpenSearch itself cuts what stands behind the point.
    if isinstance(value, bool):
        raise TypeError("a truth value")
    return value if isinstance(value, int) else int(float(value))


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError("a truth value")
    return float(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _date(value: Any) -> dt.date:
    return dt.date.fromisoformat(value)


def _moment(value: Any) -> dt.datetime:
    if isinstance(value, int | float) or (value.lstrip("-").isdigit() and len(value) > 4):
        return _EPOCH + dt.timedelta(milliseconds=float(value))
    # `strict_date_optional_time` needs no more than the year.
    whole = value + "-01-01"[len(value) - 4 :] if len(value) in (4, 7) else value
    moment = dt.datetime.fromisoformat(whole)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _local(value: Any) -> dt.datetime:
    return _moment(value).astimezone(dt.UTC).replace(tzinfo=None)


_READERS: Mapping[str, Callable[[Any], object]] = {
    "boolean": _boolean,
    "bigint": _integer,
    "int": _integer,
    "smallint": _integer,
    "tinyint": _integer,
    "double": _number,
    "float": _number,
    "string": _text,
    "binary": lambda value: base64.b64decode(value, validate=True),
    "date": _date,
    "timestamp": _moment,
    "timestamp_ntz": _local,
}


def written(name: str, value: Any) -> Any:
    """Arrow value as JSON, without NULLs of structs; `ValueNotWritable` for NaN or year 10000."""
    if isinstance(value, Mapping):
        return {key: written(f"{name}.{key}", one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [written(name, one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueNotWritable(
            f"the column {name} has a value that OpenSearch cannot hold",
            found=str(value),
            expected="a finite number, or NULL",
            hint="replace such values before writing, or leave the column out",
        )
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        utc = value.astimezone(dt.UTC).replace(tzinfo=None)
        return utc.isoformat(timespec="microseconds") + "Z"
    return value.isoformat() if isinstance(value, dt.date) else value

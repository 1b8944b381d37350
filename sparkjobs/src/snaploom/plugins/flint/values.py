"""Values, schemas and filters between Spark and documents of OpenSearch."""

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from snaploom.errors import IndexNotPossible, IndexUnreadable, SkippingError
from snaploom.plugins.flint.documents import EVERYTHING, Hit
from snaploom.plugins.flint.metadata import OWN, field_of, type_of
from snaploom.spark.types import SIMPLE
from snaploom.types.arrow import OF_SQL

# Schemas of Spark for mappings of OpenSearch, both ways, and as Arrow (see `flintfields`).

TEXT = {"osType": "text"}
"""Metadata of a string that is a `text` field."""

DOCUMENT_ID = "_id"
"""Column of a given schema that is filled with the documents' ids."""


def schema_of(properties: Mapping[str, Any], outer: str = "") -> StructType:
    """The schema of a mapping's properties."""
    fields = []
    for name, field in properties.items():
        if name == OWN and not outer:
            continue
        whole = f"{outer}{name}"
        kind = str(field.get("type", "object"))
        if kind in ("object", "nested"):
            if not field.get("properties"):
                raise IndexNotPossible(
                    f"the mapping does not contain the fields of {whole}",
                    found="an object without properties",
                    hint="give a schema",
                )
            inner = schema_of(field["properties"], f"{whole}.")
            data_type: DataType = ArrayType(inner) if kind == "nested" else inner
        else:
            data_type = SIMPLE[type_of(whole, field)]
        fields.append(StructField(name, data_type, True, TEXT if kind == "text" else None))
    return StructType(fields)


def mapping_of_schema(schema: StructType, outer: str = "") -> dict[str, object]:
    """The properties of a mapping for a schema; an array has the field of its elements."""
    return {field.name: _field(f"{outer}{field.name}", field) for field in schema.fields}


def _field(name: str, field: StructField) -> dict[str, object]:
    data_type = field.dataType
    if isinstance(data_type, ArrayType):
        data_type = data_type.elementType
    if isinstance(data_type, StructType):
        return {"properties": mapping_of_schema(data_type, f"{name}.")}
    if field.metadata.get("osType") == "text" and isinstance(data_type, StringType):
        return {"type": "text"}
    found = field_of(simple_name(data_type))
    if found is None:
        raise _no_field(name, field.dataType)
    return found


def _no_field(name: str, data_type: DataType) -> IndexNotPossible:
    return IndexNotPossible(
        f"OpenSearch has no field for the column {name}",
        found=data_type.simpleString(),
        expected=", ".join([*OF_SQL, "struct", "array of one of these"]),
        hint="cast it: a decimal to STRING or DOUBLE, a map to an array of structs",
    )


def simple_name(data_type: DataType) -> str:
    """The `catalogString` of a simple type; text of any kind is `string`."""
    return "string" if isinstance(data_type, StringType) else data_type.simpleString()


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Schema of batches of a Python data source, without metadata; else `IndexNotPossible`."""
    return pa.schema([_arrow_field(field.name, field) for field in schema.fields])


def _arrow_field(name: str, field: StructField) -> pa.Field:
    return pa.field(field.name, _arrow_type(name, field.dataType), field.nullable)


def _arrow_type(name: str, data_type: DataType) -> pa.DataType:
    if isinstance(data_type, ArrayType):
        element = _arrow_type(name, data_type.elementType)
        return pa.list_(pa.field("element", element, data_type.containsNull))
    if isinstance(data_type, StructType):
        return pa.struct([_arrow_field(f"{name}.{one.name}", one) for one in data_type.fields])
    if simple_name(data_type) not in OF_SQL:
        raise _no_field(name, data_type)
    return OF_SQL[simple_name(data_type)]


# Values of documents (JSON) for values of Spark (Arrow), both ways.

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class ValueNotWritable(SkippingError):
    """A value that JSON or OpenSearch cannot hold."""


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
    "date": dt.date.fromisoformat,
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
        )
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        utc = value.astimezone(dt.UTC).replace(tzinfo=None)
        return utc.isoformat(timespec="microseconds") + "Z"
    return value.isoformat() if isinstance(value, dt.date) else value


# Filters of Spark as queries of OpenSearch that match at least the same documents.

Query = Mapping[str, object]

MOST_VALUES = 1000
"""Longest IN that is sent; OpenSearch refuses more than 65,536."""

_HARMLESS = frozenset({"type", "format", "doc_values", "store"})
"""Settings of a field that change nothing about which documents a query matches."""

_EXACT = frozenset({"string", "boolean", "bigint", "int", "smallint", "tinyint"})
"""Types for which `term` means equality, so that it may be negated."""

_RANGES: Mapping[type[datasource.Filter], str] = {
    datasource.LessThan: "lt",
    datasource.LessThanOrEqual: "lte",
    datasource.GreaterThan: "gt",
    datasource.GreaterThanOrEqual: "gte",
}


def query_of(
    filters: Iterable[datasource.Filter], schema: StructType, properties: Mapping[str, Any]
) -> Query:
    """One query for all filters that can be sent, which are ANDed."""
    parts = [_part(one, schema, properties) for one in filters]
    sent = [part for part in parts if part is not None]
    return {"bool": {"filter": sent}} if sent else EVERYTHING


def _part(
    one: datasource.Filter, schema: StructType, properties: Mapping[str, Any]
) -> Query | None:
    if isinstance(one, datasource.Not):
        inner = one.child
        if not isinstance(inner, datasource.EqualTo | datasource.In):
            return None
        kind = _kind(inner.attribute, schema, properties)
        found = _part(inner, schema, properties)
        if kind not in _EXACT or found is None:
            return None
        return {"bool": {"filter": [_exists(inner.attribute)], "must_not": [found]}}
    attribute = getattr(one, "attribute", ())
    kind = _kind(attribute, schema, properties)
    if kind is None:
        return None
    if isinstance(one, datasource.IsNotNull):
        return _exists(attribute)
    if isinstance(one, datasource.IsNull) or (
        isinstance(one, datasource.EqualNullSafe) and one.value is None
    ):
        return {"bool": {"must_not": [_exists(attribute)]}}
    return _comparison(one, ".".join(attribute), kind)


def _comparison(one: datasource.Filter, name: str, kind: str) -> Query | None:
    if isinstance(one, datasource.StringStartsWith):
        return {"prefix": {name: one.value}} if kind == "string" and one.value else None
    if isinstance(one, datasource.In):
        values = [value for value in one.value if value is not None]
        if kind not in _EXACT or not values or len(values) > MOST_VALUES:
            return None
        return {"terms": {name: values}} if all(_fits(value, kind) for value in values) else None
    value = getattr(one, "value", None)
    if not _fits(value, kind):
        return None
    if isinstance(one, datasource.EqualTo | datasource.EqualNullSafe):
        if kind in _EXACT:
            return {"term": {name: value}}
        return {"range": {name: {"gte": _least(value), "lte": _most(value), **_format(kind)}}}
    bound = _RANGES.get(type(one))
    if bound is None or kind == "boolean":
        return None
    limit = _most(value) if bound.startswith("l") else _least(value)
    # Strictly beyond a rounded limit would leave out what lies between it and the true one.
    operator = bound[0] + "te" if kind in ("timestamp", "double", "float") else bound
    return {"range": {name: {operator: limit, **_format(kind)}}}


def _kind(
    attribute: tuple[str, ...], schema: StructType, properties: Mapping[str, Any]
) -> str | None:
    data_type = _column_type(attribute, schema)
    field = _plain_field(attribute, properties)
    if data_type is None or field is None or not set(field) <= _HARMLESS:
        return None
    kind = simple_name(data_type)
    if field.get("type") in ("text", "binary") or field_of(kind) is None:
        return None
    try:
        return kind if type_of(".".join(attribute), field) == kind else None
    except IndexNotPossible:
        return None


def _column_type(attribute: tuple[str, ...], schema: StructType) -> DataType | None:
    found: DataType = schema
    for name in attribute:
        if not isinstance(found, StructType) or name not in found.fieldNames() or "." in name:
            return None
        found = found[name].dataType
    return None if attribute in ((), (DOCUMENT_ID,)) else found


def _plain_field(
    attribute: tuple[str, ...], properties: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    field: Mapping[str, Any] = {"properties": properties}
    for name in attribute:
        if field.get("type", "object") != "object" or name not in field.get("properties", {}):
            return None
        field = field["properties"][name]
    return field


def _exists(attribute: tuple[str, ...]) -> Query:
    return {"exists": {"field": ".".join(attribute)}}


_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "bigint": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "double": lambda value: isinstance(value, float) and abs(value) < float("inf"),
    "date": lambda value: isinstance(value, dt.date) and not isinstance(value, dt.datetime),
    "timestamp": lambda value: isinstance(value, dt.datetime) and value.tzinfo is not None,
}


def _fits(value: object, kind: str) -> bool:
    known = {"int": "bigint", "smallint": "bigint", "tinyint": "bigint", "float": "double"}
    check = _VALUES.get(known.get(kind, kind))
    return check is not None and check(value)


def _least(value: Any) -> object:
    return _limit(value, -0.0)


def _most(value: Any) -> object:
    return _limit(value, 0.0)


def _limit(value: Any, zero: float) -> object:
    if isinstance(value, float):
        return value or zero
    if isinstance(value, dt.datetime):
        # Both limits are cut: OpenSearch cuts the moments of documents in the same way.
        utc = value.astimezone(dt.UTC).replace(tzinfo=None)
        return utc.isoformat(timespec="milliseconds") + "Z"
    return value.isoformat() if isinstance(value, dt.date) else value


def _format(kind: str) -> Mapping[str, str]:
    formats = {"date": "strict_date", "timestamp": "strict_date_optional_time"}
    return {"format": formats[kind]} if kind in formats else {}

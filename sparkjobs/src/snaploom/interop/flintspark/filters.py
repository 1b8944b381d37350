"""Filters of Spark as queries of OpenSearch that match at least the same documents.

Every filter is evaluated by Spark again, so a query only must not lose a document; where it could,
the filter stays with Spark: text that is analysed, fields that leave values out (`ignore_above`,
`ignore_malformed`), types that differ between schema and mapping. Moments are compared in
milliseconds by OpenSearch, so their limits are moved outwards; -0.0 and 0.0, which Spark takes as
equal and OpenSearch does not, are both let in.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.types import DataType, StructType

from snaploom.errors import IndexNotPossible
from snaploom.interop.flint.fields import field_of, type_of
from snaploom.interop.flintspark.schemas import DOCUMENT_ID, simple_name
from snaploom.interop.opensearch.shardreader import EVERYTHING

Query = Mapping[str, object]

MOST_VALUES = 1000
"""Longest IN that is sent; OpenSearch refuses more than 65,536."""

_HARMLESS = frozenset({"type", "format", "doc_values", "store"})
"""Settings of a field that change nothing about which documents a query matches."""

_EXACT = frozenset({"string", "boolean", "bigint", "int", "smallint", "tinyint"})
"""Types for which `term` means equality, so that it may be negated."""

_RANGES: Mapping[type[Filter], str] = {
    LessThan: "lt",
    LessThanOrEqual: "lte",
    GreaterThan: "gt",
    GreaterThanOrEqual: "gte",
}


def query_of(filters: Iterable[Filter], schema: StructType, properties: Mapping[str, Any]) -> Query:
    """One query for all filters that can be sent, which are ANDed."""
    parts = [_part(one, schema, properties) for one in filters]
    sent = [part for part in parts if part is not None]
    return {"bool": {"filter": sent}} if sent else EVERYTHING


def _part(one: Filter, schema: StructType, properties: Mapping[str, Any]) -> Query | None:
    if isinstance(one, Not):
        inner = one.child
        if not isinstance(inner, EqualTo | In):
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
    if isinstance(one, IsNotNull):
        return _exists(attribute)
    if isinstance(one, IsNull) or (isinstance(one, EqualNullSafe) and one.value is None):
        return {"bool": {"must_not": [_exists(attribute)]}}
    return _comparison(one, ".".join(attribute), kind)


def _comparison(one: Filter, name: str, kind: str) -> Query | None:
    if isinstance(one, StringStartsWith):
        return {"prefix": {name: one.value}} if kind == "string" and one.value else None
    if isinstance(one, In):
        values = [value for value in one.value if value is not None]
        if kind not in _EXACT or not values or len(values) > MOST_VALUES:
            return None
        return {"terms": {name: values}} if all(_fits(value, kind) for value in values) else None
    value = getattr(one, "value", None)
    if not _fits(value, kind):
        return None
    if isinstance(one, EqualTo | EqualNullSafe):
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
    """The type of a column, where schema and mapping agree about it and omit nothing."""
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

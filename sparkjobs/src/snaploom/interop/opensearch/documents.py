"""Rows as documents: Flint's fields for others, and the whole row for us.

```
{"file_path": ..., <Flint's fields>,
 "_snaploom": {"segment": ..., "written_at": ..., "path": ..., "length": ..., "modified": ...,
               "etag": ..., "row": {"<id>": {"values": 3, "nulls": 0, "<field>": ...}}}}
```

`row` is exact and is not indexed by OpenSearch; what is null is left out. Binary values are base64,
decimals text, NaN and infinity text. Bloom filters are not kept twice: where Flint's field has its
bytes, `row` names the field.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa

from snaploom.errors import IndexNotPossible
from snaploom.interop.flint.fields import OWN
from snaploom.interop.opensearch.flintrows import ShownIndex, flint_fields
from snaploom.interop.opensearch.shardreader import Hit
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.indexes.registry import index_type

IDENTITY = tuple(name for name, _ in IDENTITY_FIELDS)

ROW_MAPPING: Mapping[str, object] = {
    "properties": {
        "segment": {"type": "keyword"},
        "written_at": {"type": "long"},
        "is_spare": {"type": "boolean"},
        "path": {"type": "keyword", "index": False, "doc_values": False},
        "row": {"type": "object", "enabled": False},
    },
    "dynamic": "false",
}

Values = dict[str, Any]


def kept_columns(indexes: Sequence[IndexDefinition]) -> dict[str, pa.DataType]:
    """Columns of rows about these indexes, with their types.

    A type that is not registered here has none: nobody here could use them.
    """
    columns: dict[str, pa.DataType] = {}
    for index in indexes:
        try:
            fields = index_type(index.type).fields(index)
        except IndexNotPossible:
            continue
        for position in range(len(index.terms)):
            suffix = f".{position}" if position else ""
            columns[f"{index.index_id}.values{suffix}"] = pa.int64()
            columns[f"{index.index_id}.nulls{suffix}"] = pa.int64()
        columns.update({f"{index.index_id}.{name}": kind for name, kind in fields.items()})
    return columns


def indexes_in(rows: pa.Table) -> frozenset[str]:
    """Ids of the indexes with columns in the rows."""
    return frozenset(name.split(".")[0] for name in rows.column_names if name not in IDENTITY)


def whole_documents(
    rows: pa.Table, shown: tuple[ShownIndex, ...], segment: str, written_at: int
) -> Iterator[Values]:
    """One document for each row, with Flint's fields."""
    encode = _encoders(rows.schema)
    blooms = [one for one in shown if one.index.type == "BLOOM_FILTER"]
    for row in _rows(rows):
        document: Values = flint_fields(row, shown)
        own = _own(row, encode, segment, written_at)
        for one in blooms:
            kept = own["row"].get(one.index.index_id, {})
            if document and "words" in kept:
                kept["words"] = {"field": one.fields[0]}
        yield {**document, OWN: own}


def partial_documents(rows: pa.Table, segment: str, written_at: int) -> Iterator[Values]:
    """One document for each row that completes others, without Flint's fields."""
    encode = _encoders(rows.schema)
    for row in _rows(rows):
        yield {OWN: _own(row, encode, segment, written_at)}


def _rows(rows: pa.Table) -> Iterator[Values]:
    for batch in rows.to_batches(max_chunksize=1000):
        yield from batch.to_pylist()


def _own(
    row: Values, encode: Mapping[str, Callable[[Any], object]], segment: str, written_at: int
) -> Values:
    kept: dict[str, Values] = {}
    for name, encoder in encode.items():
        if row[name] is not None:
            index_id, _, field = name.partition(".")
            kept.setdefault(index_id, {})[field] = encoder(row[name])
    identity = {name: row[name] for name in IDENTITY if row.get(name) is not None}
    return {"segment": segment, "written_at": written_at, **identity, "row": kept}


def _encoders(schema: pa.Schema) -> dict[str, Callable[[Any], object]]:
    return {field.name: _encoder(field.type) for field in schema if field.name not in IDENTITY}


def _encoder(kind: pa.DataType) -> Callable[[Any], object]:
    if _is_list(kind):
        member = _encoder(kind.value_type)
        return lambda values: [None if one is None else member(one) for one in values]
    if pa.types.is_struct(kind):
        inner = {field.name: _encoder(field.type) for field in kind}
        return lambda value: {
            name: None if value[name] is None else encoder(value[name])
            for name, encoder in inner.items()
        }
    if pa.types.is_floating(kind):
        return lambda value: value if abs(value) < float("inf") else str(value)
    if pa.types.is_decimal(kind):
        return str
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    return lambda value: value


def _decoder(kind: pa.DataType) -> Callable[[Any], object]:
    if _is_list(kind):
        member = _decoder(kind.value_type)
        return lambda values: [None if one is None else member(one) for one in values]
    if pa.types.is_struct(kind):
        inner = {field.name: _decoder(field.type) for field in kind}
        return lambda value: {
            name: None if value.get(name) is None else decoder(value[name])
            for name, decoder in inner.items()
        }
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_decimal(kind):
        return Decimal
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return lambda value: base64.b64decode(value, validate=True)
    return lambda value: value


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def decode_identity(hits: Sequence[Hit]) -> pa.Table:
    """Identity columns of documents."""
    return pa.table(
        {
            name: pa.array([hit.source[OWN].get(name) for hit in hits], kind)
            for name, kind in IDENTITY_FIELDS
        }
    )


def decode_columns(hits: Sequence[Hit], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Columns of documents, in the types that are given."""
    return pa.table({name: _decoded(hits, name, kind) for name, kind in columns.items()})


def _decoded(hits: Sequence[Hit], name: str, kind: pa.DataType) -> pa.Array:
    index_id, _, field = name.partition(".")
    decode = _decoder(kind)
    values = (_kept(hit.source, index_id, field) for hit in hits)
    return pa.array([None if value is None else decode(value) for value in values], kind)


def _kept(source: Values, index_id: str, field: str) -> object:
    value = source[OWN].get("row", {}).get(index_id, {}).get(field)
    if isinstance(value, dict) and set(value) == {"field"}:
        found: object = source
        for name in str(value["field"]).split("."):
            found = cast(Values, found)[name]
        return found
    return cast(object, value)


def source_fields(index_id: str, shown: Sequence[ShownIndex]) -> list[str]:
    """Fields of documents that hold the columns of one index."""
    borrowed = [field for one in shown if one.index.index_id == index_id for field in one.fields]
    return [f"{OWN}.path", f"{OWN}.row.{index_id}", *borrowed]

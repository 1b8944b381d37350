"""Rows as documents: read page by page, as readers of Flint see them, and written whole."""

import base64
import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
from opensearchpy.exceptions import NotFoundError

from snaploom.errors import IndexNotPossible
from snaploom.plugins.flint import metadata
from snaploom.plugins.flint.client import (
    IndexStoreFailed,
    Json,
    OpenSearchClient,
    no_such_index,
    repeated,
)
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, field_column, values_column
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.stores.port import StoredState

# Reads many documents of one shard, a page at a time, as they were at one moment.

KEEP_ALIVE = "5m"
"""Time for which OpenSearch keeps a moment after the last page was requested."""

MOST_HITS = 20_000_000
"""Documents of one index that are read: a server may announce more without end."""

EVERYTHING: Mapping[str, object] = {"match_all": {}}
"""The query that every document matches."""


@dataclass(frozen=True)
class Hit:
    """One document that a search found."""

    document_id: str
    source: Json
    """Its fields, or those that were asked for."""


def read_pages(
    client: OpenSearchClient,
    index: str,
    query: Mapping[str, object] = EVERYTHING,
    fields: Sequence[str] | None = None,
    shard: int | None = None,
) -> Iterator[list[Hit]]:
    """Pages of documents of an index, or one of its shards, that match a query."""
    shards = range(client.shards(index)) if shard is None else (shard,)
    for one in shards:
        yield from _shard_pages(client, index, query, fields, one)


def read_hits(
    client: OpenSearchClient,
    index: str,
    query: Mapping[str, object] = EVERYTHING,
    fields: Sequence[str] | None = None,
) -> Iterator[Hit]:
    """Documents of an index, or of one shard of it, one by one."""
    for page in read_pages(client, index, query, fields):
        yield from page


def _shard_pages(
    client: OpenSearchClient,
    index: str,
    query: Mapping[str, object],
    fields: Sequence[str] | None,
    shard: int,
) -> Iterator[list[Hit]]:
    moment = _open_moment(client, index, shard)
    try:
        body: dict[str, Any] = {
            "size": client.options.scroll_size,
            "query": query,
            "sort": ["_doc"],
            "track_total_hits": False,
            "_source": True if fields is None else {"includes": list(fields)},
        }
        found = 0
        while found <= MOST_HITS:
            body["pit"] = {"id": moment, "keep_alive": KEEP_ALIVE}
            answer = _search(client, index, body)
            moment = answer.get("pit_id", moment)
            hits = answer["hits"]["hits"]
            found += len(hits)
            if hits:
                yield [Hit(hit["_id"], hit.get("_source", {})) for hit in hits]
                body["search_after"] = hits[-1]["sort"]
            if len(hits) < client.options.scroll_size:
                return
        raise IndexStoreFailed(
            f"OpenSearch at {client.options.uri} has too many documents in {index}",
            found=f"more than {MOST_HITS:,}",
            expected="as many as one query may read",
            hint="read with a filter, or raise the limits of the index",
        )
    finally:
        client.close_moment(moment)


def _search(client: OpenSearchClient, index: str, body: Mapping[str, object]) -> Json:
    doing = f"search the index {index}"
    answer: Json = repeated(
        lambda: _page(client.library.search(body=dict(body))), client.options.uri, doing
    )
    # A page without the answer of its shard would be a page with documents missing.
    if answer.get("timed_out") or answer["_shards"]["failed"]:
        raise IndexStoreFailed(
            f"OpenSearch at {client.options.uri} did not {doing}",
            found="a shard failed or was too slow",
            expected="an answer of every shard",
        )
    return answer


def _page(answer: Json) -> Json:
    """Check an answer's fields; raises `LookupError` or `TypeError`."""
    _ = answer["_shards"]["failed"]
    for hit in answer["hits"]["hits"]:
        if not isinstance(hit["_id"], str) or not isinstance(hit.get("_source", {}), dict):
            raise TypeError("a hit that is no document")
        _ = hit["sort"]
    return answer


def _open_moment(client: OpenSearchClient, index: str, shard: int) -> str:
    params = {"keep_alive": KEEP_ALIVE, "preference": f"_shards:{shard}"}

    def create() -> str:
        try:
            return str(client.library.create_pit(index=index, params=params)["pit_id"])
        except NotFoundError:
            raise no_such_index(index, client.options.uri) from None

    return repeated(create, client.options.uri, f"open the index {index}")


# Flint's view of a row: the fields of its columns, in types of OpenSearch.

LONGEST_TERM = 8191
"""Characters of a text that OpenSearch surely indexes: 32,766 bytes, 4 for a character."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ZERO = dt.date(1970, 1, 1).toordinal()
_MILLISECOND = 1000

Row = Mapping[str, object]
"""One row of a table of rows: values by column, in Catalyst's internal form."""


class NotRepresentable(Exception):
    """A value that Flint's fields cannot hold; never leaves this package."""


@dataclass(frozen=True)
class ShownIndex:
    """An index that Flint's form can show."""

    index: IndexDefinition
    column: str
    """Name of the column, nested ones with dots."""
    fields: tuple[str, ...]
    """Fields of the document, with dots where they are nested."""


def shown_indexes(definition: SkippingDefinition) -> tuple[ShownIndex, ...]:
    """The indexes that Flint's form can show: one of its kinds over a column, one a column."""
    shown: list[ShownIndex] = []
    taken: set[str] = {metadata.FILE_PATH}
    for index in definition.indexes:
        names = index.terms[0].names if len(index.terms) == 1 else None
        if names is None or index.type not in _FIELDS or not all(map(_is_plain, names)):
            continue
        if metadata.field_of(index.term.data_type) is None or index.term.data_type == "binary":
            continue
        column = ".".join(names)
        fields = tuple(name.format(column) for name in _FIELDS[index.type])
        if any(_clash(field, other) for field in fields for other in taken):
            continue
        taken.update(fields)
        shown.append(ShownIndex(index, column, fields))
    return tuple(shown)


_FIELDS = {
    "PARTITION": ("{}",),
    "VALUE_SET": ("{}",),
    "BLOOM_FILTER": ("{}",),
    "MIN_MAX": metadata.MIN_MAX_FIELDS[0],
}


def _is_plain(name: str) -> bool:
    # Dots would nest, and names that begin with an underscore are OpenSearch's own, or ours.
    return bool(name.strip()) and "." not in name and not name.startswith("_")


def _clash(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def mapping_of(shown: ShownIndex) -> dict[str, dict[str, object]]:
    """The mapping of an index's fields, by field."""
    if shown.index.type == "BLOOM_FILTER":
        return {shown.fields[0]: {"type": "binary", "doc_values": True}}
    return {name: metadata.field_of(shown.index.term.data_type) or {} for name in shown.fields}


def metadata_of(
    state: StoredState, indexes: tuple[ShownIndex, ...], name: str, form: metadata.FlintForm
) -> metadata.FlintMetadata:
    """Metadata of a state with a definition for the mapping."""
    definition = cast(SkippingDefinition, state.definition)
    columns = [
        metadata.FlintColumn(
            kind=shown.index.type,
            name=shown.column,
            data_type=shown.index.term.data_type,
            parameters=dict(shown.index.parameters),
        )
        for shown in indexes
    ]
    return metadata.FlintMetadata(
        source=definition.target.label,
        columns=tuple(columns),
        name=name,
        options=dict(definition.properties),
        state=state.phase.value,
        enabled=definition.enabled,
        form=form,
    )


def flint_fields(row: Row, shown: tuple[ShownIndex, ...]) -> dict[str, object]:
    """The fields of a row, nested as the document is; empty when it cannot be written whole."""
    document: dict[str, object] = {}
    try:
        for one in shown:
            for field, value in zip(one.fields, _shown_values(row, one), strict=True):
                _put(document, field, value)
    except (NotRepresentable, UnicodeDecodeError, OverflowError):
        return {}
    document[metadata.FILE_PATH] = metadata.file_uri(str(row["path"]))
    return document


def _put(document: dict[str, object], field: str, value: object) -> None:
    if value is None:
        return
    *outer, last = field.split(".")
    for name in outer:
        document = cast(dict[str, object], document.setdefault(name, {}))
    document[last] = value


def _shown_values(row: Row, shown: ShownIndex) -> tuple[object, ...]:
    index = shown.index
    values = row.get(values_column(index.index_id))
    if values is None:
        raise NotRepresentable
    kept = [row.get(field_column(index.index_id, name)) for name in _KEPT[index.type]]
    if index.type == "VALUE_SET":
        # Flint takes a missing set as "over the limit", which keeps the file.
        members = cast("list[object] | None", kept[0])
        return (members and [_field_value(index, member) for member in members],)
    if values and any(value is None for value in kept):
        raise NotRepresentable
    if index.type == "BLOOM_FILTER":
        return (None if kept[0] is None else base64.b64encode(cast(bytes, kept[0])).decode(),)
    if index.type == "PARTITION":
        return (None if kept[0] is None else _field_value(index, kept[0]),)
    least, greatest = kept
    return (
        None if least is None else _field_value(index, least, _floor),
        None if greatest is None else _field_value(index, greatest, _ceiling),
    )


_KEPT = {
    "PARTITION": ("value",),
    "VALUE_SET": ("set",),
    "BLOOM_FILTER": ("words",),
    "MIN_MAX": ("min", "max"),
}


def _floor(micros: int) -> int:
    return micros - micros % _MILLISECOND


def _ceiling(micros: int) -> int:
    return micros + -micros % _MILLISECOND


def _exactly(micros: int) -> int:
    return micros


def _field_value(
    index: IndexDefinition, value: object, rounded: Callable[[int], int] = _exactly
) -> object:
    data_type = index.term.data_type
    if isinstance(value, float) and not math.isfinite(value):
        raise NotRepresentable
    if data_type == "string":
        text = cast(bytes, value).decode()
        if len(text) > LONGEST_TERM:
            raise NotRepresentable
        return text
    if data_type == "date":
        ordinal = cast(int, value) + _DAY_ZERO
        if not 1 <= ordinal <= dt.date.max.toordinal():
            raise NotRepresentable
        return dt.date.fromordinal(ordinal).isoformat()
    if data_type in ("timestamp", "timestamp_ntz"):
        moment = _EPOCH + dt.timedelta(microseconds=rounded(cast(int, value)))
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return value


# Rows as documents: Flint's fields for others, and the whole row for us.

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
        yield {**document, metadata.OWN: own}


def partial_documents(rows: pa.Table, segment: str, written_at: int) -> Iterator[Values]:
    """One document for each row that completes others, without Flint's fields."""
    encode = _encoders(rows.schema)
    for row in _rows(rows):
        yield {metadata.OWN: _own(row, encode, segment, written_at)}


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
            name: pa.array([hit.source[metadata.OWN].get(name) for hit in hits], kind)
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
    value = source[metadata.OWN].get("row", {}).get(index_id, {}).get(field)
    if isinstance(value, dict) and set(value) == {"field"}:
        found: object = source
        for name in str(value["field"]).split("."):
            found = cast(Values, found)[name]
        return found
    return cast(object, value)


def source_fields(index_id: str, shown: Sequence[ShownIndex]) -> list[str]:
    """Fields of documents that hold the columns of one index."""
    borrowed = [field for one in shown if one.index.index_id == index_id for field in one.fields]
    return [f"{metadata.OWN}.path", f"{metadata.OWN}.row.{index_id}", *borrowed]

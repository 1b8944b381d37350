"""Reads one segment of OpenSearch: its identities at once, its columns when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from snaploom.errors import IndexNotFound, IndexUnreadable
from snaploom.interop.flint.fields import OWN
from snaploom.interop.opensearch.client import OpenSearchClient
from snaploom.interop.opensearch.documents import (
    IDENTITY,
    decode_columns,
    decode_identity,
    kept_columns,
    source_fields,
)
from snaploom.interop.opensearch.failures import MISUNDERSTOOD
from snaploom.interop.opensearch.flintrows import shown_indexes
from snaploom.interop.opensearch.shardreader import Hit, read_hits
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.stores.port import Segment


class DocumentReader:
    """Columns of the documents of one segment, in the order of their paths."""

    def __init__(
        self, client: OpenSearchClient, index: str, segment: Segment, definition: SkippingDefinition
    ) -> None:
        """Read the identities.

        Raises:
            IndexUnreadable: documents are missing, or others than were written.
        """
        self._client = client
        self._index = index
        self._segment = segment
        kept = [one for one in definition.indexes if one.index_id in segment.indexes]
        self._types = kept_columns(kept)
        self._shown = shown_indexes(definition)
        hits = self._hits([f"{OWN}.{name}" for name in IDENTITY])
        self._identity = _decoded(segment, hits, dict(IDENTITY_FIELDS), decode_identity)
        self._tables: dict[str, pa.Table] = {}

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        return (*IDENTITY, *self._types)

    def type_of(self, column: str) -> pa.DataType:
        """Type of a column."""
        return {**dict(IDENTITY_FIELDS), **self._types}[column]

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows; those of one index are fetched together."""
        return pa.table({name: self._table_of(name).column(name) for name in columns})

    def _table_of(self, column: str) -> pa.Table:
        if column in IDENTITY:
            return self._identity
        index_id = column.partition(".")[0]
        if index_id not in self._tables:
            types = {n: kind for n, kind in self._types.items() if n.startswith(f"{index_id}.")}
            hits = self._hits(source_fields(index_id, self._shown))
            self._tables[index_id] = _decoded(
                self._segment, hits, types, lambda hits: decode_columns(hits, types)
            )
        return self._tables[index_id]

    def _hits(self, fields: Sequence[str]) -> list[Hit]:
        query = {"term": {f"{OWN}.segment": self._segment.name}}
        hits: dict[str, Hit] = {}
        try:
            for hit in read_hits(self._client, self._index, query, fields):
                # A document may be there twice (an answer was lost): both are the same.
                hits[_path(hit)] = hit
                if len(hits) > self._segment.rows:
                    break
        except (IndexNotFound, KeyError, TypeError) as error:
            raise _damaged(self._segment, "no documents of ours") from error
        if len(hits) != self._segment.rows:
            raise _damaged(self._segment, f"{len(hits)} documents")
        return [hits[path] for path in sorted(hits)]


def _path(hit: Hit) -> str:
    path = hit.source[OWN]["path"]
    if not isinstance(path, str):
        raise TypeError("a path that is no text")
    return path


class RemovedReader:
    """The removed paths of a segment."""

    columns: Sequence[str] = ("path",)

    def __init__(self, segment: Segment, paths: Sequence[str]) -> None:
        if len(paths) != segment.rows:
            raise _damaged(segment, f"{len(paths)} paths")
        try:
            self._table = pa.table({"path": pa.array(paths, pa.large_string())})
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise _damaged(segment, "paths that are no texts") from error

    def type_of(self, column: str) -> pa.DataType:
        """Type of a column."""
        return self._table.schema.field(column).type

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""
        return self._table.select(list(columns))


def _decoded(
    segment: Segment,
    hits: Sequence[Hit],
    types: Mapping[str, pa.DataType],
    decode: Callable[[Sequence[Hit]], pa.Table],
) -> pa.Table:
    try:
        found = decode(hits)
    except (*MISUNDERSTOOD, ArithmeticError, pa.ArrowException) as error:
        raise _damaged(segment, f"a document that is not ours: {type(error).__name__}") from error
    for name in ("path", "length", "modified"):
        if name in types and found.column(name).null_count:
            raise _damaged(segment, f"documents without {name}")
    return found


def _damaged(segment: Segment, found: str) -> IndexUnreadable:
    return IndexUnreadable(
        f"segment {segment.name} in OpenSearch is damaged",
        found=found,
        expected=f"{segment.rows} documents",
        hint="refresh the index with mode FULL",
    )

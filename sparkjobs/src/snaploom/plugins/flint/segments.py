"""Segments of OpenSearch: bulk writing of documents, and reading of one segment."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from snaploom.errors import IndexNotFound, IndexUnreadable
from snaploom.plugins.flint import documents
from snaploom.plugins.flint.client import (
    ATTEMPTS,
    MISUNDERSTOOD,
    PASSING,
    IndexStoreFailed,
    OpenSearchClient,
    pause_before,
    repeated,
)
from snaploom.plugins.flint.metadata import OWN, document_id, file_uri
from snaploom.plugins.flint.options import RefreshPolicy
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.stores.port import Segment

# Writes many documents in bounded requests; only failed ones are sent again.

LARGEST_REQUEST = 5_000_000
"""Bytes of one bulk request; small managed clusters refuse 10 MB."""


class Action(StrEnum):
    """Operation on one document."""

    CREATE = "create"
    """Written only where none is; a conflict is an answer, not a failure."""
    INDEX = "index"
    """Written unconditionally."""
    UPDATE = "update"
    """Fields added to one that is there; none there is an answer, not a failure."""
    DELETE = "delete"
    """Removed; none there is as good."""


@dataclass(frozen=True)
class Write:
    """One document to be written."""

    action: Action
    source: Mapping[str, object] | None = None
    """The document, or the fields of an update; None for a deletion."""
    document_id: str | None = None
    """Its id; None lets OpenSearch make one up."""


ANSWERS = {Action.CREATE: {409}, Action.DELETE: {404}, Action.UPDATE: {404}}
"""Statuses of an item that are no failure."""


def write_all(
    client: OpenSearchClient, index: str, writes: Iterable[Write], refresh: RefreshPolicy
) -> Iterator[Write]:
    """Write documents; yields those that met a conflict (`CREATE`) or nothing (`UPDATE`).

    A request whose answer is lost is sent again, so a document without an id may be written twice.
    """
    for batch in _batches(writes, client.options.batch_size):
        yield from _write_batch(client, index, batch, refresh)


def _write_batch(
    client: OpenSearchClient, index: str, batch: Sequence[tuple[Write, str]], refresh: RefreshPolicy
) -> Iterator[Write]:
    doing = f"write documents of the index {index}"
    for attempt in range(1, ATTEMPTS + 1):
        body = "".join(lines for _, lines in batch)
        answer: dict[str, Any] = repeated(
            lambda body=body: client.library.bulk(  # type: ignore[misc]
                index=index, body=body, params={"refresh": refresh.value}
            ),
            client.options.uri,
            doing,
        )
        again = []
        for one, item in zip(batch, answer["items"], strict=True):
            result = next(iter(item.values()))
            status = int(result["status"])
            if status in PASSING:
                again.append(one)
            elif status in ANSWERS.get(one[0].action, ()):
                yield one[0]
            elif status >= 300:
                raise _refused(client.options.uri, doing, result)
        if not again:
            return
        batch = again
        time.sleep(pause_before(attempt))
    raise IndexStoreFailed(
        f"OpenSearch at {client.options.uri} did not {doing}",
        found=f"{len(batch)} documents were put off {ATTEMPTS} times",
        expected="room for them within half a minute",
        hint="write smaller batches (write.batch_size), or give the cluster more room",
    )


def _refused(uri: str, doing: str, result: Mapping[str, Any]) -> IndexStoreFailed:
    error = result.get("error") or {}
    cause = (error.get("caused_by") or {}).get("reason", "")
    reason = ": ".join(part for part in (error.get("type"), error.get("reason"), cause) if part)
    return IndexStoreFailed(
        f"OpenSearch at {uri} did not {doing}",
        found=f"{result['status']} {reason}",
        expected="documents that the index takes",
        hint="see in the words of the server what it does not take; correct the mapping or the "
        "rows",
    )


def _batches(writes: Iterable[Write], most: int) -> Iterator[list[tuple[Write, str]]]:
    batch: list[tuple[Write, str]] = []
    size = 0
    for write in writes:
        lines = bulk_lines(write)
        if batch and (len(batch) == most or size + len(lines) > LARGEST_REQUEST):
            yield batch
            batch, size = [], 0
        batch.append((write, lines))
        size += len(lines)
    if batch:
        yield batch


def bulk_lines(write: Write) -> str:
    """Lines of one write in the bulk format: the action, then the document if there is one."""
    target = {} if write.document_id is None else {"_id": write.document_id}
    lines = json.dumps({write.action.value: target}) + "\n"
    if write.action is Action.DELETE:
        return lines
    source = {"doc": write.source} if write.action is Action.UPDATE else write.source
    # Without NaN and infinity, which JSON does not have; escaped, so that its length is its size.
    return lines + json.dumps(source, allow_nan=False) + "\n"


# Writing rows: each document once, under Flint's id where it is free.

WHOLE, PARTIAL, REMOVED = "rows-", "part-", "gone-"
"""Beginnings of names of segments: rows, rows that complete others, paths that are gone."""

PATHS_IN_DOCUMENT = 10_000
"""Removed paths in one document: about 1 MB."""


def write_documents(client: OpenSearchClient, index: str, writes: Iterable[Write]) -> list[Write]:
    """Write documents that become visible with the next refresh; returns the conflicts."""
    return list(write_all(client, index, writes, RefreshPolicy.NONE))


class RowWriter:
    """Writes tables of rows as at most two segments."""

    def __init__(
        self,
        client: OpenSearchClient,
        index: str,
        own_index: str,
        key: str,
        definition: SkippingDefinition,
        shown: tuple[documents.ShownIndex, ...],
    ) -> None:
        self._client = client
        self._index = index
        self._own_index = own_index
        self._key = key
        self._ids = frozenset(one.index_id for one in definition.indexes)
        self._shown = shown
        self._token = secrets.token_hex(16)
        self._written_at = time.time_ns()
        self._rows = {WHOLE: 0, PARTIAL: 0}
        self._seen: dict[str, set[str]] = {WHOLE: set(), PARTIAL: set()}

    def write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        ids = documents.indexes_in(rows)
        kind = WHOLE if ids >= self._ids else PARTIAL
        self._rows[kind] += rows.num_rows
        self._seen[kind] |= ids & self._ids
        if kind == WHOLE:
            whole = documents.whole_documents(
                rows, self._shown, WHOLE + self._token, self._written_at
            )
            creates = (Write(Action.CREATE, one, _flint_id(one)) for one in whole)
            taken = write_all(self._client, self._index, creates, RefreshPolicy.NONE)
            write_documents(self._client, self._index, self._spares(taken))
        else:
            self._write_partial(rows)

    def finish(self) -> list[Segment]:
        segments = []
        for kind, index in ((WHOLE, self._index), (PARTIAL, self._own_index)):
            if self._rows[kind]:
                self._client.refresh(index)
                kept = tuple(sorted(self._seen[kind]))
                segments.append(Segment(kind + self._token, self._rows[kind], 0, indexes=kept))
        return segments

    def _spares(self, taken: Iterable[Write]) -> Iterator[Write]:
        """Rows whose id another document has, under random ids."""
        for write in taken:
            document: documents.Values = dict(write.source or {})
            document[OWN] = {**document[OWN], "is_spare": True}
            yield Write(Action.INDEX, document, f"{write.document_id}-{self._token}")

    def _write_partial(self, rows: pa.Table) -> None:
        segment = PARTIAL + self._token
        partial = documents.partial_documents(rows, segment, self._written_at)
        writes = (
            Write(Action.INDEX, {"index": self._key, **one}, f"{_flint_id(one)}-{self._token}")
            for one in partial
        )
        write_documents(self._client, self._own_index, writes)


def write_removed_paths(
    client: OpenSearchClient, key: str, own_index: str, paths: Sequence[str]
) -> Segment:
    """Write removed paths, in documents of bounded size that are read by their ids."""
    segment = REMOVED + secrets.token_hex(16)
    own = {"segment": segment, "written_at": time.time_ns()}
    writes = (
        Write(
            Action.INDEX,
            {
                "index": key,
                "document": {"paths": list(paths[start : start + PATHS_IN_DOCUMENT])},
                OWN: own,
            },
            removed_document(segment, start),
        )
        for start in range(0, len(paths), PATHS_IN_DOCUMENT)
    )
    write_documents(client, own_index, writes)
    return Segment(segment, len(paths), 0, removed=True)


def removed_document(segment: str, start: int) -> str:
    """Id of the document with the removed paths from one on."""
    return f"{segment}-{start}"


def _flint_id(document: documents.Values) -> str:
    return document_id(file_uri(str(document[OWN]["path"])))


# Reads one segment of OpenSearch: its identities at once, its columns when needed.


class DocumentReader:
    """Columns of the documents of one segment, in the order of their paths."""

    def __init__(
        self, client: OpenSearchClient, index: str, segment: Segment, definition: SkippingDefinition
    ) -> None:
        """Read the identities."""
        self._client = client
        self._index = index
        self._segment = segment
        kept = [one for one in definition.indexes if one.index_id in segment.indexes]
        self._types = documents.kept_columns(kept)
        self._shown = documents.shown_indexes(definition)
        hits = self._hits([f"{OWN}.{name}" for name in documents.IDENTITY])
        self._identity = _decoded(segment, hits, dict(IDENTITY_FIELDS), documents.decode_identity)
        self._tables: dict[str, pa.Table] = {}

    @property
    def columns(self) -> Sequence[str]:
        return (*documents.IDENTITY, *self._types)

    def type_of(self, column: str) -> pa.DataType:
        return {**dict(IDENTITY_FIELDS), **self._types}[column]

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows; those of one index are fetched together."""
        return pa.table({name: self._table_of(name).column(name) for name in columns})

    def _table_of(self, column: str) -> pa.Table:
        if column in documents.IDENTITY:
            return self._identity
        index_id = column.partition(".")[0]
        if index_id not in self._tables:
            types = {n: kind for n, kind in self._types.items() if n.startswith(f"{index_id}.")}
            hits = self._hits(documents.source_fields(index_id, self._shown))
            self._tables[index_id] = _decoded(
                self._segment, hits, types, lambda hits: documents.decode_columns(hits, types)
            )
        return self._tables[index_id]

    def _hits(self, fields: Sequence[str]) -> list[documents.Hit]:
        query = {"term": {f"{OWN}.segment": self._segment.name}}
        hits: dict[str, documents.Hit] = {}
        try:
            for hit in documents.read_hits(self._client, self._index, query, fields):
                # A document may be there twice (an answer was lost): both are the same.
                hits[_path(hit)] = hit
                if len(hits) > self._segment.rows:
                    break
        except (IndexNotFound, KeyError, TypeError) as error:
            raise _damaged(self._segment, "no documents of ours") from error
        if len(hits) != self._segment.rows:
            raise _damaged(self._segment, f"{len(hits)} documents")
        return [hits[path] for path in sorted(hits)]


def _path(hit: documents.Hit) -> str:
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
        return self._table.schema.field(column).type

    def read(self, columns: Sequence[str]) -> pa.Table:
        return self._table.select(list(columns))


def _decoded(
    segment: Segment,
    hits: Sequence[documents.Hit],
    types: Mapping[str, pa.DataType],
    decode: Callable[[Sequence[documents.Hit]], pa.Table],
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
    )

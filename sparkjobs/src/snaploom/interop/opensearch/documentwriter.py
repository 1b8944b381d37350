"""Writing rows: each document once, under Flint's id where it is free."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from snaploom.interop.flint.fields import OWN
from snaploom.interop.flint.metadata import document_id, file_uri
from snaploom.interop.opensearch.bulk import Action, Write, write_all
from snaploom.interop.opensearch.client import OpenSearchClient
from snaploom.interop.opensearch.documents import (
    Values,
    indexes_in,
    partial_documents,
    whole_documents,
)
from snaploom.interop.opensearch.flintrows import ShownIndex
from snaploom.interop.opensearch.options import RefreshPolicy
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.stores.port import Segment

WHOLE, PARTIAL, REMOVED = "rows-", "part-", "gone-"
"""How names of segments begin: rows, rows that complete others, paths that are gone."""

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
        shown: tuple[ShownIndex, ...],
    ) -> None:
        """Name the segments; nothing is written yet."""
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
        """Write one table."""
        if not rows.num_rows:
            return
        ids = indexes_in(rows)
        kind = WHOLE if ids >= self._ids else PARTIAL
        self._rows[kind] += rows.num_rows
        self._seen[kind] |= ids & self._ids
        if kind == WHOLE:
            self._write_whole(rows)
        else:
            self._write_partial(rows)

    def finish(self) -> list[Segment]:
        """Make the documents visible to searches, and name the segments."""
        segments = []
        for kind, index in ((WHOLE, self._index), (PARTIAL, self._own_index)):
            if self._rows[kind]:
                self._client.refresh(index)
                kept = tuple(sorted(self._seen[kind]))
                segments.append(Segment(kind + self._token, self._rows[kind], 0, indexes=kept))
        return segments

    def _write_whole(self, rows: pa.Table) -> None:
        documents = whole_documents(rows, self._shown, WHOLE + self._token, self._written_at)
        creates = (Write(Action.CREATE, one, _flint_id(one)) for one in documents)
        taken = write_all(self._client, self._index, creates, RefreshPolicy.NONE)
        write_documents(self._client, self._index, self._spares(taken))

    def _spares(self, taken: Iterable[Write]) -> Iterator[Write]:
        """Rows whose id another document has, under random ids."""
        for write in taken:
            document: Values = dict(write.source or {})
            document[OWN] = {**document[OWN], "is_spare": True}
            yield Write(Action.INDEX, document, f"{write.document_id}-{self._token}")

    def _write_partial(self, rows: pa.Table) -> None:
        segment = PARTIAL + self._token
        documents = partial_documents(rows, segment, self._written_at)
        writes = (
            Write(Action.INDEX, {"index": self._key, **one}, f"{_flint_id(one)}-{self._token}")
            for one in documents
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


def _flint_id(document: Values) -> str:
    return document_id(file_uri(str(document[OWN]["path"])))

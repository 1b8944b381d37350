"""Writes many documents in bounded requests; only failed ones are sent again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from snaploom.interop.opensearch.client import OpenSearchClient
from snaploom.interop.opensearch.failures import (
    ATTEMPTS,
    PASSING,
    IndexStoreFailed,
    pause_before,
    repeated,
)
from snaploom.interop.opensearch.options import RefreshPolicy

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
    """Operation."""
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

    Raises:
        IndexStoreFailed: an item was refused for good, or failed every time.
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

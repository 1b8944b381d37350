"""Reads many documents of one shard, a page at a time, as they were at one moment.

A point in time is opened for one shard only. There the order of documents (`_doc`) is total, so
that `search_after` neither repeats nor loses one; over several shards it is not, and 2.x has no
other order that costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearchpy.exceptions import NotFoundError

from snaploom.interop.opensearch.client import Json, OpenSearchClient, no_such_index
from snaploom.interop.opensearch.failures import IndexStoreFailed, repeated

KEEP_ALIVE = "5m"
"""How long OpenSearch keeps a moment after the last page was asked for."""

MOST_HITS = 20_000_000
"""Documents of one index that are read: a server may announce more without end."""

EVERYTHING: Mapping[str, object] = {"match_all": {}}
"""The query that every document matches."""


@dataclass(frozen=True)
class Hit:
    """One document that a search found."""

    document_id: str
    """Its id."""
    source: Json
    """Its fields, or those that were asked for."""


def read_pages(
    client: OpenSearchClient,
    index: str,
    query: Mapping[str, object] = EVERYTHING,
    fields: Sequence[str] | None = None,
    shard: int | None = None,
) -> Iterator[list[Hit]]:
    """Pages of documents of an index, or one of its shards, that match a query.

    Raises:
        IndexNotFound: there is no such index.
        IndexStoreFailed: OpenSearch failed; pages that were given stay right.
    """
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
            hint="check that this is the server that was meant, then run again",
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

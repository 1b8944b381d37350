"""OpenSearch as far as we use it, in memory behind HTTP: what the real one does, and faults.

Searches see what was there at the last refresh; points in time stay as they were; conditional
writes are checked under one lock. It knows few queries and no types. Faults are injected: whole
requests or single items of bulk requests answer a status, so and so many times.
"""

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pytest
from support.servers.opensearchserver import running_opensearch

from snaploom.plugins.flint.options import OpenSearchOptions
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    column_term,
)
from snaploom.skipping.core.filetable import IDENTITY_FIELDS

_numbers = itertools.count()


def options_of(port: int, **changes: object) -> OpenSearchOptions:
    return OpenSearchOptions(host="127.0.0.1", port=port, **changes)  # type: ignore[arg-type]


def unused_name(prefix: str = "flint_test") -> str:
    return f"{prefix}_{next(_numbers)}_skipping_index"


def an_index(index_id: str, kind: str, column: str, data_type: str) -> IndexDefinition:
    return IndexDefinition(index_id, kind, (column_term(tuple(column.split(".")), data_type),))


def a_definition(*indexes: IndexDefinition) -> SkippingDefinition:
    return SkippingDefinition(
        target=Target("file:/data/t", table="spark_catalog.default.t", format="parquet"),
        fingerprint=ReaderFingerprint("parquet"),
        indexes=indexes or (an_index("i1", "MIN_MAX", "price", "bigint"),),
    )


def rows_of(columns: dict[str, pa.Array | list[object]], paths: list[str]) -> pa.Table:
    identity = {
        "path": paths,
        "length": [100] * len(paths),
        "modified": [1000] * len(paths),
        "etag": [None] * len(paths),
    }
    arrays = {name: pa.array(identity[name], kind) for name, kind in IDENTITY_FIELDS}
    return pa.table(arrays | columns)


def price_rows(bounds: dict[str, tuple[int, int]]) -> pa.Table:
    """Rows of the index `i1` of `a_definition()`."""
    return rows_of(
        {
            "i1.values": pa.array([5] * len(bounds), pa.int64()),
            "i1.nulls": pa.array([0] * len(bounds), pa.int64()),
            "i1.min": pa.array([low for low, _ in bounds.values()], pa.int64()),
            "i1.max": pa.array([high for _, high in bounds.values()], pa.int64()),
        },
        list(bounds),
    )


Json = dict[str, Any]


@dataclass
class Index:
    mappings: Json
    shards: int
    documents: dict[str, tuple[Json, int]] = field(default_factory=dict)
    visible: dict[str, Json] = field(default_factory=dict)

    def refresh(self) -> None:
        self.visible = {name: source for name, (source, _) in self.documents.items()}


@dataclass
class Faults:
    """What goes wrong next."""

    requests: list[int] = field(default_factory=list)
    """Statuses that the next bulk requests answer."""
    items: list[int] = field(default_factory=list)
    """Statuses that the next items of bulk requests answer."""
    reads: list[int] = field(default_factory=list)
    """Statuses that the next requests of documents answer."""
    lost_answers: int = 0
    """Writes of single documents that succeed and answer 503."""


class Answer(Exception):
    def __init__(self, status: int, kind: str = "", reason: str = "") -> None:
        super().__init__(kind)
        self.status = status
        cause = {"type": kind, "reason": reason}
        self.body = {"error": {"root_cause": [cause], **cause}, "status": status}


class FakeOpenSearch:
    """The state of the server, and one method an operation."""

    def __init__(self) -> None:
        self.indexes: dict[str, Index] = {}
        self.moments: dict[str, list[tuple[str, Json]]] = {}
        self.faults = Faults()
        self.headers: list[Mapping[str, str]] = []
        self.bulk_sizes: list[int] = []
        self.searches = 0
        self._writes = 0
        self._lock = threading.RLock()

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, Json]:
        parts = urlsplit(url)
        path = [unquote(part) for part in parts.path.split("/") if part]
        params = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        with self._lock:
            try:
                return self._route(method, path, params, body)
            except Answer as answer:
                return answer.status, answer.body

    def _route(self, method: str, path: list[str], params: Json, body: bytes) -> tuple[int, Json]:
        match method, *path:
            case "PUT", name:
                return self._create(name, json.loads(body))
            case "HEAD", name:
                return (200 if name in self.indexes else 404), {}
            case "DELETE", "_search", "point_in_time":
                for moment in json.loads(body)["pit_id"]:
                    self.moments.pop(moment, None)
                return 200, {}
            case "DELETE", name:
                self._index(name)
                del self.indexes[name]
                return 200, {}
            case "GET", name, "_mapping":
                return 200, {name: {"mappings": self._index(name).mappings}}
            case "PUT", name, "_mapping":
                _merge(self._index(name).mappings, json.loads(body))
                return 200, {}
            case "GET", name, "_settings":
                shards = str(self._index(name).shards)
                return 200, {name: {"settings": {"index": {"number_of_shards": shards}}}}
            case "POST", name, "_refresh":
                self._index(name).refresh()
                return 200, {}
            case "GET", name, "_doc", document:
                return self._get(name, document)
            case "PUT" | "POST", name, "_doc" | "_create", document:
                return self._put(name, document, params, json.loads(body))
            case "POST" | "PUT", name, "_bulk":
                return self._bulk(name, params, body)
            case "POST", name, "_search", "point_in_time":
                return self._open(name, params)
            case "POST" | "GET", "_search":
                return self._search(json.loads(body))
        raise Answer(400, "unknown_operation", f"{method} {'/'.join(path)}")

    def _index(self, name: str) -> Index:
        if name not in self.indexes:
            raise Answer(404, "index_not_found_exception", f"no such index [{name}]")
        return self.indexes[name]

    def _create(self, name: str, body: Json) -> tuple[int, Json]:
        if name in self.indexes:
            raise Answer(400, "resource_already_exists_exception", f"index [{name}] exists")
        shards = int(body.get("settings", {}).get("index", {}).get("number_of_shards", 1))
        self.indexes[name] = Index(_merge({}, body.get("mappings", {})), shards)
        return 200, {"acknowledged": True}

    def _get(self, name: str, document: str) -> tuple[int, Json]:
        if self.faults.reads:
            raise Answer(self.faults.reads.pop(0), "rejected_execution_exception", "busy")
        found = self._index(name).documents.get(document)
        if found is None:
            return 404, {"_index": name, "_id": document, "found": False}
        return 200, {"_source": found[0], "_seq_no": found[1], "_primary_term": 1, "found": True}

    def _put(self, name: str, document: str, params: Json, source: Json) -> tuple[int, Json]:
        documents = self.indexes.setdefault(name, Index({}, 1)).documents
        found = documents.get(document)
        is_taken = params.get("op_type") == "create" and found is not None
        wanted = params.get("if_seq_no")
        if is_taken or (wanted is not None and (found is None or found[1] != int(wanted))):
            raise Answer(409, "version_conflict_engine_exception", "version conflict")
        self._writes += 1
        documents[document] = (source, self._writes)
        if self.faults.lost_answers:
            self.faults.lost_answers -= 1
            raise Answer(503, "unavailable_exception", "the answer is lost")
        return 201, {"_id": document, "result": "created"}

    def _bulk(self, name: str, params: Json, body: bytes) -> tuple[int, Json]:
        if self.faults.requests:
            raise Answer(self.faults.requests.pop(0), "rejected_execution_exception", "busy")
        lines = iter(body.decode().splitlines())
        items = []
        for line in lines:
            ((action, target),) = json.loads(line).items()
            source = None if action == "delete" else json.loads(next(lines))
            index = target.get("_index", name)
            items.append({action: self._item(index, action, target.get("_id"), source)})
        self.bulk_sizes.append(len(items))
        if params.get("refresh", "false") != "false" and name in self.indexes:
            self.indexes[name].refresh()
        return 200, {"items": items, "errors": any(_status(item) >= 300 for item in items)}

    def _item(self, name: str, action: str, document: str | None, source: Json | None) -> Json:
        if self.faults.items:
            status = self.faults.items.pop(0)
            if status >= 300:
                return {"status": status, "error": {"type": "injected", "reason": "a fault"}}
        documents = self.indexes.setdefault(name, Index({}, 1)).documents
        self._writes += 1
        name_of_document = document or f"made-up-{self._writes}"
        found = documents.get(name_of_document)
        if action == "create" and found is not None:
            error = {"type": "version_conflict_engine_exception", "reason": "exists"}
            return {"_id": name_of_document, "status": 409, "error": error}
        if action in ("delete", "update") and found is None:
            return {"_id": name_of_document, "status": 404}
        if action == "delete":
            del documents[name_of_document]
        elif action == "update" and found is not None and source is not None:
            documents[name_of_document] = (_merge(found[0], source["doc"]), self._writes)
        elif source is not None:
            documents[name_of_document] = (source, self._writes)
        return {"_id": name_of_document, "status": 200}

    def _open(self, name: str, params: Json) -> tuple[int, Json]:
        index = self._index(name)
        shard = int(params.get("preference", "_shards:0").removeprefix("_shards:"))
        kept = [
            (document, source)
            for document, source in index.visible.items()
            if sum(document.encode()) % index.shards == shard
        ]
        moment = f"moment-{len(self.moments)}-{self._writes}-{shard}"
        self.moments[moment] = kept
        return 200, {"pit_id": moment}

    def _search(self, body: Json) -> tuple[int, Json]:
        self.searches += 1
        moment = body["pit"]["id"]
        if moment not in self.moments:
            raise Answer(404, "search_context_missing_exception", "gone")
        after = body.get("search_after", [-1])[0]
        hits = [
            {"_id": name, "_source": _chosen(source, body["_source"]), "sort": [place]}
            for place, (name, source) in enumerate(self.moments[moment])
            if place > after and matches(source, body["query"])
        ]
        shards = {"failed": 0}
        return 200, {"pit_id": moment, "_shards": shards, "hits": {"hits": hits[: body["size"]]}}


def matches(source: Json, query: Json) -> bool:
    ((kind, body),) = query.items()
    if kind == "match_all":
        return True
    if kind == "bool":
        wanted = all(matches(source, part) for part in body.get("filter", []))
        return wanted and not any(matches(source, part) for part in body.get("must_not", []))
    if kind == "exists":
        return bool(_values(source, body["field"]))
    ((name, wanted),) = body.items()
    values = _values(source, name)
    if kind == "term":
        return wanted in values
    if kind == "terms":
        return any(value in wanted for value in values)
    if kind == "prefix":
        return any(str(value).startswith(wanted) for value in values)
    if kind == "range":
        checks = {"lt": "__lt__", "lte": "__le__", "gt": "__gt__", "gte": "__ge__"}
        return any(
            all(getattr(value, checks[op])(limit) is True for op, limit in wanted.items())
            for value in values
        )
    raise Answer(400, "parsing_exception", f"unknown query [{kind}]")


def _values(source: object, name: str) -> list[Any]:
    for part in name.split("."):
        if not isinstance(source, dict) or part not in source:
            return []
        source = source[part]
    found = source if isinstance(source, list) else [source]
    return [value for value in found if value is not None]


def _chosen(source: Json, wanted: bool | Json) -> Json:
    if isinstance(wanted, bool):
        return source
    chosen: Json = {}
    for name in wanted["includes"]:
        here, there = source, chosen
        *outer, last = name.split(".")
        for part in outer:
            here = here.get(part, {})
            there = there.setdefault(part, {})
        if last in here:
            there[last] = here[last]
    return chosen


def _merge(into: Json, other: Json) -> Json:
    for name, value in other.items():
        if name != "_meta" and isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value
    return into


def _status(item: Json) -> int:
    return int(next(iter(item.values()))["status"])


@contextmanager
def serving(fake: FakeOpenSearch) -> Iterator[int]:

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fake.headers.append(dict(self.headers.items()))
            status, answer = fake.answer(self.command, self.path, body)
            content = b"" if self.command == "HEAD" else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def real_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_opensearch(tmp_path_factory.mktemp("opensearch")) as port:
        yield port


@pytest.fixture(scope="session")
def fake_port() -> Iterator[int]:
    with serving(FakeOpenSearch()) as port:
        yield port

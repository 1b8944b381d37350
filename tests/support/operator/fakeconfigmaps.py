"""The ConfigMaps of an API server, in memory, over real HTTP; it fails on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Raw = dict[str, Any]
Key = tuple[str, str]

Answer = tuple[int, Raw]
LOST = (0, {})
"""No answer: the connection ends."""


def failure(status: HTTPStatus, message: str = "") -> Answer:
    return status, {"kind": "Status", "code": int(status), "message": message or status.phrase}


class FakeConfigMaps:
    """Objects by namespace and name, with resourceVersion as the API server counts it."""

    def __init__(self) -> None:
        self.objects: dict[Key, Raw] = {}
        self.requests: list[str] = []
        """Methods, in the order of arrival."""
        self.before: Callable[[str], Answer | None] = lambda method: None
        """Asked before each request: an answer instead, or None to go on."""
        self._version = 0
        self._lock = threading.Lock()

    def put(self, raw: Raw) -> Raw:
        """Store an object, as another client would."""
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        self.objects[raw["metadata"]["namespace"], raw["metadata"]["name"]] = raw
        return raw

    def answer(self, method: str, namespace: str, name: str, body: Raw) -> Answer:
        with self._lock:
            self.requests.append(method)
            instead = self.before(method)
            return instead or getattr(self, f"_{method.lower()}")(namespace, name, body)

    def _get(self, namespace: str, name: str, _body: Raw) -> Answer:
        found = self.objects.get((namespace, name))
        return (200, found) if found else failure(HTTPStatus.NOT_FOUND)

    def _post(self, namespace: str, _name: str, body: Raw) -> Answer:
        if (namespace, body["metadata"]["name"]) in self.objects:
            return failure(HTTPStatus.CONFLICT)
        body["metadata"]["namespace"] = namespace
        return 201, self.put(body)

    def _put(self, namespace: str, name: str, body: Raw) -> Answer:
        found = self.objects.get((namespace, name))
        if found is None:
            return failure(HTTPStatus.NOT_FOUND)
        if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
            return failure(HTTPStatus.CONFLICT)
        return 200, self.put(body)


@contextmanager
def serving(config_maps: FakeConfigMaps) -> Iterator[str]:
    """Serve them; the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def log_message(self, *_: object) -> None:
            return None

        def _serve(self) -> None:
            # /api/v1/namespaces/NAMESPACE/configmaps[/NAME]
            _, _, _, _, namespace, _, *name = self.path.split("?")[0].split("/")
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            status, answer = config_maps.answer(self.command, namespace, "".join(name), body)
            if not status:
                self.connection.close()
                return
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

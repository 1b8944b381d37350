"""HTTP servers that do not behave, on this machine."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Server:
    """A running server."""

    port: int = 0
    requests: list[str] = field(default_factory=list)
    """Methods and paths that were asked for."""
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    """A server that answers every request in one way."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            server.requests.append(f"{self.command} {self.path}")
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            try:
                answer(self)
            except OSError:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def redirecting(to: str, status: int = 307) -> Answer:
    """Redirects every request elsewhere."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def json_answer(document: object, status: int = 200) -> Answer:
    """Answers with JSON."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def bomb(size: int) -> Answer:
    """Answers with so many bytes, packed to a thousandth."""
    body = gzip.compress(b" " * size)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Answers without an end."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """Answers a byte now and then, headers first."""
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.05)


def dripping_body(handler: BaseHTTPRequestHandler) -> None:
    """Answers with a body whose first line, the length of a chunk, comes a byte now and then."""
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(600):
        handler.wfile.write(b"0")
        handler.wfile.flush()
        time.sleep(0.05)

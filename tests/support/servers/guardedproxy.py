"""A server before another one: takes requests by http or https, looks at each, and passes it on."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.servers.certificates import Issued

NOT_PASSED_ON = {"host", "connection", "authorization", "content-length", "transfer-encoding"}


@dataclass(frozen=True)
class Request:
    """What came over the wire."""

    method: str
    target: str
    """Path and query, nothing decoded."""
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes = b""


Guard = Callable[[Request], str]
"""Why a request is refused; empty when it is not."""


@contextmanager
def guarded_proxy(
    behind: int, guard: Guard, certificate: Issued | None = None, refusal: int = 403
) -> Iterator[int]:
    """The port of a server that passes what `guard` lets through to a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            why = guard(Request(self.command, self.path, headers, body))
            if why:
                self._send(refusal, json.dumps({"message": why}).encode(), "application/json")
                return
            passed = {k: v for k, v in headers.items() if k not in NOT_PASSED_ON}
            connection = http.client.HTTPConnection("127.0.0.1", behind, timeout=60)
            connection.request(self.command, self.path, body or None, passed)
            answer = connection.getresponse()
            kind = answer.getheader("Content-Type", "application/json")
            self._send(answer.status, answer.read(), kind)
            connection.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = _Quiet(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what some tests are about."""

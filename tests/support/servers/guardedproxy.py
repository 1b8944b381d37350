"""A server before another one: takes requests by http or https, looks at each, and passes it on."""

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from support.servers.certificates import Issued
from support.servers.s3servers import S3Server

Loss = Callable[[str, str], str | None]
"""From method and path, which has AWS' name of the operation at its end, if any: `answer` (it is
done, and the connection breaks), a status that is answered instead of doing it, or None."""


@contextmanager
def lossy(server: S3Server, loss: Loss, address: str = "127.0.0.1") -> Iterator[S3Server]:
    """The same server, behind the proxy, which listens at an address of this machine."""
    proxy = ThreadingHTTPServer((address, 0), _handler(urlsplit(server.endpoint).netloc, loss))
    thread = Thread(target=proxy.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield S3Server(f"http://{address}:{proxy.server_address[1]}", server.secret)
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def first(count: int, method: str, part: str, what: str) -> Loss:
    """The same loss for the first requests of a method on paths that contain `part`."""
    left = [count]

    def loss(this: str, path: str) -> str | None:
        if this != method or part not in path or left[0] == 0:
            return None
        left[0] -= 1
        return what

    return loss


def _handler(target: str, loss: Loss) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            what = loss(self.command, self.path + self.headers.get("X-Amz-Target", ""))
            if what is not None and what.isdecimal():
                self._answer(int(what), {}, _refusal(what) if self.command != "HEAD" else b"")
                return
            connection = http.client.HTTPConnection(target, timeout=30)
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if what == "answer":
                self.close_connection = True
                return
            headers = {k: v for k, v in answer.getheaders() if k.lower() not in _OWN}
            if self.command == "HEAD":
                headers["Content-Length"] = answer.getheader("Content-Length") or "0"
            self._answer(answer.status, headers, content)

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self._pass_on
            raise AttributeError(name)

        def log_request(self, *_: object) -> None:
            return None

    return Handler


_OWN = {"content-length", "transfer-encoding", "connection", "date", "server"}
_CODES = {"403": "AccessDenied", "409": "ConditionalRequestConflict"}


def _refusal(status: str) -> bytes:
    code = _CODES.get(status, "InternalError")
    return f"<Error><Code>{code}</Code><Message>No.</Message></Error>".encode()


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

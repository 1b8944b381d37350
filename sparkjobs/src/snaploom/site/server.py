"""Serves pages on this machine, as of now: reads declarations and manifests, and writes nothing.

It answers GET and HEAD of its own pages only, and by names of this machine only: a page of somebody
else, whose name was made to lead here, gets nothing.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.models.allowances import NO_CHOICE, Allowances, VariableChoice
from snaploom.models.common import now
from snaploom.models.findings import InvalidDeclarations
from snaploom.output.folder import is_unused, open_folder
from snaploom.run.declarations import read_declarations
from snaploom.run.folders import open_named
from snaploom.site.collection import Clock, declared_pages
from snaploom.site.document import INDEX, PAGE_HEADERS, VERSION_HEADER, problem_document, site_of

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Addresses that only this machine reaches."""
MOST_AT_ONCE = 16
"""Requests at a time; a browser has six connections."""
LONGEST_ANSWER = 30.0
"""Seconds from a connection to the end of its answer."""
OLDEST = 60.0
"""Seconds for which pages are shown again while nothing changed: ages on them are that old."""


@dataclass(frozen=True)
class Served:
    """Pages as they are at one moment."""

    version: str
    """Changes when declarations or published snapshots do."""
    documents: dict[str, str]
    """By path, such as `index.html`."""


class PageSource:
    """The pages of some outputs, made anew when anything they come from has changed."""

    def __init__(
        self,
        files: Sequence[Path],
        outputs: Sequence[str],
        allow: Allowances,
        choice: VariableChoice = NO_CHOICE,
    ) -> None:
        """Of declarations; nothing is read yet.

        Without `outputs` all that exist at the time are shown.
        """
        self._files, self._outputs, self._allow = tuple(files), tuple(outputs), allow
        self._choice = choice
        self._lock = Lock()
        self._kept = self._shown = Served("", {})
        self._made = self._looked = float("-inf")

    def current(self) -> Served:
        """The pages as of now; faults of the declarations are a page too.

        All who wait for one look have what the next one finds.
        """
        asked = monotonic()
        with self._lock:
            if self._looked < asked:
                begun = monotonic()
                self._shown = self._look()
                self._looked = begun
            return self._shown

    def _look(self) -> Served:
        try:
            return self._current()
        except InvalidDeclarations as error:
            document = problem_document("Declarations", error.findings, now())
            version = sha256(repr(error.findings).encode()).hexdigest()
            return Served(version, {INDEX: document})

    def _current(self) -> Served:
        declarations = read_declarations(self._files, self._allow, self._choice)
        names = self._outputs or declarations.output_names
        facts: list[object] = [[repr(each) for each in declarations.resources]]
        for name in names:
            folder = declarations.bundle(name).output.spec.output_folder.folder_uri
            facts.append([name, _sequence(folder)])
        version = sha256(json.dumps(facts).encode()).hexdigest()[:32]
        if version != self._kept.version or monotonic() - self._made > OLDEST:
            clock = Clock(now())
            pages = declared_pages(declarations, names, clock)
            self._kept = Served(version, site_of(pages, clock.now, version=version))
            self._made = monotonic()
        return self._kept


def _sequence(folder: str) -> str:
    """Return the newest entry of a folder's manifest, or why that cannot be read."""
    try:
        store = open_named(folder)
        return "unused" if is_unused(store) else str(open_folder(store).log.read().seq)
    except SnaploomError as error:
        return error.message


class _PageServer(ThreadingHTTPServer):
    """Answers a few requests at a time, each within some seconds."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._begun: dict[socket.socket, float] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread, unless there are too many."""
        if len(self._begun) >= MOST_AT_ONCE:
            with suppress(OSError):
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n")
            self.shutdown_request(request)
            return
        self._begun[request] = monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._begun.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that took too long; called several times a second."""
        for request, begun in self._begun.copy().items():
            if monotonic() - begun > LONGEST_ANSWER:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Name an error in one line, unless the client has gone."""
        error = sys.exception()
        if not isinstance(error, OSError):
            sys.stderr.write(f"snaploom serve: a page failed: {error!r:.500}\n")


def page_server(source: PageSource, address: str, port: int) -> ThreadingHTTPServer:
    """A server that is bound, and not started.

    Port 0 is any that is free.

    Raises:
        ArgumentInvalid: it cannot be bound.
    """

    class Handler(_PageHandler):
        pages = staticmethod(source.current)
        is_local = address in LOOPBACK

    try:
        return _PageServer((address, port), Handler)
    except (OSError, OverflowError) as error:
        raise ArgumentInvalid(
            "the pages cannot be served there",
            path="--port",
            found=f"{address}:{port}: {getattr(error, 'strerror', None) or error}",
            expected="an address of this machine, and a port that is free",
            hint="name another port, or --port 0 for any",
        ) from error


class _PageHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    pages: Callable[[], Served]
    is_local = True
    server_version, sys_version = "snaploom", ""
    timeout = 30

    def do_GET(self) -> None:
        """A page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Only the version of a page."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library has it
        """Requests are not logged: an open page asks every five seconds."""

    def _answer(self, *, with_body: bool) -> None:
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
            path = urlsplit(self.path).path.removeprefix("/") or INDEX
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        if self.is_local and host not in LOOPBACK:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        served = self.pages()
        document = served.documents.get(path)
        if document is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = document.encode()
        self.send_response(HTTPStatus.OK)
        for name, value in (*PAGE_HEADERS.items(), (VERSION_HEADER, served.version)):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

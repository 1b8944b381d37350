"""`snaploom page` and `serve`: pages as files, and the same in a browser, as of now."""

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
from typing import Annotated, Any
from urllib.parse import urlsplit

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli import options
from snaploom.cli.console import message_console, print_findings, result_console
from snaploom.cli.snapshots import PLACE, folder_named
from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.models.allowances import NO_CHOICE, Allowances, VariableChoice
from snaploom.models.common import now
from snaploom.models.findings import InvalidDeclarations, exit_code_of
from snaploom.models.report import Report
from snaploom.output.folder import is_unused, open_folder
from snaploom.plugins.site.document import (
    INDEX,
    PAGE_HEADERS,
    VERSION_HEADER,
    problem_document,
    site_of,
    write_site,
)
from snaploom.plugins.site.pagedata import OutputPage
from snaploom.plugins.site.pages import (
    Clock,
    declared_pages,
    folder_page,
    read_reports,
    refuse_undrawable,
)
from snaploom.run.declarations import read_declarations
from snaploom.run.folders import open_named

# `snaploom page`: the state of outputs as pages of HTML that need no network and no server.


def page(
    place: Annotated[
        str | None,
        Parameter(
            name=PLACE,
            help="Name of an OutputDataset (with `-f`), or URI or absolute path of its folder; "
            "omitted with `--all`.",
        ),
    ] = None,
    /,
    *,
    to: Annotated[Path, Parameter(name="--to", help="Folder to write the pages to.")],
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    all_: Annotated[
        bool, Parameter(name="--all", help="Every OutputDataset of the files.")
    ] = False,
    report: Annotated[
        list[Path] | None,
        Parameter(
            name="--report",
            consume_multiple=True,
            help="Reports of runs, as `run -o json` prints them, or folders of such files: "
            "they show what failed.",
        ),
    ] = None,
    now: Annotated[
        str | None,
        Parameter(help="Time to which ages are measured, ISO 8601; omitted, the present."),
    ] = None,
    allow: options.Allow = (),
) -> int:
    """Write what is declared and published as pages of HTML, without Spark.

    A page shows the join graph, the timeline with what is due, gaps and restatements, what is wrong
    with the data, rows, sizes and match rates over time, sample rows and statistics of columns,
    schema history, checks, lineage, indexes, runs and findings. It is one file, which
    loads nothing: it can be opened from disk, sent by mail, or put on any web server.

    No row is read: pages come from declarations, names of the sources' files, and what the output
    folder records. What is doubtful is on the page and printed. A folder that cannot be read is a
    finding on its page, and ends the command with 1.
    """
    _refuse_page_confusion(place, file, all_)
    clock = Clock(options.instant_of(now), now is None)
    reports = read_reports(report or ())
    pages = _pages(place, file, project, clock, reports, allow)
    with options.writing_to(to):
        write_site(to, site_of(pages, clock.now))
    result_console().print(f"wrote {to / INDEX}", markup=False)
    findings = [finding for each in pages for finding in each.findings]
    print_findings(dict.fromkeys(findings), message_console())
    return 1 if any(each.problem for each in pages) else exit_code_of(findings)


def _pages(
    place: str | None,
    file: options.Files | None,
    project: options.ProjectOptions,
    clock: Clock,
    reports: tuple[Report, ...],
    allow: tuple[str, ...],
) -> tuple[OutputPage, ...]:
    if not file:
        return (folder_page(folder_named(place or ""), clock, reports),)
    declarations = project.read(file, allow)
    names = declarations.output_names if place is None else (place,)
    return declared_pages(declarations, names, clock, reports)


def _refuse_page_confusion(place: str | None, file: options.Files | None, all_: bool) -> None:
    if (place is not None) == all_:
        found = f"{place} and --all" if all_ else "no output, and no --all"
        message, path = "one output or all of them is needed", PLACE
        expected, hint = "the name of an output, or --all", "give one of the two"
    elif all_ and not file:
        message, path, found = "nothing is declared", "--file", "--all without -f"
        expected, hint = "files that declare OutputDatasets", "add where they are: --all -f PATH"
    else:
        return
    raise options.refuse_request(message, path, found, expected, hint)


# `snaploom serve`: the pages of `snaploom page`, as of now, on this machine.


def serve(
    name: Annotated[
        str | None,
        Parameter(name="OUTPUT", help="Name of an OutputDataset; omitted, all of them."),
    ] = None,
    /,
    *,
    file: options.Files,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    port: Annotated[
        int,
        Parameter(
            show_default=True,
            validator=Number(gte=0, lte=65_535),
            help="Port to listen on; 0 takes any that is free.",
        ),
    ] = 8765,
    allow: options.Allow = (),
) -> int:
    """Show what is declared and published in a browser, and keep it up to date, until Ctrl-C.

    Pages are those of `snaploom page`. They are made anew when declarations or manifests change,
    and an open page shows that within seconds. Only this machine is answered; nothing is written.
    """
    # What is wrong from the start is an error here; what becomes wrong later is shown as a page.
    declarations = project.read(file, allow)
    names = declarations.output_names if name is None else (name,)
    refuse_undrawable(declarations, names)
    source = PageSource(file, () if name is None else names, declarations.allow, project.choice)
    with page_server(source, LOOPBACK[0], port) as server:
        address = f"http://{LOOPBACK[0]}:{server.server_address[1]}/"
        message_console().print(f"{address} shows the outputs, until Ctrl-C", markup=False)
        server.serve_forever(poll_interval=0.2)
    return 0


# Serves pages on this machine, as of now: reads declarations and manifests, and writes nothing.

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

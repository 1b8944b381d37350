"""An HTTP server for untrusted clients, with limits and hot reload of its certificate."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from ssl import SSLContext

from aiohttp import web

from snaploom_operator.cluster.certificates import expiry
from snaploom_operator.errors import SettingsInvalid

_log = logging.getLogger(__name__)


CERTIFICATE, KEY = "tls.crt", "tls.key"
"""File names, as in Secrets of the type `kubernetes.io/tls`."""
RELOAD_SECONDS = 2.0
"""Interval of checking the files. Kubernetes itself takes up to a minute to update them."""


class ServedCertificate:
    """The newest valid certificate of a folder, which may be empty at first.

    `on_expiry` is called with the expiry in seconds since 1970, for a metric.
    """

    def __init__(self, folder: Path, on_expiry: Callable[[float], None]) -> None:
        self._folder = folder
        self._on_expiry = on_expiry
        self._contents: tuple[bytes, bytes] | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        """TLS context of the server; every handshake uses the newest certificate."""
        self.context.sni_callback = self._choose

    @property
    def is_there(self) -> bool:
        return self._current is not None

    def reload(self) -> None:
        """Load the files if they changed and are valid."""
        contents = self._read()
        if contents is None or contents == self._contents:
            return
        context = _context()
        try:
            context.load_cert_chain(self._folder / CERTIFICATE, self._folder / KEY)
        except (ssl.SSLError, OSError) as error:
            # Read between two writes; the next check reads both.
            _log.warning("cannot load the certificate in %s: %s", self._folder, error)
            return
        if contents != self._read():
            return
        self._contents, self._current = contents, context
        ends = expiry(contents[0])
        if ends is not None:
            self._on_expiry(ends.timestamp())
        _log.info("certificate in use, until %s", ends)

    async def follow(self) -> None:
        """Reload periodically, until cancelled."""
        while True:
            self.reload()
            await asyncio.sleep(RELOAD_SECONDS)

    def _read(self) -> tuple[bytes, bytes] | None:
        try:
            return (self._folder / CERTIFICATE).read_bytes(), (self._folder / KEY).read_bytes()
        except OSError:
            return None

    def _choose(self, connection: ssl.SSLObject, name: str | None, asked: ssl.SSLContext) -> None:
        """Callback of every handshake, with or without a server name."""
        if self._current is not None:
            connection.context = self._current


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


GRACE_SECONDS = 10.0
"""Time limit of requests in progress at shutdown; longer than any takes."""
HANDSHAKE_SECONDS = 5.0
"""Time limit of a TLS handshake; asyncio's is a minute."""
IDLE_SECONDS = 120.0
"""Time limit of an idle connection. Go clients close theirs after 90 seconds, so that the server
never closes one that is just being reused."""
MOST_CONNECTIONS = 512
"""Open connections; an API server has one for each review in progress, and 25 in reserve. Each
takes some 60 KB."""
MOST_ANSWERS = 16
"""Requests that are answered at a time; of probes, metrics and pages, none needs more."""
ANSWER_SECONDS = 30.0
"""Time limit of an answer, until the client has read it."""
SWEEP_SECONDS = 0.2
"""Interval of the check for too many connections."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Turns:
    """A number of turns at a time, shared among peers.

    Where there are no more, the longest turn of the peer with most of them ends for a peer that has
    fewer; that peer itself is refused.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, dict[asyncio.Timeout, None]] = {}

    @asynccontextmanager
    async def turn(self, peer: str, seconds: float) -> AsyncIterator[None]:
        """A turn of a peer, for so many seconds at most.

        Raises:
            NoTurn: there is none.
            TimeoutError: it took too long, or another peer has it now.
        """
        own = self._held.get(peer, {})
        if sum(map(len, self._held.values())) >= self._most:
            greediest = max(self._held, key=lambda each: len(self._held[each]))
            if len(self._held[greediest]) <= len(own):
                raise NoTurn
            longest = next(iter(self._held[greediest]))
            self._leave(greediest, longest)
            if not longest.expired():
                longest.reschedule(asyncio.get_running_loop().time())
        async with asyncio.timeout(seconds) as mine:
            self._held.setdefault(peer, {})[mine] = None
            try:
                yield
            finally:
                self._leave(peer, mine)

    def _leave(self, peer: str, turn: asyncio.Timeout) -> None:
        held = self._held.get(peer, {})
        held.pop(turn, None)
        if not held:
            self._held.pop(peer, None)


class NoTurn(Exception):
    """There are as many requests of a peer as may be."""


def peer_of(request: web.Request) -> str:
    """The address that a request comes from; empty where it is known no more."""
    return request.remote or ""


class _Answers:
    """Answers so many requests at a time, until the clients have read them."""

    def __init__(self, most: int) -> None:
        self._turns = Turns(most)

    @web.middleware
    async def bound(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer a request, or that there are too many."""
        try:
            async with self._turns.turn(peer_of(request), ANSWER_SECONDS):
                try:
                    response = await handler(request)
                except web.HTTPException as error:
                    response = error
                with suppress(ConnectionError):  # the client is gone
                    await response.prepare(request)
                    await response.write_eof()
                return response
        except NoTurn:
            return web.Response(
                text="too many requests at a time\n",
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                headers={"Retry-After": "1"},
            )
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable from None


class _Site(web.BaseSite):
    """A listening socket with a time limit for TLS handshakes."""

    def __init__(
        self, runner: web.AppRunner, host: str | None, port: int, tls: SSLContext | None
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._host = host
        self._port = port

    @property
    def name(self) -> str:
        return f"{self._host or '*'}:{self._port}"

    async def start(self) -> None:
        await super().start()
        server = self._runner.server
        assert server is not None  # set by AppRunner.setup
        self._server = await asyncio.get_running_loop().create_server(
            server,
            self._host,
            self._port,
            ssl=self._ssl_context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._ssl_context else None,
        )


class _Connections:
    """The open connections of a server, and their limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._busy: dict[object, int] = {}

    @web.middleware
    async def watch(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Track which connections have a request in progress."""
        connection = request.protocol
        self._busy[connection] = self._busy.get(connection, 0) + 1
        try:
            return await handler(request)
        finally:
            self._busy[connection] -= 1
            if not self._busy[connection]:
                del self._busy[connection]

    async def sweep(self, runner: web.AppRunner) -> None:
        """Close idle connections beyond the limit, the oldest first, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            if runner.server is None:
                return
            connections = runner.server.connections
            idle = (each for each in connections if each not in self._busy)
            for _, connection in zip(range(len(connections) - self._most), idle, strict=False):
                connection.force_close()


@web.middleware
async def plain_bodies_only(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Reject compressed bodies, which API servers never send."""
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise web.HTTPUnsupportedMediaType(text="compressed bodies are not supported")
    return await handler(request)


@asynccontextmanager
async def serving(
    application: web.Application,
    host: str | None,
    port: int,
    tls: SSLContext | None = None,
    *,
    most: int = MOST_CONNECTIONS,
    idle: float = IDLE_SECONDS,
    answers: int = MOST_ANSWERS,
) -> AsyncIterator[int]:
    """Serve until the end of the context; yields the bound port, any free one for 0.

    At the end new requests are rejected, and those in progress are finished.

    Raises:
        SettingsInvalid: the port is in use or not allowed.
    """
    connections = _Connections(most)
    bound = _Answers(answers).bound
    application.middlewares[:0] = [connections.watch, plain_bodies_only, bound]
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=GRACE_SECONDS,
        keepalive_timeout=idle,
        auto_decompress=False,
    )
    await runner.setup()
    try:
        try:
            await _Site(runner, host, port, tls).start()
        except OSError as error:
            raise port_unusable(port, error) from error
        sweeping = asyncio.create_task(connections.sweep(runner))
        try:
            yield int(runner.addresses[0][1])
        finally:
            sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await sweeping
    finally:
        await runner.cleanup()


def port_unusable(port: int, error: OSError) -> SettingsInvalid:
    """The error for a port that cannot be listened on."""
    return SettingsInvalid(
        "this port cannot be listened on",
        found=f"port {port}: {error.strerror or error}",
        expected="a port that is free",
        hint="set another admission.port, pages.port, healthPort, readinessPort or metricsPort; "
        "0 takes any",
    )

"""An HTTP server for untrusted clients, with limits on connections, time and bodies.

Every client that reaches the port may connect: the API server cannot be recognised. So handshakes
and requests have time limits, bodies are never decompressed, and beyond the limit of connections
the longest idle ones are closed, so that a new one is always accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext

from aiohttp import web

from snaploom_operator.errors import SettingsInvalid

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
SWEEP_SECONDS = 0.2
"""Interval of the check for too many connections."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Site(web.BaseSite):
    """A listening socket with a time limit for TLS handshakes.

    Args:
        runner: the server.
        host: address; None for all.
        port: port; 0 for any that is free.
        tls: certificate; None for none.
    """

    def __init__(
        self, runner: web.AppRunner, host: str | None, port: int, tls: SSLContext | None
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._host = host
        self._port = port

    @property
    def name(self) -> str:
        """Its address, for messages."""
        return f"{self._host or '*'}:{self._port}"

    async def start(self) -> None:
        """Start to listen."""
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
    """The open connections of a server.

    Args: most: limit of open connections.
    """

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
) -> AsyncIterator[int]:
    """Serve until the end of the context; yields the bound port.

    At the end new requests are rejected, and those in progress are finished.

    Args: application: the application. host: address; None for all. port: port; 0 for any that is
        free. tls: certificate; None for none. most: limit of open connections. idle: seconds after
        which an idle connection is closed.

    Raises:
        SettingsInvalid: the port is in use or not allowed.
    """
    connections = _Connections(most)
    application.middlewares.extend([connections.watch, plain_bodies_only])
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=GRACE_SECONDS,
        keepalive_timeout=idle,
        auto_decompress=False,
    )
    await runner.setup()
    try:
        await _listen(_Site(runner, host, port, tls), port)
        sweeping = asyncio.create_task(connections.sweep(runner))
        try:
            yield int(runner.addresses[0][1])
        finally:
            sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await sweeping
    finally:
        await runner.cleanup()


async def _listen(site: _Site, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        raise SettingsInvalid(
            "this port cannot be listened on",
            found=f"port {port}: {error.strerror or error}",
            expected="a port that is free",
            hint="set another admission.port, pages.port, healthPort or metricsPort; 0 takes any",
        ) from error

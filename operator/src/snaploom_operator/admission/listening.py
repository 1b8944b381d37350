"""A server that strangers may speak to: how many connections, how long, and in which form.

Everybody who reaches the port may connect: the API server has no name by which to let it in. So
what an open connection costs is bounded: handshakes and requests have a time, bodies are never
unpacked, and where there are too many connections those that wait longest for nothing are closed,
so that a new one always finds a place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext

from aiohttp import web

from snaploom_operator.errors import SettingsInvalid

GRACE_SECONDS = 10.0
"""How long requests under way may take when the server ends; longer than any does."""
HANDSHAKE_SECONDS = 5.0
"""How long a handshake of TLS may take; asyncio would wait for a minute."""
IDLE_SECONDS = 120.0
"""How long a connection may be open without a request. Clients written in Go close theirs after
90: it is never the server that closes one just as it is used again."""
MOST_CONNECTIONS = 512
"""Open connections; an API server has one for each review under way, and 25 in reserve. Each takes
some 60 KB."""
SWEEP_SECONDS = 0.2
"""Between two looks at how many there are."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Site(web.BaseSite):
    """Where a server listens, with a deadline for handshakes.

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
        """Where it listens, for messages."""
        return f"{self._host or '*'}:{self._port}"

    async def start(self) -> None:
        """Begin to listen."""
        await super().start()
        server = self._runner.server
        assert server is not None  # the runner was set up
        self._server = await asyncio.get_running_loop().create_server(
            server,
            self._host,
            self._port,
            ssl=self._ssl_context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._ssl_context else None,
        )


class _Connections:
    """The open connections of a server.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._busy: dict[object, int] = {}

    @web.middleware
    async def watch(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Note which connections have a request under way."""
        connection = request.protocol
        self._busy[connection] = self._busy.get(connection, 0) + 1
        try:
            return await handler(request)
        finally:
            self._busy[connection] -= 1
            if not self._busy[connection]:
                del self._busy[connection]

    async def sweep(self, runner: web.AppRunner) -> None:
        """Close what is too much, the oldest without a request first, until cancelled."""
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
    """Refuse bodies that would have to be unpacked: no API server packs them."""
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise web.HTTPUnsupportedMediaType(text="a body that is not compressed is expected")
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
    """Serve until the end of the context; the port, which differs from 0 where 0 was asked for.

    At the end nothing new is accepted, and what is under way is finished.

    Args:
        application: what is served.
        host: address; None for all.
        port: port; 0 for any that is free.
        tls: certificate; None for none.
        most: open connections.
        idle: seconds that one may be open without a request.

    Raises:
        SettingsInvalid: the port is taken, or not allowed.
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
            "the webhook cannot listen there",
            found=f"port {port}: {error.strerror or error}",
            expected="a port that is free",
            hint="set admission.port, healthPort and metricsPort; 0 takes any free port",
        ) from error

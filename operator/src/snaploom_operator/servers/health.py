"""Endpoints for probes and for Prometheus."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from snaploom_operator.servers.answercache import AnswerCache
from snaploom_operator.servers.httpserver import port_unusable

METRICS_SECONDS = 2.0
"""Seconds for which metrics are shown again: less than an interval of scraping. Those of 2,000
outputs take 0.2 seconds of a processor."""
HEARTBEAT_TIMEOUT = 60.0
"""Seconds without a heartbeat of the loop after which liveness fails."""

Trouble = Callable[[], str]
"""Returns the problem; empty without one."""


def metrics_application(registry: CollectorRegistry) -> web.Application:
    """`/metrics`, computed in a thread, once for all who ask within some seconds."""
    texts = AnswerCache[bytes](METRICS_SECONDS, 1, time.monotonic)

    async def page(_: web.Request) -> web.Response:
        body = await texts.get((), lambda: asyncio.to_thread(generate_latest, registry))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.router.add_get("/metrics", page)
    return application


def readiness_application(unready: Trouble) -> web.Application:
    """`/readyz`.

    Args:
        unready: returns why the process is not ready.
    """
    application = web.Application()

    async def answer(_: web.Request) -> web.StreamResponse:
        found = unready()
        status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
        return web.Response(text=f"{found or 'ok'}\n", status=status)

    application.router.add_get("/readyz", answer)
    return application


def liveness_endpoint(port: int) -> str:
    """The URL at which kopf answers liveness probes.

    Args:
        port: the port; 0 for any that is free.

    Raises:
        SettingsInvalid: the port is in use or not allowed.
    """
    # kopf listens at one address.
    host, family = ("0.0.0.0", socket.AF_INET) if _has_ipv4() else ("[::]", socket.AF_INET6)
    try:
        with socket.create_server((host.strip("[]"), port), family=family) as free:
            port = free.getsockname()[1]
    except OSError as error:
        raise port_unusable(port, error) from error
    return f"http://{host}:{port}/healthz"


def _has_ipv4() -> bool:
    """Whether this machine has an address of IPv4; pods of some clusters have not."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return True
    return any(family is socket.AF_INET for family, *_ in found)

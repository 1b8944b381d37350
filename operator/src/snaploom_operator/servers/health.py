"""Endpoints for probes and for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from snaploom_operator.servers.answercache import AnswerCache

METRICS_SECONDS = 2.0
"""Seconds for which metrics are shown again: less than an interval of scraping. Those of 2,000
outputs take 0.2 seconds of a processor."""
HEARTBEAT_TIMEOUT = 60.0
"""Seconds without a heartbeat of the loop after which liveness fails."""

Trouble = Callable[[], str]
"""Returns the problem; empty without one."""


def nothing() -> str:
    """No problem: a process that answers probes is alive."""
    return ""


def health_application(dead: Trouble, unready: Trouble) -> web.Application:
    """`/healthz` and `/readyz`.

    Args:
        dead: returns why the process should be restarted.
        unready: returns why it is not ready.
    """
    application = web.Application()
    add_probes(application, dead, unready)
    return application


def add_probes(application: web.Application, dead: Trouble, unready: Trouble) -> None:
    """Add `/healthz` and `/readyz`; the arguments are those of `health_application`."""
    application.router.add_get("/healthz", _probe(dead))
    application.router.add_get("/readyz", _probe(unready))


def metrics_application(registry: CollectorRegistry) -> web.Application:
    """`/metrics`, computed in a thread, once for all who ask within some seconds."""
    texts = AnswerCache[bytes](METRICS_SECONDS, 1, time.monotonic)

    async def page(_: web.Request) -> web.Response:
        body = await texts.get((), lambda: asyncio.to_thread(generate_latest, registry))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.router.add_get("/metrics", page)
    return application


def _probe(
    trouble: Trouble,
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        found = trouble()
        status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
        return web.Response(text=f"{found or 'ok'}\n", status=status)

    return answer

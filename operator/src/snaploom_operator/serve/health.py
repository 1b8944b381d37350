"""Endpoints for probes and for Prometheus, readiness, and answers remembered for seconds."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, TypeVar

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from snaploom_operator.serve.http import ServedCertificate, port_unusable
from snaploom_operator.store.feed import Feed

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class _Held(Generic[_Answer]):
    answer: asyncio.Future[_Answer]
    until: float


class AnswerCache(Generic[_Answer]):
    """Answers by key, for some seconds from the request on; all who ask at once share one request.

    Beyond `most` answers the oldest is dropped; `clock` has monotonic seconds.
    """

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._held: dict[tuple[str, ...], _Held[_Answer]] = {}

    def __len__(self) -> int:
        return len(self._held)

    async def get(self, key: tuple[str, ...], ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """The answer to what is asked; a failure is not remembered."""
        held = self._held.get(key)
        if held is None or held.until <= self._clock():
            self._held.pop(key, None)
            while len(self._held) >= self._most:
                del self._held[next(iter(self._held))]
            held = _Held(asyncio.ensure_future(ask()), self._clock() + self._seconds)
            self._held[key] = held
        try:
            # One who goes away must not end what others wait for.
            return await asyncio.shield(held.answer)
        except BaseException:
            if held.answer.done() and self._held.get(key) is held:
                del self._held[key]
            raise


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
    """`/readyz`; `unready` returns why the process is not ready."""
    application = web.Application()

    async def answer(_: web.Request) -> web.StreamResponse:
        found = unready()
        status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
        return web.Response(text=f"{found or 'ok'}\n", status=status)

    application.router.add_get("/readyz", answer)
    return application


def liveness_endpoint(port: int) -> str:
    """The URL at which kopf answers liveness probes; with port 0 at any that is free.

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
    """Return True if this machine has an IPv4 address; pods of some clusters have not."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return True
    return any(family is socket.AF_INET for family, *_ in found)


class Readiness:
    """The readiness of a server, whose cache has a largest age in seconds."""

    def __init__(self, feed: Feed, certificate: ServedCertificate | None, age_limit: float) -> None:
        self._feed = feed
        self._certificate = certificate
        self._age_limit = age_limit
        self._is_ending = False

    @property
    def trouble(self) -> str:
        """Reason why it is not ready; empty if it is."""
        if self._is_ending:
            return "it is shutting down"
        if self._certificate is not None and not self._certificate.is_there:
            return "no certificate is loaded yet"
        if not self._feed.is_synced:
            return "the cache is not filled yet"
        if self._feed.age > self._age_limit:
            return f"the cache is {self._feed.age:.0f} seconds old"
        return ""

    def end(self) -> None:
        """Become not ready; requests are still answered."""
        self._is_ending = True

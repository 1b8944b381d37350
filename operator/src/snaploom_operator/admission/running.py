"""The webhook as a whole: its parts put together, started, and stopped without losing a review."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from snaploom_operator.admission.judge import Judge
from snaploom_operator.admission.listening import serving
from snaploom_operator.admission.metrics import AdmissionMetrics
from snaploom_operator.admission.server import Webhook
from snaploom_operator.admission.tls import ServedCertificate
from snaploom_operator.admission.view import View
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.knowledge.store import Store
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.sqlworkers import running_workers

THREADS = 4
"""Threads for judging: one slow review does not hold up the next."""
SWITCH_SECONDS = 0.0005
"""How long a thread may compute while another wants to, a tenth of Python's own: the loop asks for
its turn some ten times in a review, and waits so long each time that a thread judges a large one.
With the hostile objects of `make bench-admission` the median of others' reviews was 223 ms with
Python's own and two threads, and 18 ms with this and one."""
DRAIN_SECONDS = 5.0
"""How long the webhook answers after it was told to end, and says that it is not ready: until no
API server sends it anything."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ports:
    """Where it listens."""

    review: int
    health: int
    metrics: int


class Readiness:
    """Whether the webhook may be asked.

    Args:
        view: what it knows.
        certificate: what it serves.
        age_limit: seconds that what it knows may be old.
    """

    def __init__(self, view: View, certificate: ServedCertificate, age_limit: float) -> None:
        self._view = view
        self._certificate = certificate
        self._age_limit = age_limit
        self._is_ending = False

    @property
    def trouble(self) -> str:
        """Why it is not ready; empty when it is."""
        if self._is_ending:
            return "it is ending"
        if not self._certificate.is_there:
            return "there is no certificate yet"
        if not self._view.is_synced:
            return "not everything was listed yet"
        if self._view.age > self._age_limit:
            return f"nothing was heard of the cluster for {self._view.age:.0f} seconds"
        return ""

    def end(self) -> None:
        """It is not ready any more, though it goes on answering."""
        self._is_ending = True


@asynccontextmanager
async def running_webhook(
    cluster: Cluster,
    settings: OperatorSettings,
    *,
    host: str | None = None,
    drain: float = DRAIN_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Ports]:
    """A webhook that answers until the end of the context.

    Args:
        cluster: where resources are.
        settings: what whoever installed it decided.
        host: address to listen at; None for all.
        drain: seconds to go on answering when the end has come.
        clock: seconds that never go back.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    admission = settings.admission
    store = Store()
    metrics = AdmissionMetrics(CollectorRegistry())
    view = View(store, cluster, settings.watch_namespaces, clock)
    certificate = ServedCertificate(Path(admission.certificate_folder), metrics.certified_until)
    readiness = Readiness(view, certificate, admission.view_age_limit_seconds)
    metrics.show_view(lambda: view.age, lambda: view.size)
    async with AsyncExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(THREADS, "review"))
        judge = Judge(
            store,
            admission,
            threads,
            await stack.enter_async_context(running_workers()),
            allow_jdbc_url=settings.allow_jdbc_url,
            allow=settings.allow,
        )
        webhook = Webhook(judge.judge, metrics, lambda: readiness.trouble)
        certificate.look()
        for work in (view.run(), certificate.follow()):
            await stack.enter_async_context(_in_background(work))
        ports = Ports(
            review=await stack.enter_async_context(
                serving(webhook.application(), host, admission.port, certificate.context)
            ),
            health=await stack.enter_async_context(
                serving(webhook.health_application(), host, settings.health_port)
            ),
            metrics=await stack.enter_async_context(
                serving(webhook.metrics_application(), host, settings.metrics_port)
            ),
        )
        _log.info("the webhook listens at port %d", ports.review)
        yield ports
        readiness.end()
        _log.info("the webhook ends")
        await asyncio.sleep(drain)


@asynccontextmanager
async def _in_background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

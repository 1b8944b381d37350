"""The webhook process: composes its parts, starts them, and shuts down gracefully."""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from snaploom_operator.admission.judge import Judge, Judgement
from snaploom_operator.admission.webhook import AdmissionMetrics, Webhook
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.process.process import Process
from snaploom_operator.serve.health import Readiness, metrics_application, readiness_application
from snaploom_operator.serve.http import MOST_CONNECTIONS, ServedCertificate, serving
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.store.feed import DECLARATIONS, Feed
from snaploom_operator.store.store import Store
from snaploom_operator.verdicts import running_workers

_log = logging.getLogger(__name__)

THREADS = 4
"""Threads for reviews: a slow review does not block the next."""
SWITCH_SECONDS = 0.0005
"""Python's thread switch interval, a tenth of the default: the event loop needs its turn some ten
times in a review, and waits that long each time while a thread reviews a large object. With the
hostile objects of `make bench-admission` the median of others' reviews was 223 ms with Python's own
and two threads, and 18 ms with this and one."""
DRAIN_SECONDS = 5.0
"""Seconds between SIGTERM and shutdown, in which the webhook is not ready but still answers: until
no API server sends requests."""


@dataclass(frozen=True)
class Admission:
    """A running webhook, but for its HTTPS endpoint."""

    feed: Feed
    judge: Judge
    metrics: AdmissionMetrics
    certificate: ServedCertificate
    readiness: Readiness
    port: int
    host: str | None
    drain: float
    readiness_port: int
    metrics_port: int
    trouble: str = ""
    """None: while it answers liveness probes, it works."""

    @asynccontextmanager
    async def answering(self, judge: Callable[[bytes], Awaitable[Judgement]]) -> AsyncIterator[int]:
        """Answer reviews by `judge` until the end of the context, and for the drain from then on.

        Raises:
            SettingsInvalid: the port is in use or not allowed.
        """
        webhook = Webhook(judge, self.metrics)
        endpoint = serving(
            webhook.application(),
            self.host,
            self.port,
            self.certificate.context,
            answers=MOST_CONNECTIONS,  # it bounds reviews itself
        )
        async with endpoint as port:
            _log.info("the webhook listens on port %d", port)
            try:
                yield port
            finally:
                self.readiness.end()
                _log.info("the webhook is shutting down")
                await asyncio.sleep(self.drain)


@asynccontextmanager
async def running_webhook(
    process: Process[Admission],
    cluster: Cluster,
    settings: OperatorSettings,
    *,
    host: str | None = None,
    drain: float = DRAIN_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Admission]:
    """Run the parts of the webhook until the end of the context, at an address or all.

    Raises:
        SettingsInvalid: a port is in use or not allowed.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    admission = settings.admission
    store = Store()
    metrics = AdmissionMetrics(CollectorRegistry())
    feed = Feed(store, cluster, DECLARATIONS, settings.watch_namespaces, clock)
    certificate = ServedCertificate(Path(admission.certificate_folder), metrics.expiry.set)
    readiness = Readiness(feed, certificate, admission.view_age_limit_seconds)
    metrics.show_cache(lambda: feed.age, lambda: feed.size)
    async with AsyncExitStack() as stack:
        judge = Judge(
            store,
            admission,
            stack.enter_context(ThreadPoolExecutor(THREADS, "review")),
            await stack.enter_async_context(running_workers()),
            allow_jdbc_url=settings.allow_jdbc_url,
            allow=settings.allow,
        )
        certificate.reload()
        process.spawn("list", feed.follow(settings.resync_seconds))
        process.spawn("certificate", certificate.follow())
        probed = readiness_application(lambda: readiness.trouble)
        measured = metrics_application(metrics.registry)
        yield Admission(
            feed,
            judge,
            metrics,
            certificate,
            readiness,
            admission.port,
            host,
            drain,
            readiness_port=await stack.enter_async_context(
                serving(probed, host, settings.readiness_port)
            ),
            metrics_port=await stack.enter_async_context(
                serving(measured, host, settings.metrics_port)
            ),
        )

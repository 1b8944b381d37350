"""The webhook process: composes its parts, starts them, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from snaploom_operator.admission.admissionmetrics import AdmissionMetrics
from snaploom_operator.admission.judge import Judge
from snaploom_operator.admission.webhookserver import Webhook
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.operatorsettings import OperatorSettings
from snaploom_operator.servers.background import in_background
from snaploom_operator.servers.health import health_application, metrics_application, nothing
from snaploom_operator.servers.httpserver import MOST_CONNECTIONS, serving
from snaploom_operator.servers.readiness import Readiness
from snaploom_operator.servers.tls import ServedCertificate
from snaploom_operator.store.store import Store
from snaploom_operator.textworkers import running_workers
from snaploom_operator.watch.informer import Informer
from snaploom_operator.watch.watchedkinds import DECLARATIONS

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

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ports:
    """The bound ports."""

    review: int
    health: int
    metrics: int


@asynccontextmanager
async def running_webhook(
    cluster: Cluster,
    settings: OperatorSettings,
    *,
    host: str | None = None,
    drain: float = DRAIN_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Ports]:
    """Run the webhook until the end of the context.

    Args: cluster: the cluster. settings: the operator's settings. host: address to listen on; None
        for all. drain: seconds between becoming not ready and shutdown. clock: monotonic seconds.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    admission = settings.admission
    store = Store()
    metrics = AdmissionMetrics(CollectorRegistry())
    informer = Informer(store, cluster, DECLARATIONS, settings.watch_namespaces, clock)
    certificate = ServedCertificate(Path(admission.certificate_folder), metrics.certified_until)
    readiness = Readiness(informer, certificate, admission.view_age_limit_seconds)
    metrics.show_informer(lambda: informer.age, lambda: informer.size)
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
        certificate.reload()
        for work in (informer.run(settings.resync_seconds), certificate.follow()):
            await stack.enter_async_context(in_background(work))
        ports = Ports(
            review=await stack.enter_async_context(
                serving(
                    webhook.application(),
                    host,
                    admission.port,
                    certificate.context,
                    answers=MOST_CONNECTIONS,  # it bounds reviews itself
                )
            ),
            health=await stack.enter_async_context(
                serving(
                    health_application(nothing, lambda: readiness.trouble),
                    host,
                    settings.health_port,
                )
            ),
            metrics=await stack.enter_async_context(
                serving(metrics_application(metrics.registry), host, settings.metrics_port)
            ),
        )
        _log.info("the webhook listens on port %d", ports.review)
        yield ports
        readiness.end()
        _log.info("the webhook is shutting down")
        await asyncio.sleep(drain)

"""The process that serves pages: composes its parts, starts them, and shuts down gracefully."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from snaploom_operator.cluster.port import Cluster
from snaploom_operator.operatorsettings import OperatorSettings
from snaploom_operator.pages.access import SHOWN, Access
from snaploom_operator.pages.pageserver import PageServer
from snaploom_operator.pages.pagesmetrics import PagesMetrics
from snaploom_operator.servers.background import in_background
from snaploom_operator.servers.health import health_application, metrics_application, nothing
from snaploom_operator.servers.httpserver import serving
from snaploom_operator.servers.readiness import Readiness
from snaploom_operator.servers.tls import ServedCertificate
from snaploom_operator.store.store import Store
from snaploom_operator.watch.informer import Informer
from snaploom_operator.watch.watchedkinds import Watched

OLDEST_VIEW_SECONDS = 900.0
"""Age of the cache from which the pages are not ready, as of the webhook's; a watch that works has
an event every minute."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PagesPorts:
    """The bound ports."""

    pages: int
    health: int
    metrics: int


@asynccontextmanager
async def running_pages(
    cluster: Cluster,
    settings: OperatorSettings,
    *,
    host: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[PagesPorts]:
    """Serve pages until the end of the context.

    Args:
        cluster: the cluster.
        settings: the operator's settings.
        host: address to listen on; None for all.
        clock: monotonic seconds.

    Raises:
        SettingsInvalid: a port is in use or not allowed.
    """
    store = Store()
    metrics = PagesMetrics(CollectorRegistry())
    kinds = tuple(Watched(kind) for kind in SHOWN)
    informer = Informer(store, cluster, kinds, settings.watch_namespaces, clock)
    metrics.show_informer(lambda: informer.age)
    folder = settings.pages.certificate_folder
    certificate = ServedCertificate(Path(folder), lambda expiry: None) if folder else None

    readiness = Readiness(informer, certificate, OLDEST_VIEW_SECONDS)

    def trouble() -> str:
        return readiness.trouble

    server = PageServer(store, Access(cluster, metrics.reviewed, clock), metrics, trouble)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(in_background(informer.run(settings.resync_seconds)))
        if certificate is not None:
            certificate.reload()
            await stack.enter_async_context(in_background(certificate.follow()))
        tls = None if certificate is None else certificate.context
        ports = PagesPorts(
            pages=await stack.enter_async_context(
                serving(server.application(), host, settings.pages.port, tls)
            ),
            health=await stack.enter_async_context(
                serving(health_application(nothing, trouble), host, settings.health_port)
            ),
            metrics=await stack.enter_async_context(
                serving(metrics_application(metrics.registry), host, settings.metrics_port)
            ),
        )
        _log.info("pages are served on port %d", ports.pages)
        yield ports
        _log.info("the pages are shutting down")

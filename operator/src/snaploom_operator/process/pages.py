"""The process that serves pages: composes its parts, starts them, and shuts down gracefully."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from snaploom_operator.cluster.port import Cluster
from snaploom_operator.process.process import Process
from snaploom_operator.serve.health import Readiness, metrics_application, readiness_application
from snaploom_operator.serve.http import ServedCertificate, serving
from snaploom_operator.serve.pages import SHOWN, Access, PageServer, PagesMetrics
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.store.feed import Feed, Watched
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)

SHOWN_KINDS = tuple(Watched(kind) for kind in SHOWN)
"""The kinds that pages are made of."""
OLDEST_VIEW_SECONDS = 900.0
"""Age of the cache from which the pages are not ready, as of the webhook's; a watch that works has
an event every minute."""


@dataclass(frozen=True)
class Pages:
    """A running server of pages."""

    feed: Feed
    port: int
    readiness_port: int
    metrics_port: int
    trouble: str = ""
    """None: while it answers liveness probes, it works."""


@asynccontextmanager
async def running_pages(
    process: Process[Pages],
    cluster: Cluster,
    settings: OperatorSettings,
) -> AsyncIterator[Pages]:
    """Serve pages until the end of the context.

    Raises:
        SettingsInvalid: a port is in use or not allowed.
    """
    store = Store()
    metrics = PagesMetrics(CollectorRegistry())
    feed = Feed(store, cluster, SHOWN_KINDS, settings.watch_namespaces, time.monotonic)
    metrics.age.set_function(lambda: feed.age)
    folder = settings.pages.certificate_folder
    certificate = ServedCertificate(Path(folder), lambda expiry: None) if folder else None
    readiness = Readiness(feed, certificate, OLDEST_VIEW_SECONDS)

    def trouble() -> str:
        return readiness.trouble

    server = PageServer(store, Access(cluster, metrics.reviewed), metrics, trouble)
    async with AsyncExitStack() as stack:
        process.spawn("list", feed.follow(settings.resync_seconds))
        if certificate is not None:
            certificate.reload()
            process.spawn("certificate", certificate.follow())
        tls = None if certificate is None else certificate.context
        pages = Pages(
            feed,
            port=await stack.enter_async_context(
                serving(server.application(), None, settings.pages.port, tls)
            ),
            readiness_port=await stack.enter_async_context(
                serving(readiness_application(trouble), None, settings.readiness_port)
            ),
            metrics_port=await stack.enter_async_context(
                serving(metrics_application(metrics.registry), None, settings.metrics_port)
            ),
        )
        _log.info("pages are served on port %d", pages.port)
        yield pages
        _log.info("the pages are shutting down")

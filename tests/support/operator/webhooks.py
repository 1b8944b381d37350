"""A webhook in this process, and how an API server asks it."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import kopf
from support.declared.declarations import Raw
from support.operator.clusters import until
from support.operator.fakecluster import Change, ChangeType, FakeCluster
from support.operator.reviews import a_review
from support.servers.certificates import Authority, Issued

from snaploom_operator.cluster.port import OURS, ApiResource, Cluster
from snaploom_operator.handlers.admission import ReviewServer
from snaploom_operator.process.process import Process
from snaploom_operator.process.webhook import Admission, running_webhook
from snaploom_operator.serve.http import CERTIFICATE, KEY
from snaploom_operator.settings import AdmissionSettings, OperatorSettings

HOST = "127.0.0.1"


def settings_for(folder: Path, **admission: Any) -> OperatorSettings:
    """Free ports, and certificates in a folder."""
    return OperatorSettings(
        health_port=0,
        readiness_port=0,
        metrics_port=0,
        admission=AdmissionSettings(port=0, certificate_folder=str(folder), **admission),
    )


def install(issued: Issued, folder: Path) -> None:
    """Put a certificate where the webhook looks for it."""
    folder.mkdir(exist_ok=True)
    (folder / CERTIFICATE).write_bytes(issued.certificate.read_bytes())
    (folder / KEY).write_bytes(issued.key.read_bytes())


@dataclass(frozen=True)
class Ports:
    """Where a webhook answers."""

    review: int
    ready: int
    metrics: int


@dataclass
class WebhookClient:
    """Asks a webhook, trusting one authority."""

    ports: Ports
    session: aiohttp.ClientSession
    trusted: ssl.SSLContext

    async def post(self, body: bytes) -> tuple[int, Raw]:
        url = f"https://{HOST}:{self.ports.review}/validate"
        async with self.session.post(url, data=body, ssl=self.trusted) as response:
            return response.status, await response.json()

    async def review(self, new: Raw | None, old: Raw | None = None, **changes: Any) -> Raw:
        url = f"https://{HOST}:{self.ports.review}/validate"
        body = a_review(new, old, **changes)
        async with self.session.post(url, json=body, ssl=self.trusted) as response:
            assert response.status == 200, await response.text()
            result: Raw = (await response.json())["response"]
            return result

    async def text(self, port: int, path: str) -> tuple[int, str]:
        async with self.session.get(f"http://{HOST}:{port}{path}") as response:
            return response.status, await response.text()

    async def readiness(self) -> str:
        return (await self.text(self.ports.ready, "/readyz"))[1].strip()

    async def until_ready(self) -> None:
        async def is_ready() -> bool:
            return await self.readiness() == "ok"

        await until(is_ready)


@asynccontextmanager
async def asking(ports: Ports, authority: Authority) -> AsyncIterator[WebhookClient]:
    """A client that trusts an authority and opens a connection for every request."""
    trusted = ssl.create_default_context(cafile=authority.certificate)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield WebhookClient(ports, session, trusted)


@asynccontextmanager
async def a_webhook(
    cluster: Cluster, folder: Path, authority: Authority, **admission: Any
) -> AsyncIterator[WebhookClient]:
    """A webhook that is ready, with a certificate of an authority."""
    certificates = folder / "certificates"
    install(authority.issue(HOST), certificates)
    settings = settings_for(certificates, **admission)
    async with (
        serving_webhook(cluster, settings) as ports,
        asking(ports, authority) as client,
    ):
        await client.until_ready()
        yield client


@asynccontextmanager
async def serving_webhook(
    cluster: Cluster, settings: OperatorSettings, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Ports]:
    """A webhook, with a cluster that need not be one that kopf can watch."""
    opened = partial(
        running_webhook, cluster=cluster, settings=settings, host=HOST, drain=0, clock=clock
    )
    process: Process[Admission] = Process(opened)
    server = ReviewServer(process)

    async def dispatched(request: Any, *, headers: Any = None, **_: Any) -> Any:
        with suppress(kopf.PermanentError):
            await server.judge(headers["number"])

    await process.begin()

    def watched(resource: ApiResource, change: Change) -> None:
        if resource in OURS.values():
            process.parts.feed.take(change.object, is_deleted=change.type is ChangeType.DELETED)

    if isinstance(cluster, FakeCluster):
        cluster.subscribe(watched)
    try:
        serving = server(dispatched)
        url = (await anext(serving))["url"]
        port = int(url.rsplit(":")[2].split("/")[0])
        yield Ports(port, process.parts.readiness_port, process.parts.metrics_port)
        await serving.aclose()
    finally:
        await process.end()

"""Runs a process by kopf: start, end, login, liveness, and the events of what it watches."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import kopf
from kopf._cogs.structs.references import Insights  # an argument of kopf.run, and not exported
from pydantic import JsonValue

from snaploom_operator.cluster.client import PAGE, watching_session
from snaploom_operator.cluster.port import NAMESPACES
from snaploom_operator.errors import ClusterError
from snaploom_operator.process.process import AnyParts, Parts, Process
from snaploom_operator.serve.health import liveness_endpoint
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.store.feed import Watched

if TYPE_CHECKING:
    from kopf._core.engines.peering import Identity

WATCH_SECONDS = 290
"""Server-side timeout of a watch: less than the five minutes after which load balancers close idle
connections."""
SILENT_SECONDS = 70.0
"""Seconds without a line after which a watch is restarted: a bookmark comes every minute."""
CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 30.0
BACKOFFS = (1, 1, 2, 3, 5, 8, 13)
"""Seconds between the attempts of a request; the last one repeats without end."""
IDENTITY = frozenset({"apiVersion", "kind", "metadata"})
"""Parts of an object that kopf reads after its handlers."""
IDLE_SECONDS = 0.1
"""Seconds for which kopf keeps a task for an object; ten thousand tasks take 120 MB."""


@dataclass(frozen=True)
class Connection:
    """The way to the API server, as `snaploom_operator.cluster.client.connect` takes it."""

    kubeconfig: Path | None
    context: str | None
    user_agent: str


def serve(
    process: Process[AnyParts],
    connection: Connection,
    settings: OperatorSettings,
    kinds: tuple[Watched, ...],
    registry: kopf.OperatorRegistry | None = None,
    server: kopf.WebhookServerProtocol | None = None,
) -> None:
    """Run a process, with further handlers and a server of reviews, until SIGTERM or Ctrl-C.

    Raises:
        SettingsInvalid: no cluster is configured, or a port is in use.
        ClusterError: a request failed, or our kinds are not installed.
    """
    registry, insights = registry or kopf.OperatorRegistry(), Insights()
    add_process_handlers(registry, connection, partial(watch_kinds, kinds, insights))
    add_event_handlers(registry, kinds)
    endpoint = liveness_endpoint(settings.health_port)
    logging.getLogger(__name__).info("health at %s", endpoint)
    configured = kopf_settings(kinds)
    configured.admission.server = server
    try:
        kopf.run(
            registry=registry,
            settings=configured,
            insights=insights,
            memo=process,
            # By itself kopf asks for the user's name, and a pod may run as a number without one.
            identity=cast("Identity", connection.user_agent),
            stop_flag=process.ending,
            liveness_endpoint=endpoint,
            clusterwide=not settings.watch_namespaces,
            namespaces=settings.watch_namespaces,
        )
    except Exception as error:  # noqa: BLE001 - kopf raises what ended one of its tasks
        process.failure = process.failure or ClusterError(
            "watching the cluster failed",
            found=f"{type(error).__name__}: {error}",
            hint="nothing: the pod starts again; if it repeats, check the API server",
        )
    if process.failure is not None:
        raise process.failure


def add_process_handlers(
    registry: kopf.OperatorRegistry,
    connection: Connection,
    watch: Callable[[], Coroutine[None, None, None]],
) -> None:
    """Register the handlers of a process, which begins to watch once it is ready."""

    @kopf.on.startup(registry=registry)
    async def begin(memo: Process[AnyParts], **_: object) -> None:
        await memo.begin()
        if memo.failure is not None:
            await asyncio.Event().wait()  # kopf is about to end, and would go on until then
        memo.spawn("watch", watch())

    @kopf.on.cleanup(registry=registry)
    async def end(memo: Process[AnyParts], **_: object) -> None:
        await memo.end()

    @kopf.on.login(registry=registry)
    async def login(memo: Process[AnyParts], **_: object) -> kopf.AiohttpSession:
        server, session = await watching_session(
            connection.kubeconfig, connection.context, connection.user_agent, memo.parts.feed
        )
        return kopf.AiohttpSession(server=server, aiohttp_session=session)

    @kopf.on.probe(registry=registry, id="trouble")
    async def alive(memo: Process[AnyParts], **_: object) -> None:
        if memo.parts.trouble:
            raise kopf.PermanentError(memo.parts.trouble)


async def watch_kinds(kinds: tuple[Watched, ...], insights: Insights) -> None:
    """Let kopf watch kinds whether they are installed or not, after it looked which are.

    kopf looks again when a CustomResourceDefinition changes. A busy API server serves a kind only
    seconds later, and kopf would never watch it; and it would end over the first request for a kind
    that was removed. In its session, such a request waits for the kind instead.
    """
    await insights.ready_resources.wait()
    async with insights.revised:
        insights.watched_resources.update(
            kopf.Resource(
                kind.resource.group,
                kind.resource.version,
                kind.resource.plural,
                kind=kind.resource.kind,
                namespaced=kind.resource != NAMESPACES,
            )
            for kind in kinds
        )
        insights.revised.notify_all()


def kopf_settings(kinds: tuple[Watched, ...]) -> kopf.OperatorSettings:
    """The settings of kopf: it watches these kinds, and writes nothing."""
    result = kopf.OperatorSettings()
    # kopf takes its finalizer from every object for which it has no handler: one that none has.
    result.persistence.finalizer = "snaploom.io/kopf"
    result.persistence.diffbase_storage = Unstored()
    result.persistence.progress_storage = Unprogressed()
    result.posting.enabled = False
    result.peering.standalone = True
    result.queueing.idle_timeout = IDLE_SECONDS
    result.watching.chunk_size = PAGE
    result.watching.server_timeout = WATCH_SECONDS
    result.watching.inactivity_timeout = SILENT_SECONDS
    result.watching.connect_timeout = CONNECT_SECONDS
    for watched in kinds:
        if watched.selector:
            result.watching.label_selectors[watched.resource.plural] = watched.selector
    result.networking.request_timeout = REQUEST_SECONDS
    result.networking.error_backoffs = Endless()
    result.scanning.disabled = True
    return result


class Endless:
    """Waits between attempts: kopf ends when they are used up, and an outage must not end it."""

    def __iter__(self) -> Iterator[float]:
        yield from BACKOFFS
        while True:
            yield BACKOFFS[-1]


class Unstored(kopf.DiffBaseStorage):
    """No last state of an object, which kopf would copy for each event: it detects no changes."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None: ...


class Unprogressed(kopf.ProgressStorage):
    """No progress of handlers: there are none that kopf would call again."""

    def fetch(self, **_: Any) -> None: ...

    def store(self, **_: Any) -> None: ...

    def purge(self, **_: Any) -> None: ...

    def touch(self, **_: Any) -> None: ...

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Leave it as it is."""
        return essence


def add_event_handlers(registry: kopf.OperatorRegistry, kinds: Iterable[Watched]) -> None:
    """Register a handler for the events of each kind."""
    for kind in kinds:
        resource = kind.resource
        kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)(changed)


async def changed(event: kopf.RawEvent, memo: Process[Parts], **_: object) -> None:
    """Put a listed or changed object into the store, or remove a deleted one.

    It awaits nothing: kopf handles the events of one object one after the other, so that a pass
    here would decide on a store that has not seen the object's later events.
    """
    stored = cast("dict[str, JsonValue]", event["object"])
    memo.parts.feed.take(stored, is_deleted=event["type"] == "DELETED")
    # kopf's views of it are cycles, which are collected late; by then they would hold megabytes.
    for part in stored.keys() - IDENTITY:
        del stored[part]

"""Posts Kubernetes events about our resources, beside the passes."""

import asyncio
import hashlib
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import JsonValue

from snaploom.models.common import API_VERSION, EpochNanos, now
from snaploom_operator import errors
from snaploom_operator.cluster.port import EVENTS, Cluster, format_micro_time
from snaploom_operator.decision import Note
from snaploom_operator.objects import JsonObject, Ref, mapping_in

_log = logging.getLogger(__name__)


CONTROLLER = "snaploom.io/operator"
ACTION = "Reconcile"
LONGEST_NOTE = 1024
"""Bytes that the API server allows."""
LONGEST_INSTANCE = 128
LONGEST_NAME = 200
"""Characters of the resource's name in the event's name, which may have 253."""
BURST = 25
"""Events of one resource at once, as client-go allows them."""
REFILL_SECONDS = 60.0
"""Seconds until one more is allowed; a run has two or three."""
NAMESPACE_BURST = 300
"""Events of one namespace at once: recreated resources each have a limit of their own."""
NAMESPACE_REFILL_SECONDS = 1.0
"""Seconds until one more is allowed: 3,600 an hour, which is how long the API server keeps them,
are some five megabytes."""
POST_SECONDS = 10.0
"""Time limit of posting one event, since others wait for it."""
REMEMBERED = 4_096
"""Events and resources in memory; the API server deletes events after an hour."""

NAMESPACE = "Namespace"
DEFAULT_NAMESPACE = "default"
"""Namespace of events about cluster-scoped objects."""
UNKNOWN_REASON = "Unknown"
"""Reason of an event whose own reason the API server would refuse."""
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9]{0,127}")
"""Reasons that the API server accepts."""


class Posting(StrEnum):
    """The outcome of posting an event."""

    NEW = "new"
    """It was posted."""
    COUNTED = "counted"
    """It was posted before; its count was increased."""
    LEFT_OUT = "left-out"
    """The rate limit was reached."""
    FAILED = "failed"
    """The request failed."""


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class _Buckets:
    """Token buckets by UID or namespace, the least recently used first."""

    def __init__(self, burst: int, refill: float) -> None:
        self._burst = burst
        self._refill = refill
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def at(self, key: str, moment: float) -> _Bucket:
        """The bucket of a key, with the tokens that were added until a moment."""
        bucket = self._buckets.setdefault(key, _Bucket(self._burst, moment))
        added = (moment - bucket.filled_at) / self._refill
        bucket.tokens = min(bucket.tokens + added, self._burst)
        bucket.filled_at = moment
        self._buckets.move_to_end(key)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket


class EventRecorder:
    """Posts events as an instance, the pod's name, and calls the observer with each outcome."""

    def __init__(
        self,
        cluster: Cluster,
        instance: str,
        observer: Callable[[Posting], None] = lambda posting: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._instance = instance[:LONGEST_INSTANCE]
        self._observer = observer
        self._monotonic = monotonic
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._by_uid = _Buckets(BURST, REFILL_SECONDS)
        self._by_namespace = _Buckets(NAMESPACE_BURST, NAMESPACE_REFILL_SECONDS)

    async def post(self, resource: Ref, uid: str, note: Note, at: EpochNanos) -> None:
        """Post one event, or increase its count; errors of the cluster are not raised.

        A message over 1 KiB is truncated.
        """
        if not self._is_allowed(uid, resource.namespace):
            _log.info("%s exceeds the event rate limit: %s dropped", resource, note.reason)
            self._observer(Posting.LEFT_OUT)
            return
        event = _event(resource, uid, note, at, self._instance)
        try:
            try:
                posting = await self._post(event)
            except errors.NamespaceTerminating:
                # Nothing can be created in it: the event is about the Namespace, in `default`.
                named = replace(note, message=f"{resource.identity}: {note.message}")
                about = Ref(NAMESPACE, "", resource.namespace)
                posting = await self._post(_event(about, "", named, at, self._instance))
        except (errors.ClusterError, TimeoutError) as error:
            cause = errors.in_one_line(error)
            _log.warning("cannot post event %s about %s: %s", note.reason, resource, cause)
            posting = Posting.FAILED
        self._observer(posting)

    async def _post(self, event: JsonObject) -> Posting:
        async with asyncio.timeout(POST_SECONDS):
            return await self._written(event)

    async def _written(self, event: JsonObject) -> Posting:
        metadata = mapping_in(event, "metadata")
        namespace, name = str(metadata["namespace"]), str(metadata["name"])
        seen = str(event["eventTime"])
        count = self._counts.get((namespace, name))
        try:
            if count is None:
                await self._cluster.create(EVENTS, namespace, event)
                self._remember(namespace, name, 1)
                return Posting.NEW
            await self._count_up(namespace, name, count, seen)
        except errors.ObjectExists:  # an earlier process posted it
            count = await self._count_of(namespace, name)
            await self._count_up(namespace, name, count, seen)
        except errors.ObjectMissing:  # it expired
            await self._cluster.create(EVENTS, namespace, event)
            self._remember(namespace, name, 1)
            return Posting.NEW
        return Posting.COUNTED

    async def _count_of(self, namespace: str, name: str) -> int:
        stored = await self._cluster.get(EVENTS, namespace, name)
        count = mapping_in(stored, "series").get("count")
        return count if isinstance(count, int) else 1

    async def _count_up(self, namespace: str, name: str, count: int, seen: str) -> None:
        patch: JsonObject = {"series": {"count": count + 1, "lastObservedTime": seen}}
        await self._cluster.patch(EVENTS, namespace, name, patch)
        self._remember(namespace, name, count + 1)

    def _remember(self, namespace: str, name: str, count: int) -> None:
        self._counts[namespace, name] = count
        self._counts.move_to_end((namespace, name))
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def _is_allowed(self, uid: str, namespace: str) -> bool:
        """Take a token from the buckets of the resource and of its namespace, if both have one."""
        moment = self._monotonic()
        buckets = (self._by_uid.at(uid, moment), self._by_namespace.at(namespace, moment))
        is_allowed = all(bucket.tokens >= 1 for bucket in buckets)
        for bucket in buckets:
            bucket.tokens -= is_allowed
        return is_allowed


def _event(resource: Ref, uid: str, note: Note, at: EpochNanos, instance: str) -> JsonObject:
    message = _truncated(note.message)
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": _name(resource, uid, note, message),
            "namespace": resource.namespace or DEFAULT_NAMESPACE,
        },
        "eventTime": format_micro_time(at),
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "action": ACTION,
        "reason": note.reason if _REASON.fullmatch(note.reason) else UNKNOWN_REASON,
        "regarding": _regarding(resource, uid),
        "note": message,
        "type": note.type.value,
    }


def _regarding(resource: Ref, uid: str) -> dict[str, JsonValue]:
    if not resource.namespace:
        return {"apiVersion": "v1", "kind": resource.kind, "name": resource.name}
    return {
        "apiVersion": API_VERSION,
        "kind": resource.kind,
        "namespace": resource.namespace,
        "name": resource.name,
        "uid": uid,
    }


def _name(resource: Ref, uid: str, note: Note, message: str) -> str:
    content = json.dumps([uid, note.type, note.reason, message]).encode()
    beginning = resource.name[:LONGEST_NAME].rstrip(".-")
    return f"{beginning}.{hashlib.sha256(content).hexdigest()[:16]}"


def _truncated(message: str) -> str:
    data = message.encode(errors="replace")
    if len(data) <= LONGEST_NOTE:
        return data.decode()
    return data[: LONGEST_NOTE - len("…".encode())].decode(errors="ignore") + "…"


QUEUED = 2_000
"""Events that may wait: two of each of a thousand runs, a megabyte."""
STOP_SECONDS = 5.0
"""Seconds in which those that wait are posted at the end of the process."""


class EventQueue:
    """A recorder that does not wait until its events are posted; made by `queued_events`."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._waiting: asyncio.Queue[tuple[Ref, str, Note, EpochNanos]] = asyncio.Queue(QUEUED)

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Have one event posted; its time is now."""
        await self._waiting.put((resource, uid, note, now()))

    async def run(self) -> None:
        """Post events until cancelled."""
        while True:
            resource, uid, note, at = await self._waiting.get()
            try:
                await self._recorder.post(resource, uid, note, at)
            except Exception:  # noqa: BLE001 - one event that crashes us must not end the others
                _log.exception("cannot post event %s about %s", note.reason, resource)
            finally:
                self._waiting.task_done()

    async def posted(self) -> None:
        """Wait until none is left."""
        await self._waiting.join()


@asynccontextmanager
async def queued_events(recorder: EventRecorder) -> AsyncIterator[EventQueue]:
    """Post events during the context, and those that are left at its end."""
    queue = EventQueue(recorder)
    poster = asyncio.create_task(queue.run(), name="events")
    try:
        yield queue
        try:
            await asyncio.wait_for(queue.posted(), STOP_SECONDS)
        except TimeoutError:
            _log.warning("some events were not posted before the end")
    finally:
        poster.cancel()
        await asyncio.gather(poster, return_exceptions=True)

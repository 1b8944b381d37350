"""Posts events about our resources, for `kubectl describe` and for whoever watches.

kopf's own posting is off: it makes an object a call. Here the name of an event follows from what it
says, so that what is said again, also by the next process, is counted in one object (`series`). A
resource that has much to say is cut short. An event that cannot be posted is logged and counted;
reconciling goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from snaploom.models.common import API_VERSION
from snaploom.models.times import EpochNanos, now
from snaploom_operator.cluster.microtime import format_micro_time
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import EVENTS
from snaploom_operator.decision import Note
from snaploom_operator.errors import ClusterError, ObjectExists, ObjectMissing
from snaploom_operator.metadata import mapping_in
from snaploom_operator.objects import JsonObject, Ref

CONTROLLER = "snaploom.io/operator"
ACTION = "Reconcile"
LONGEST_NOTE = 1024
"""Bytes that the API server allows."""
LONGEST_INSTANCE = 128
LONGEST_NAME = 200
"""Of the resource's name in the event's, which may have 253 characters in all."""
BURST = 25
"""Events of one resource at once, as client-go allows them."""
REFILL_SECONDS = 60.0
"""Until one more is allowed; a run has two or three."""
NAMESPACE_BURST = 300
"""Events of one namespace at once: whoever creates resources again and again has a new one each
time to speak of."""
NAMESPACE_REFILL_SECONDS = 1.0
"""Until one more is allowed: 3,600 an hour, which is how long the API server keeps them, are some
five megabytes."""
PATIENCE = 10.0
"""Seconds for posting one, after which it counts as failed: a pass waits for it."""
REMEMBERED = 4_096
"""Events, and resources, that are remembered; the API server forgets events after an hour."""

UNKNOWN_REASON = "Unknown"
"""Reason of an event about a run whose Report has no word for it."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,127}")
"""What the API server takes for a reason."""

_log = logging.getLogger(__name__)


class Posting(StrEnum):
    """What became of an event."""

    NEW = "new"
    """It was posted."""
    COUNTED = "counted"
    """It was posted before, and is counted up."""
    LEFT_OUT = "left-out"
    """The resource had too much to say."""
    FAILED = "failed"
    """The cluster did not take it."""


@dataclass
class _Bucket:
    """How many events one resource, or one namespace, may still post."""

    tokens: float
    filled_at: float


class EventRecorder:
    """Posts events.

    Args:
        cluster: where.
        instance: who we are among the operator's processes; the pod's name.
        observer: told what became of each event.
        clock: the time that events bear.
        monotonic: seconds that never go back, for the limit.
    """

    def __init__(
        self,
        cluster: Cluster,
        instance: str,
        observer: Callable[[Posting], None] = lambda posting: None,
        clock: Callable[[], EpochNanos] = now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._instance = instance[:LONGEST_INSTANCE]
        self._observer = observer
        self._clock = clock
        self._monotonic = monotonic
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._rooms: OrderedDict[str, _Bucket] = OrderedDict()
        """The buckets of resources by UID, and those of namespaces by name."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one event, or count it up; whatever the cluster says, nothing is raised.

        Args:
            resource: what it is about.
            uid: its UID.
            note: what it says; a message over 1 KiB is cut.
        """
        if not self._is_allowed(uid, resource.namespace):
            _log.info("%s has too much to say: %s left out", resource, note.reason)
            self._observer(Posting.LEFT_OUT)
            return
        try:
            async with asyncio.timeout(PATIENCE):
                posting = await self._post(self._event(resource, uid, note))
        except (ClusterError, TimeoutError) as error:
            _log.warning("no event %s about %s: %s", note.reason, resource, error)
            posting = Posting.FAILED
        self._observer(posting)

    async def _post(self, event: JsonObject) -> Posting:
        metadata = mapping_in(event, "metadata")
        namespace, name = str(metadata["namespace"]), str(metadata["name"])
        count = self._counts.get((namespace, name))
        try:
            if count is None:
                await self._cluster.create(EVENTS, namespace, event)
                self._remember(namespace, name, 1)
                return Posting.NEW
            await self._count_up(namespace, name, count)
        except ObjectExists:  # an earlier process posted it
            await self._count_up(namespace, name, await self._count_of(namespace, name))
        except ObjectMissing:  # it was forgotten meanwhile
            await self._cluster.create(EVENTS, namespace, event)
            self._remember(namespace, name, 1)
            return Posting.NEW
        return Posting.COUNTED

    async def _count_of(self, namespace: str, name: str) -> int:
        stored = await self._cluster.get(EVENTS, namespace, name)
        count = mapping_in(stored, "series").get("count")
        return count if isinstance(count, int) else 1

    async def _count_up(self, namespace: str, name: str, count: int) -> None:
        seen = format_micro_time(self._clock())
        patch: JsonObject = {"series": {"count": count + 1, "lastObservedTime": seen}}
        await self._cluster.patch(EVENTS, namespace, name, patch)
        self._remember(namespace, name, count + 1)

    def _remember(self, namespace: str, name: str, count: int) -> None:
        self._counts[namespace, name] = count
        self._counts.move_to_end((namespace, name))
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def _is_allowed(self, uid: str, namespace: str) -> bool:
        """Take a token of the resource's bucket and one of its namespace's, where both have one."""
        moment = self._monotonic()
        own = _filled(self._buckets.pop(uid, None), moment, BURST, REFILL_SECONDS)
        room = _filled(
            self._rooms.pop(namespace, None), moment, NAMESPACE_BURST, NAMESPACE_REFILL_SECONDS
        )
        is_allowed = own.tokens >= 1 and room.tokens >= 1
        for buckets, key, bucket in ((self._buckets, uid, own), (self._rooms, namespace, room)):
            bucket.tokens -= is_allowed
            buckets[key] = bucket
            if len(buckets) > REMEMBERED:
                buckets.popitem(last=False)
        return is_allowed

    def _event(self, resource: Ref, uid: str, note: Note) -> JsonObject:
        message = _clipped(note.message)
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": _name(resource, uid, note, message),
                "namespace": resource.namespace,
            },
            "eventTime": format_micro_time(self._clock()),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": ACTION,
            "reason": note.reason if _WORD.fullmatch(note.reason) else UNKNOWN_REASON,
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": resource.kind,
                "namespace": resource.namespace,
                "name": resource.name,
                "uid": uid,
            },
            "note": message,
            "type": note.type.value,
        }


def _filled(bucket: _Bucket | None, moment: float, burst: int, refill: float) -> _Bucket:
    """A bucket as it is by now."""
    if bucket is None:
        return _Bucket(burst, moment)
    return _Bucket(min(bucket.tokens + (moment - bucket.filled_at) / refill, burst), moment)


def _name(resource: Ref, uid: str, note: Note, message: str) -> str:
    said = json.dumps([uid, note.type, note.reason, message]).encode()
    beginning = resource.name[:LONGEST_NAME].rstrip(".-")
    return f"{beginning}.{hashlib.sha256(said).hexdigest()[:16]}"


def _clipped(message: str) -> str:
    """As much as the API server takes, in bytes of UTF-8, cut between characters."""
    data = message.encode(errors="replace")
    if len(data) <= LONGEST_NOTE:
        return data.decode()
    return data[: LONGEST_NOTE - len("…".encode())].decode(errors="ignore") + "…"

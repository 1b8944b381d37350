"""Who of several processes works: a Lease of Kubernetes, held by one at a time.

Clocks of machines differ, so that no time written by another is believed. A holder counts as gone
when the Lease was seen not to change for as long as the holder promised to renew it, by our own
clock. The holder itself gives up earlier, when it could not renew for two thirds of that time. All
writes name the version that they are made from, so that of two that reach for a Lease one gets it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.times import EpochNanos, now
from snaploom_operator.cluster.microtime import format_micro_time
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import LEASES
from snaploom_operator.errors import ClusterError, ObjectChanged, ObjectExists, ObjectMissing
from snaploom_operator.metadata import Metadata, mapping_in, text_in
from snaploom_operator.objects import JsonObject

DURATION = 15
"""Seconds without renewal after which others may take it, as Kubernetes' own controllers use."""
GIVE_UP = 10.0
"""Seconds without a renewal that succeeded, after which the holder stops to be it."""
EVERY = 2.0
"""Seconds between renewals, and between looks of those who wait."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """The Lease as it was when it last changed."""

    version: str
    at: float
    """By our own clock."""


class Leadership:
    """One process' part in the contest for a Lease; `leading` is how it is used.

    Args:
        cluster: where the Lease is.
        namespace: its namespace.
        name: its name.
        identity: who we are; different for every process, also of the same pod.
        owner: reference to what the Lease goes with when it is we who create it.
        clock: the time that is written, for people to read.
        monotonic: seconds that never go back, by which everything is decided.
        pause: waits for seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        identity: str,
        owner: JsonObject | None = None,
        clock: Callable[[], EpochNanos] = now,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._owner = owner
        self._clock = clock
        self._monotonic = monotonic
        self._pause = pause
        self._seen = _Seen("", 0.0)
        self._stored: Metadata | None = None
        self._renewed_at: float | None = None

    @property
    def is_held(self) -> bool:
        """Whether we may work."""
        return self._left > 0

    @property
    def _left(self) -> float:
        """Seconds until we no longer take ourselves for the holder; 0 when we do not."""
        if self._renewed_at is None:
            return 0.0
        return max(self._renewed_at + GIVE_UP - self._monotonic(), 0.0)

    async def acquire(self) -> None:
        """Wait until the Lease is ours."""
        while True:
            try:
                if await self._reach():
                    _log.info("%s holds the lease %s", self._identity, self._name)
                    return
            except ClusterError as error:
                _log.warning("the lease %s is not to be had: %s", self._name, error)
            await self._pause(EVERY)

    async def keep(self) -> None:
        """Renew the Lease; returns when it is lost.

        There is always one try before it is: a process that did not get to run for long still
        holds what nobody took, and no write takes it from whoever did.
        """
        while True:
            await self._pause(EVERY)
            try:
                async with asyncio.timeout(max(self._left, EVERY)):
                    if not await self._reach():
                        break
            except (ClusterError, TimeoutError) as error:
                _log.warning("the lease %s is not renewed: %s", self._name, error)
                if not self.is_held:
                    break
        self._renewed_at = self._stored = None
        _log.error("%s lost the lease %s", self._identity, self._name)

    async def release(self) -> None:
        """Let others have it at once; when that fails they wait."""
        if not self.is_held:
            return
        self._renewed_at = None
        try:
            # Read anew: a renewal that was broken off may have been written.
            stored = await self._cluster.get(LEASES, self._namespace, self._name)
            if text_in(mapping_in(stored, "spec"), "holderIdentity") == self._identity:
                await self._write(Metadata.of(stored), {"holderIdentity": None})
        except ClusterError as error:
            _log.warning("the lease %s is not released: %s", self._name, error)

    async def _reach(self) -> bool:
        """Take the Lease, or renew it; whether it is ours."""
        started = self._monotonic()
        if self._stored is None or not await self._renew(self._stored):
            stored = await self._take()
            if stored is None:
                return False
            self._stored = stored
        self._renewed_at = started
        return True

    async def _renew(self, stored: Metadata) -> bool:
        """Renew what is ours; False when it changed, be it by ourselves with a lost answer."""
        try:
            self._stored = await self._write(stored, {"renewTime": self._now()})
        except (ObjectChanged, ObjectMissing):
            self._stored = None
        return self._stored is not None

    async def _take(self) -> Metadata | None:
        """Take what is free, or ours already; None while it is somebody else's."""
        spec: dict[str, JsonValue] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": DURATION,
            "acquireTime": self._now(),
            "renewTime": self._now(),
        }
        try:
            stored = await self._cluster.get(LEASES, self._namespace, self._name)
        except ObjectMissing:
            return await self._create(spec)
        held = mapping_in(stored, "spec")
        holder = text_in(held, "holderIdentity")
        if holder and holder != self._identity and not self._is_given_up(stored):
            return None
        if holder != self._identity:
            transitions = held.get("leaseTransitions")
            spec["leaseTransitions"] = (transitions if isinstance(transitions, int) else 0) + 1
        try:
            return await self._write(Metadata.of(stored), spec)
        except ObjectChanged:
            return None

    async def _create(self, spec: JsonObject) -> Metadata | None:
        metadata: dict[str, JsonValue] = {"name": self._name, "namespace": self._namespace}
        if self._owner is not None:
            metadata["ownerReferences"] = [dict(self._owner)]
        manifest: JsonObject = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": dict(spec),
        }
        try:
            return Metadata.of(await self._cluster.create(LEASES, self._namespace, manifest))
        except ObjectExists:
            return None

    async def _write(self, stored: Metadata, spec: JsonObject) -> Metadata:
        metadata: JsonObject = {"resourceVersion": stored.resource_version, "uid": stored.uid}
        patch: JsonObject = {"metadata": dict(metadata), "spec": dict(spec)}
        return Metadata.of(await self._cluster.patch(LEASES, self._namespace, self._name, patch))

    def _is_given_up(self, stored: JsonObject) -> bool:
        """Whether the Lease did not change for as long as its holder promised to renew it."""
        version = Metadata.of(stored).resource_version
        if version != self._seen.version:
            self._seen = _Seen(version, self._monotonic())
        promised = mapping_in(stored, "spec").get("leaseDurationSeconds")
        duration = promised if isinstance(promised, int) else DURATION
        return self._monotonic() - self._seen.at >= duration

    def _now(self) -> str:
        return format_micro_time(self._clock())


@asynccontextmanager
async def leading(leadership: Leadership, on_lost: Callable[[], None]) -> AsyncIterator[None]:
    """Work while the Lease is ours: it is waited for, renewed, and released at the end.

    Args:
        leadership: our part in the contest.
        on_lost: called once when the Lease is lost; whoever works must stop then.
    """
    await leadership.acquire()
    keeper = asyncio.create_task(leadership.keep(), name="lease")
    keeper.add_done_callback(lambda task: None if task.cancelled() else on_lost())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        await leadership.release()

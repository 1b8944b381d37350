"""Leader election by a Kubernetes Lease.

Clocks of machines differ, so times written by other processes are ignored. A Lease has expired if
it was observed unchanged for its duration, by our own clock. The leader itself stops earlier, if it
could not renew for two thirds of that time. All writes name the version that they are based on, so
that of two candidates one acquires the Lease.
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
from snaploom_operator.cluster.apiresources import LEASES
from snaploom_operator.cluster.microtime import format_micro_time
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import (
    ClusterError,
    ObjectChanged,
    ObjectExists,
    ObjectMissing,
    in_one_line,
)
from snaploom_operator.objectmetadata import Metadata, mapping_in, text_in
from snaploom_operator.objects import JsonObject

LEASE_DURATION = 15
"""Seconds without renewal after which others may acquire it, as in Kubernetes' own controllers."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which the leader stops."""
RETRY_PERIOD = 2.0
"""Interval of renewals, and of attempts to acquire."""
RELEASE_ATTEMPTS = 3
"""Only one cancelled renewal can be in flight, so the second meets no write of our own."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """When a version of the Lease was first observed."""

    version: str
    at: float
    """By our own clock."""


class LeaderElector:
    """A participant of the leader election; use it with `leading`.

    Args: cluster: the cluster. namespace: namespace of the Lease. name: its name. identity: unique
        name of this process, also within its pod. owner: owner reference of a created Lease. clock:
        the time that is written, for information only. monotonic: monotonic seconds, by which
        everything is decided. pause: sleeps.
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
        """Whether this process is the leader."""
        return self._left > 0

    @property
    def _left(self) -> float:
        """Seconds until leadership ends without a renewal; 0 without leadership."""
        if self._renewed_at is None:
            return 0.0
        return max(self._renewed_at + RENEW_DEADLINE - self._monotonic(), 0.0)

    async def acquire(self) -> None:
        """Wait until the Lease is acquired."""
        while True:
            try:
                if await self._acquire_or_renew():
                    _log.info("%s acquired lease %s", self._identity, self._name)
                    return
            except ClusterError as error:
                _log.warning("cannot acquire lease %s: %s", self._name, error.message)
            await self._pause(RETRY_PERIOD)

    async def keep(self) -> None:
        """Renew the Lease; returns when it is lost.

        There is always one attempt before: a process that was suspended for long still holds a
        Lease that no other acquired, and no write takes it from another holder.
        """
        while True:
            await self._pause(RETRY_PERIOD)
            try:
                async with asyncio.timeout(max(self._left, RETRY_PERIOD)):
                    if not await self._acquire_or_renew():
                        break
            except (ClusterError, TimeoutError) as error:
                _log.warning("cannot renew lease %s: %s", self._name, in_one_line(error))
                if not self.is_held:
                    break
        self._renewed_at = self._stored = None
        _log.error("%s lost lease %s", self._identity, self._name)

    async def release(self) -> None:
        """Release the Lease, so that others can acquire it immediately."""
        if not self.is_held:
            return
        self._renewed_at = None
        try:
            for _ in range(RELEASE_ATTEMPTS):
                if await self._is_released():
                    break
        except ClusterError as error:
            _log.warning("cannot release lease %s: %s", self._name, error.message)

    async def _is_released(self) -> bool:
        """One attempt to release; False if the Lease changed between our read and our write.

        A renewal that was cancelled may be stored before the read, after it, or never.
        """
        stored = await self._cluster.get(LEASES, self._namespace, self._name)
        if text_in(mapping_in(stored, "spec"), "holderIdentity") != self._identity:
            return True
        try:
            await self._write(Metadata.of(stored), {"holderIdentity": None})
        except ObjectChanged:
            return False
        return True

    async def _acquire_or_renew(self) -> bool:
        """Acquire or renew the Lease; whether this process holds it."""
        started = self._monotonic()
        if self._stored is None or not await self._renew(self._stored):
            stored = await self._take()
            if stored is None:
                return False
            self._stored = stored
        self._renewed_at = started
        return True

    async def _renew(self, stored: Metadata) -> bool:
        """Renew the held Lease; False if it changed, also by our own write with a lost answer."""
        try:
            self._stored = await self._write(stored, {"renewTime": self._now()})
        except (ObjectChanged, ObjectMissing):
            self._stored = None
        return self._stored is not None

    async def _take(self) -> Metadata | None:
        """Acquire a free, expired or own Lease; None while another process holds it."""
        spec: dict[str, JsonValue] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_DURATION,
            "acquireTime": self._now(),
            "renewTime": self._now(),
        }
        try:
            stored = await self._cluster.get(LEASES, self._namespace, self._name)
        except ObjectMissing:
            return await self._create(spec)
        held = mapping_in(stored, "spec")
        holder = text_in(held, "holderIdentity")
        if holder and holder != self._identity and not self._is_expired(stored):
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

    def _is_expired(self, stored: JsonObject) -> bool:
        """Whether the Lease was observed unchanged for its duration."""
        version = Metadata.of(stored).resource_version
        if version != self._seen.version:
            self._seen = _Seen(version, self._monotonic())
        duration = mapping_in(stored, "spec").get("leaseDurationSeconds")
        duration = duration if isinstance(duration, int) else LEASE_DURATION
        return self._monotonic() - self._seen.at >= duration

    def _now(self) -> str:
        return format_micro_time(self._clock())


@asynccontextmanager
async def leading(elector: LeaderElector, on_lost: Callable[[], None]) -> AsyncIterator[None]:
    """Acquire the Lease, renew it during the context, and release it at the end.

    Args: elector: the participant. on_lost: called once when the Lease is lost; all work must stop
        then.
    """
    await elector.acquire()
    keeper = asyncio.create_task(elector.keep(), name="lease")
    keeper.add_done_callback(lambda task: None if task.cancelled() else on_lost())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        await elector.release()

"""Leader election by a Kubernetes Lease."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pydantic import JsonValue

from snaploom.models.common import EpochNanos, now
from snaploom.output.leases import FREE, Attempt, Contender, LeaseState, Read, Result, Swap
from snaploom_operator import errors
from snaploom_operator.cluster.port import LEASES, Cluster, format_micro_time
from snaploom_operator.objects import JsonObject, Metadata, mapping_in, text_in

_log = logging.getLogger(__name__)


LONGEST_PROMISE = 3_600
"""Seconds; a Lease with more was written by nobody who leads, and would be waited for for years."""
_MOST_TRANSITIONS = 2**31 - 1
"""Upper bound of the API server."""


class LeaseObject:
    """One Lease. All writes name the version that they are based on.

    `seconds` are the promise of a holder that wrote none, `owner` is the owner reference of a
    created Lease, and the clock's time is written for information only.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        seconds: int,
        owner: JsonObject | None,
        clock: Callable[[], EpochNanos],
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._seconds = seconds
        self._owner = owner
        self._clock = clock
        self._uid = ""
        self._transitions = 0

    async def read(self) -> LeaseState:
        """The Lease as it is now.

        Raises:
            ClusterError: a request failed.
        """
        try:
            stored = await self._cluster.get(LEASES, self._namespace, self._name)
        except errors.ObjectMissing:
            return FREE
        return self._state_of(stored)

    async def swap(self, swap: Swap) -> LeaseState | None:
        """Create the Lease, or change the expected one; None if it changed.

        Raises:
            ClusterError: a request failed.
        """
        try:
            if not swap.expected.version:
                return self._state_of(await self._create(self._taken(swap)))
            return self._state_of(await self._patch(swap.expected.version, self._changes(swap)))
        except (errors.ObjectChanged, errors.ObjectExists, errors.ObjectMissing):
            return None

    def _changes(self, swap: Swap) -> JsonObject:
        if not swap.holder:
            return {"holderIdentity": None}
        if swap.holder == swap.expected.holder:
            return {"renewTime": format_micro_time(self._clock())}
        return {**self._taken(swap), "leaseTransitions": self._transitions + 1}

    def _taken(self, swap: Swap) -> JsonObject:
        now = format_micro_time(self._clock())
        return {
            "holderIdentity": swap.holder,
            "leaseDurationSeconds": swap.seconds,
            "acquireTime": now,
            "renewTime": now,
        }

    async def _create(self, spec: JsonObject) -> JsonObject:
        metadata: dict[str, JsonValue] = {"name": self._name, "namespace": self._namespace}
        if self._owner is not None:
            metadata["ownerReferences"] = [dict(self._owner)]
        manifest: JsonObject = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": dict(spec),
        }
        return await self._cluster.create(LEASES, self._namespace, manifest)

    async def _patch(self, version: str, spec: JsonObject) -> JsonObject:
        patch: JsonObject = {
            "metadata": {"resourceVersion": version, "uid": self._uid},
            "spec": dict(spec),
        }
        return await self._cluster.patch(LEASES, self._namespace, self._name, patch)

    def _state_of(self, stored: JsonObject) -> LeaseState:
        metadata, spec = Metadata.of(stored), mapping_in(stored, "spec")
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        self._uid = metadata.uid
        is_counted = isinstance(transitions, int) and 0 <= transitions < _MOST_TRANSITIONS
        self._transitions = transitions if isinstance(transitions, int) and is_counted else 0
        is_promise = isinstance(seconds, int) and 0 < seconds <= LONGEST_PROMISE
        return LeaseState(
            holder=text_in(spec, "holderIdentity"),
            seconds=seconds if isinstance(seconds, int) and is_promise else self._seconds,
            version=metadata.resource_version,
        )


LEASE_DURATION = 15
"""Seconds without renewal after which others may acquire it, as in Kubernetes' own controllers."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which the leader stops."""
RETRY_PERIOD = 2.0
"""Interval of renewals, and of attempts to acquire."""


class LeaderElector:
    """A participant of the leader election; use it with `leading`.

    `identity` is unique, also within its pod. Seconds of `monotonic` decide everything; the time of
    `clock` is written for information only.
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
        self._lease = LeaseObject(cluster, namespace, name, LEASE_DURATION, owner, clock)
        self._contender = Contender(identity, LEASE_DURATION, RENEW_DEADLINE, monotonic)
        self._name = name
        self._identity = identity
        self._pause = pause

    @property
    def is_held(self) -> bool:
        return self._contender.left > 0

    async def acquire(self) -> None:
        while True:
            try:
                if await carry_out(self._contender.hold(), self._lease):
                    _log.info("%s acquired lease %s", self._identity, self._name)
                    return
            except errors.ClusterError as error:
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
                async with asyncio.timeout(max(self._contender.left, RETRY_PERIOD)):
                    if not await carry_out(self._contender.hold(), self._lease):
                        break
            except (errors.ClusterError, TimeoutError) as error:
                _log.warning("cannot renew lease %s: %s", self._name, errors.in_one_line(error))
                if not self.is_held:
                    break
        self._contender.give_up()
        _log.error("%s lost lease %s", self._identity, self._name)

    async def release(self) -> None:
        if not self.is_held:
            return
        try:
            await carry_out(self._contender.release(), self._lease)
        except errors.ClusterError as error:
            _log.warning("cannot release lease %s: %s", self._name, error.message)


async def carry_out(attempt: Attempt[Result], lease: LeaseObject) -> Result:
    """The result of an attempt on a Lease.

    Raises:
        ClusterError: a request failed; the attempt ends with it.
    """
    try:
        request = next(attempt)
        while True:
            if isinstance(request, Read):
                request = attempt.send(await lease.read())
            else:
                request = attempt.send(await lease.swap(request))
    except StopIteration as ended:
        result: Result = ended.value
        return result


@asynccontextmanager
async def leading(elector: LeaderElector, on_lost: Callable[[], None]) -> AsyncIterator[None]:
    """Acquire the Lease, renew it during the context, and release it at the end.

    `on_lost` is called once when the Lease is lost; all work must stop then.
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

"""Leader election by a Kubernetes Lease.

The contest is that of every lease (`snaploom.storage.leases`). The leader itself stops before
others may acquire the Lease: if it could not renew it for two thirds of its duration.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from snaploom.models.times import EpochNanos, now
from snaploom.storage.leases import Attempt, Contender, Read, Result
from snaploom_operator.cluster.leaseobject import LeaseObject
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ClusterError, in_one_line
from snaploom_operator.objects import JsonObject

LEASE_DURATION = 15
"""Seconds without renewal after which others may acquire it, as in Kubernetes' own controllers."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which the leader stops."""
RETRY_PERIOD = 2.0
"""Interval of renewals, and of attempts to acquire."""

_log = logging.getLogger(__name__)


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
        self._lease = LeaseObject(cluster, namespace, name, LEASE_DURATION, owner, clock)
        self._contender = Contender(identity, LEASE_DURATION, RENEW_DEADLINE, monotonic)
        self._name = name
        self._identity = identity
        self._pause = pause

    @property
    def is_held(self) -> bool:
        """Whether this process is the leader."""
        return self._contender.left > 0

    async def acquire(self) -> None:
        """Wait until the Lease is acquired."""
        while True:
            try:
                if await carry_out(self._contender.hold(), self._lease):
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
                async with asyncio.timeout(max(self._contender.left, RETRY_PERIOD)):
                    if not await carry_out(self._contender.hold(), self._lease):
                        break
            except (ClusterError, TimeoutError) as error:
                _log.warning("cannot renew lease %s: %s", self._name, in_one_line(error))
                if not self.is_held:
                    break
        self._contender.give_up()
        _log.error("%s lost lease %s", self._identity, self._name)

    async def release(self) -> None:
        """Release the Lease, so that others can acquire it immediately."""
        if not self.is_held:
            return
        try:
            await carry_out(self._contender.release(), self._lease)
        except ClusterError as error:
            _log.warning("cannot release lease %s: %s", self._name, error.message)


async def carry_out(attempt: Attempt[Result], lease: LeaseObject) -> Result:
    """The result of an attempt on a Lease.

    Raises: ClusterError: a request failed; the attempt ends with it.
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

"""Shares of namespaces: threads for work that cannot be cancelled, and waits after refusals."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

_Result = TypeVar("_Result")


@dataclass
class _Share:
    turns: asyncio.Semaphore
    users: int = 0
    """Tasks that run or wait."""


class SharedThreads:
    """Runs work in threads, of which each name has at most a share."""

    def __init__(self, threads: Executor, share: int) -> None:
        self._threads = threads
        self._share = share
        self._shares: dict[str, _Share] = {}

    async def run(self, name: str, work: Callable[[], _Result]) -> _Result:
        """Run work as soon as the name has a free slot; its result, or its error."""
        share = self._shares.setdefault(name, _Share(asyncio.Semaphore(self._share)))
        share.users += 1
        try:
            await share.turns.acquire()
        except asyncio.CancelledError:
            self._leave(name)
            raise
        loop = asyncio.get_running_loop()
        future = self._threads.submit(work)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._ended, name))
        return await asyncio.wrap_future(future)

    def _ended(self, name: str) -> None:
        self._shares[name].turns.release()
        self._leave(name)

    def _leave(self, name: str) -> None:
        share = self._shares[name]
        share.users -= 1
        if not share.users:
            del self._shares[name]


HALF_LIFE_SECONDS = 10.0
"""Half-life of a denial's weight."""
FREE_REFUSALS = 10.0
"""Denials without a delay, such as a folder of invalid resources."""
SECONDS_A_REFUSAL = 0.05
"""Delay that each further denial adds. Four connections of denied reviews reach some three reviews
a second."""
LONGEST_WAIT_SECONDS = 1.5
"""Less than half of a review's deadline (`webhookserver.REVIEW_SECONDS`), so that it is still
answered."""
MOST_REMEMBERED = 1_000
"""Namespaces in memory; beyond it those with the fewest denials are dropped."""


@dataclass(frozen=True)
class _Count:
    count: float
    at: float


class RefusalThrottle:
    """Recent denials by namespace, with exponential decay; its clock is monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}

    def note(self, namespace: str) -> None:
        """Count a denied review of a namespace."""
        self._counts[namespace] = _Count(self._count(namespace) + 1, self._clock())
        if len(self._counts) > MOST_REMEMBERED:
            most = sorted(self._counts, key=self._count, reverse=True)[: MOST_REMEMBERED // 2]
            self._counts = {each: self._counts[each] for each in most}

    def wait(self, namespace: str) -> float:
        """Seconds of delay of the next review of a namespace."""
        beyond = self._count(namespace) - FREE_REFUSALS
        return min(max(beyond, 0.0) * SECONDS_A_REFUSAL, LONGEST_WAIT_SECONDS)

    def _count(self, namespace: str) -> float:
        refused = self._counts.get(namespace)
        if refused is None:
            return 0.0
        return refused.count * math.pow(0.5, (self._clock() - refused.at) / HALF_LIFE_SECONDS)

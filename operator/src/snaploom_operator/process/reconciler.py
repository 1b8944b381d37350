"""The reconcile loop: workers that take keys from the queue, one pass each."""

import asyncio
import logging
import time
from collections.abc import Callable

from snaploom.errors import SnaploomError
from snaploom_operator.apply.executor import ActionBackoff, Executor
from snaploom_operator.decision import Decision, ObservedResource, Unparsable
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objects import Ref, about
from snaploom_operator.queues import WorkQueue
from snaploom_operator.serve.metrics import Metrics, Outcome

_log = logging.getLogger(__name__)


Decide = Callable[[ObservedResource | Unparsable], Decision]


class Reconciler:
    """Makes passes; `backoff` requeues resources whose pass failed."""

    def __init__(
        self, gatherer: Gatherer, decide: Decide, executor: Executor, backoff: ActionBackoff
    ) -> None:
        self._gatherer = gatherer
        self._decide = decide
        self._executor = executor
        self._backoff = backoff

    async def reconcile(self, key: Ref) -> Outcome:
        """One pass; raises only what nobody foresaw, and CancelledError."""
        try:
            observed = await self._gatherer.observe(key)
            if observed is None:
                self._backoff.forget(key)
                return Outcome.GONE
            if isinstance(observed, Unjudged):
                return Outcome.UNCHANGED
            return await self._executor.execute(key, observed, self._decide(observed))
        except SnaploomError as error:
            await self._backoff.retry(key, error)
            return Outcome.FAILED


SENTINEL = Ref("Sentinel", "", "")
"""A key without a resource: processing it is the loop's heartbeat."""
HEARTBEAT = 15.0
"""Interval of the heartbeat; liveness fails after sixty seconds without one."""


class Controller:
    """Reconciles resources; its clock is the queue's, in monotonic seconds."""

    def __init__(
        self,
        reconciler: Reconciler,
        queue: WorkQueue[Ref],
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._reconciler = reconciler
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._last_beat = clock()

    @property
    def seconds_since_heartbeat(self) -> float:
        """Seconds since the last heartbeat of the loop."""
        return self._clock() - self._last_beat

    def start(self, workers: int) -> None:
        self._last_beat = self._clock()
        self._queue.add(SENTINEL)
        for number in range(workers):
            task = asyncio.create_task(self._work(), name=f"worker {number}")
            self._workers.add(task)

    async def stop(self, timeout: float) -> None:
        """Finish the current passes, and start no others; cancel them after some seconds."""
        self._is_stopping = True
        for task in self._idle:
            task.cancel()
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers.clear()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # a coroutine that runs is in one
        while not self._is_stopping:
            self._idle.add(task)
            try:
                key = await self._queue.take()
            finally:
                self._idle.discard(task)
            try:
                await self.reconcile(key)
            finally:
                self._queue.done(key)
            # A pass without a request never awaits; probes and the Lease need their turn.
            await asyncio.sleep(0)

    async def reconcile(self, key: Ref) -> None:
        """One pass; raises only CancelledError."""
        if key == SENTINEL:
            self._last_beat = self._clock()
            self._queue.add_after(SENTINEL, HEARTBEAT)
            return
        started = time.perf_counter()
        try:
            outcome = await self._reconciler.reconcile(key)
        except Exception:  # noqa: BLE001 - a crash with one resource must not stop the others
            outcome = Outcome.CRASHED
            delay = self._queue.fail(key)
            _log.exception("reconciling crashed; retry in %.0f s", delay, extra=about(key))
        if outcome is Outcome.GONE:
            self._metrics.forget(key)
        self._metrics.passed(key.kind, outcome, time.perf_counter() - started)

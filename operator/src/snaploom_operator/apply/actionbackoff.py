"""Backoff of actions that failed: until when they wait, and which refusal the status shows.

A refused action becomes part of the next observation (`Refusal`), so that the status shows it, and
is retried rarely, or as soon as the resource is changed. Temporary errors of the API server are
retried with exponential backoff, and are not shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from snaploom.errors import SnaploomError
from snaploom_operator.actions import Action
from snaploom_operator.apply.actionrunner import ActionRunner, Done
from snaploom_operator.apply.storerefresh import StoreRefresh
from snaploom_operator.errors import (
    ApiUnavailable,
    NamespaceTerminating,
    ObjectChanged,
    ObjectMissing,
    TooManyRequests,
)
from snaploom_operator.logcontext import about
from snaploom_operator.objects import Ref
from snaploom_operator.observed import ObservedResource, Refusal, Unparsable
from snaploom_operator.operatormetrics import Metrics
from snaploom_operator.store.store import Store
from snaploom_operator.workqueue import LONGEST_BACKOFF, WorkQueue

_TRANSIENT = (ApiUnavailable, ObjectChanged, TooManyRequests)
"""Temporary failures, which are not shown in the status."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Held:
    refusal: Refusal | None
    """None for a temporary failure."""
    generation: int
    until: float
    """Time of the loop's clock; a changed spec ends the wait earlier."""


class ActionBackoff:
    """Performs actions, unless they wait; its clock is the queue's, in monotonic seconds."""

    def __init__(
        self,
        store: Store,
        queue: WorkQueue[Ref],
        runner: ActionRunner,
        refresh: StoreRefresh,
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._queue = queue
        self._runner = runner
        self._refresh = refresh
        self._clock = clock
        self._metrics = metrics
        self._held: dict[Ref, _Held] = {}

    def refusal(self, key: Ref) -> Refusal | None:
        """The refusal of the last action; a changed spec is tried immediately."""
        held, entry = self._held.get(key), self._store.entry(key)
        if held is not None and entry is not None and held.generation != entry.generation:
            self.forget(key)
            return None
        return None if held is None else held.refusal

    async def perform(
        self, key: Ref, observed: ObservedResource | Unparsable, actions: Iterable[Action]
    ) -> Done:
        """Perform actions unless they wait; a refusal is written to the status immediately."""
        held = self._held.get(key)
        wait = 0.0 if held is None else held.until - self._clock()
        if wait > 0:
            return Done(wait=wait)
        done = await self._runner.perform(key, observed, actions)
        if done.failure is None:
            self._held.pop(key, None)  # its failures stay counted until the pass is over
        else:
            await self._hold(key, done.failure)
        return done

    def forget(self, key: Ref) -> None:
        """Forget all failures of a resource."""
        self._held.pop(key, None)
        self._queue.forget(key)

    async def retry(self, key: Ref, error: SnaploomError) -> None:
        """Requeue a resource with backoff after a pass failed."""
        await self._report(key, error, self._delay(key, error))

    async def _hold(self, key: Ref, error: SnaploomError) -> None:
        delay = self._delay(key, error)
        entry = self._store.entry(key)
        if entry is not None:
            is_shown = not isinstance(error, _TRANSIENT)
            refusal = Refusal(error.reason, error.message) if is_shown else None
            self._held[key] = _Held(refusal, entry.generation, self._clock() + delay)
            if refusal is not None:
                self._queue.add(key)
        await self._report(key, error, delay)

    async def _report(self, key: Ref, error: SnaploomError, delay: float) -> None:
        self._metrics.failed(error.reason)
        is_usual = isinstance(error, ObjectChanged | ObjectMissing)
        _log.log(
            logging.INFO if is_usual else logging.WARNING,
            "%s; retry in %.0f s",
            error.message,
            delay,
            extra=about(key, reason=error.reason),
        )
        if is_usual:
            await self._refresh.reread(key)

    def _delay(self, key: Ref, error: SnaploomError) -> float:
        held = self._held.get(key)
        refusal = held.refusal if held is not None else None
        is_known_to_end = refusal is not None and refusal.is_namespace_terminating
        if isinstance(error, NamespaceTerminating) and not is_known_to_end:
            return 0.0  # decided anew: finalizers can be removed where nothing can be created
        if isinstance(error, TooManyRequests):
            return self._queue.fail(key, error.after)
        if error.retryable:
            return self._queue.fail(key)
        self._queue.add_after(key, LONGEST_BACKOFF)
        return LONGEST_BACKOFF

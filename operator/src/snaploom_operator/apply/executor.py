"""Carries out decisions: actions, then the status, then events; and requeues the resource."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from snaploom.errors import SnaploomError
from snaploom.models.common import Resource, ResourceStatus
from snaploom_operator.apply.actions import ActionRunner, Done, StoreRefresh, write_status
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decision import (
    Action,
    Decision,
    EventType,
    Note,
    ObservedResource,
    Refusal,
    Unparsable,
)
from snaploom_operator.errors import (
    ApiUnavailable,
    ClusterError,
    NamespaceTerminating,
    ObjectChanged,
    ObjectMissing,
    TooManyRequests,
)
from snaploom_operator.objects import JsonObject, Ref, about
from snaploom_operator.queues import LONGEST_BACKOFF, WorkQueue
from snaploom_operator.serve.metrics import Metrics, Outcome
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)


_TRANSIENT = (ApiUnavailable, ObjectChanged, TooManyRequests)
"""Temporary failures, which are not shown in the status."""


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


DELETED_SOON = 5.0
"""Seconds until a resource whose child was deleted is reconciled again without an event."""


class Recorder(Protocol):
    """Posts events about resources."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one event; errors of the cluster are not raised."""
        ...


class Executor:
    """Carries out decisions."""

    def __init__(
        self,
        cluster: Cluster,
        actions: ActionBackoff,
        refresh: StoreRefresh,
        queue: WorkQueue[Ref],
        recorder: Recorder,
        metrics: Metrics,
    ) -> None:
        self._cluster = cluster
        self._actions = actions
        self._refresh = refresh
        self._queue = queue
        self._recorder = recorder
        self._metrics = metrics

    async def execute(
        self, key: Ref, observed: ObservedResource | Unparsable, decision: Decision
    ) -> Outcome:
        """Carry out the decision of one pass.

        Raises:
            ClusterError: the status was not written.
        """
        self._refresh.claim(key, decision.status)  # before anything else runs
        done = Done()
        if decision.actions:
            done = await self._actions.perform(key, observed, decision.actions)
        if done.failure is not None:
            self._refresh.release(key)
            return Outcome.FAILED
        written = None
        if not done.is_gone and decision.status != observed.status:  # most are unchanged
            written = await self._write(key, done.owner or observed, decision.status)
        if written is not None:
            self._refresh.put(written)
            self._metrics.status_changed(key, observed.status, decision.status)
        await self._report(key, observed.uid, decision)
        if not done.wait:
            self._actions.forget(key)
        return self._requeue(key, decision, done, is_status_written=written is not None)

    async def _write(
        self, key: Ref, held: Resource | ObservedResource | Unparsable, status: ResourceStatus
    ) -> JsonObject | None:
        try:
            return await write_status(held, status, self._cluster)
        except ApiUnavailable:
            raise  # it may be written: what it claims stays claimed until the next pass
        except ClusterError:
            self._refresh.release(key)
            raise

    async def _report(self, key: Ref, uid: str, decision: Decision) -> None:
        for note in decision.notes:
            level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
            _log.log(level, "%s", note.message, extra=about(key, reason=note.reason))
            await self._recorder.record(key, uid, note)

    def _requeue(
        self, key: Ref, decision: Decision, done: Done, *, is_status_written: bool
    ) -> Outcome:
        """Requeue the resource: immediately after a step, else by the decision."""
        if done.is_gone:
            return Outcome.CHANGED
        if done.is_news or is_status_written:
            self._queue.add(key)
        elif done.has_deleted:
            # The watch event of the deletion requeues the resource; this covers a missed one.
            self._queue.add_after(key, DELETED_SOON)
        if decision.requeue_after is not None:
            self._queue.add_after(key, decision.requeue_after)
        if done.wait:
            self._queue.add_after(key, done.wait)
        is_changed = done.is_news or done.has_deleted or is_status_written
        return Outcome.CHANGED if is_changed else Outcome.UNCHANGED

"""The reconcile loop: key -> gather -> decide -> apply -> status -> events.

It is level-based: a key names the resource to reconcile, never what happened. Each pass makes one
step and requeues the resource if it changed anything. So after a crash at any point the next
process continues from the state of the cluster.

A failed pass never ends the loop. Temporary errors of the API server are retried with exponential
backoff; a refused action becomes part of the next observation (`Refusal`), so that the status shows
it, and is retried rarely, or as soon as the resource is changed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from snaploom.errors import SnaploomError
from snaploom.models.common import ResourceStatus
from snaploom.models.kinds import AnyResource
from snaploom.models.resource import Resource
from snaploom_operator.actions import Action, Delete
from snaploom_operator.apply.apply import apply
from snaploom_operator.apply.statuswriter import write_status
from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decision import Decision, EventType, Note
from snaploom_operator.errors import (
    ApiUnavailable,
    NamespaceTerminating,
    ObjectChanged,
    ObjectMissing,
    TooManyRequests,
)
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objectmetadata import metadata_of, text_in
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.observed import ObservedResource, Refusal, Unparsable
from snaploom_operator.operatormetrics import Metrics, Outcome
from snaploom_operator.process.endedruns import ended_run
from snaploom_operator.process.logformat import about
from snaploom_operator.store.references import ref_of
from snaploom_operator.store.resourceparser import parse_resource
from snaploom_operator.store.store import Store
from snaploom_operator.workqueue import LONGEST_BACKOFF, WorkQueue

SENTINEL = Ref("Sentinel", "", "")
"""A key without a resource: processing it is the loop's heartbeat."""
HEARTBEAT = 15.0
"""Interval of the heartbeat; liveness fails after sixty seconds without one."""
DELETED_SOON = 5.0
"""Seconds until a resource whose child was deleted is reconciled again without an event."""

_TRANSIENT = (ApiUnavailable, ObjectChanged, TooManyRequests)
"""Temporary failures, which are not shown in the status."""
_log = logging.getLogger(__name__)

Decide = Callable[[ObservedResource | Unparsable], Decision]


class Recorder(Protocol):
    """Posts events about resources."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one event; errors of the cluster are not raised."""
        ...


@dataclass(frozen=True)
class _Held:
    """Why actions of a resource are in backoff."""

    refusal: Refusal | None
    """None for a temporary failure."""
    generation: int
    until: float
    """Time of the loop's clock; a changed spec ends the wait earlier."""


@dataclass(frozen=True)
class _Done:
    """The result of the actions of a pass."""

    is_news: bool = False
    """Whether an action changed an object in the store."""
    has_deleted: bool = False
    owner: Resource | None = None
    """The resource, if its finalizers were changed."""
    is_gone: bool = False
    """Whether the resource was removed."""
    failure: SnaploomError | None = None
    """Why the last of them failed."""


class Controller:
    """Reconciles resources.

    Args: store: the observed objects. cluster: the cluster. gatherer: observes resources. decide:
        decides about an observation. queue: the work queue. recorder: posts events. clock:
        monotonic seconds, the same as the queue's. metrics: the operator's metrics.
    """

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        gatherer: Gatherer,
        decide: Decide,
        queue: WorkQueue[Ref],
        recorder: Recorder,
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._gatherer = gatherer
        self._decide = decide
        self._queue = queue
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._held: dict[Ref, _Held] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._last_beat = clock()

    @property
    def seconds_since_heartbeat(self) -> float:
        """Seconds since the last heartbeat of the loop."""
        return self._clock() - self._last_beat

    def start(self, workers: int) -> None:
        """Start the workers."""
        self._last_beat = self._clock()
        self._queue.add(SENTINEL)
        for number in range(workers):
            task = asyncio.create_task(self._work(), name=f"worker {number}")
            self._workers.add(task)

    async def stop(self, timeout: float) -> None:
        """Finish the current passes, and start no others.

        Args:
            timeout: seconds after which passes are cancelled; every step can be resumed.
        """
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
            outcome = await self._pass(key)
        except SnaploomError as error:
            outcome = Outcome.FAILED
            await self._failed(key, error, is_action=False)
        except Exception:  # noqa: BLE001 - a crash with one resource must not stop the others
            outcome = Outcome.CRASHED
            delay = self._queue.fail(key)
            _log.exception("reconciling crashed; retry in %.0f s", delay, extra=about(key))
        self._metrics.passed(key.kind, outcome, time.perf_counter() - started)

    async def _pass(self, key: Ref) -> Outcome:
        held = self._held_back(key)
        observed = await self._gatherer.observe(key, held.refusal if held is not None else None)
        if observed is None:
            self._forget(key)
            return Outcome.GONE
        if isinstance(observed, Unjudged):
            return Outcome.UNCHANGED
        decision = self._decide(observed)
        done = _Done()
        if not decision.actions:
            held = None
        elif not self._must_wait(held):
            owner = observed if isinstance(observed, Unparsable) else observed.resource
            done = await self._perform(key, owner, decision.actions)
        if done.failure is not None:
            await self._failed(key, done.failure, is_action=True)
            return Outcome.FAILED
        if not self._must_wait(held):
            self._held.pop(key, None)
        if done.is_gone:
            await self._record_notes(key, observed, decision.notes)
            self._forget(key)
            return Outcome.CHANGED
        written = None
        if decision.status != _status_of(observed):  # most are unchanged
            written = await write_status(done.owner or observed, decision.status, self._cluster)
        if written is not None:
            self._take_in(written)
            ended = ended_run(_status_of(observed), decision.status)
            if ended is not None:
                self._metrics.run_ended(key.kind, ended.phase, ended.reason, ended.seconds)
                if ended.published:
                    self._metrics.published(key, ended.published, ended.rows, ended.bytes)
        await self._record_notes(key, observed, decision.notes)
        if key not in self._held:
            self._queue.forget(key)
        return self._schedule(key, decision, done, is_status_written=written is not None)

    async def _record_notes(
        self, key: Ref, observed: ObservedResource | Unparsable, notes: tuple[Note, ...]
    ) -> None:
        """Log the notes of a decision, and post them as events."""
        for note in notes:
            level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
            _log.log(level, "%s", note.message, extra=about(key, reason=note.reason))
            await self._recorder.record(key, _uid(observed), note)

    def _schedule(
        self, key: Ref, decision: Decision, done: _Done, *, is_status_written: bool
    ) -> Outcome:
        """Requeue the resource: immediately after a step, else by the decision."""
        if done.is_news or is_status_written:
            self._queue.add(key)
        elif done.has_deleted:
            # The watch event of the deletion requeues the resource; this covers a missed one.
            self._queue.add_after(key, DELETED_SOON)
        if decision.requeue_after is not None:
            self._queue.add_after(key, decision.requeue_after)
        if key in self._held:
            self._queue.add_after(key, self._held[key].until - self._clock())
        is_changed = done.is_news or done.has_deleted or is_status_written
        return Outcome.CHANGED if is_changed else Outcome.UNCHANGED

    async def _perform(
        self, key: Ref, owner: Resource | Unparsable, actions: tuple[Action, ...]
    ) -> _Done:
        """Perform actions in order; the first that fails ends the pass."""
        done = _Done()
        for action in actions:
            try:
                stored = await apply(action, owner, self._cluster)
            except SnaploomError as error:
                return replace(done, failure=error)
            if isinstance(action, Delete):
                done = replace(done, has_deleted=True)
            if stored is None:
                continue
            is_owner = ref_of(stored) == key
            if is_owner and _is_ready_for_removal(stored):
                self._queue.add_all(self._store.remove(key, _uid_of(stored)))
                return replace(done, is_gone=True)
            done = replace(done, is_news=self._take_in(stored) or done.is_news)
            content = parse_resource(stored) if is_owner else None
            if isinstance(content, Resource):
                owner = content
                done = replace(done, owner=content)
        return done

    def _take_in(self, stored: JsonObject) -> bool:
        """Put our own write into the store; whether it was new."""
        if self._store.is_known(stored):
            return False
        self._queue.add_all(self._store.put(stored))
        return True

    # Failures

    def _held_back(self, key: Ref) -> _Held | None:
        """Why its actions are in backoff; a changed spec is tried immediately."""
        held, entry = self._held.get(key), self._store.entry(key)
        if held is not None and entry is not None and held.generation != entry.generation:
            del self._held[key]
            self._queue.forget(key)
            return None
        return held

    def _must_wait(self, held: _Held | None) -> bool:
        return held is not None and self._clock() < held.until

    async def _failed(self, key: Ref, error: SnaploomError, *, is_action: bool) -> None:
        """Requeue with backoff; a refusal is written to the status immediately."""
        delay = self._delay(key, error)
        entry = self._store.entry(key)
        if is_action and entry is not None:
            refusal = (
                None if isinstance(error, _TRANSIENT) else Refusal(error.reason, error.message)
            )
            self._held[key] = _Held(refusal, entry.generation, self._clock() + delay)
            if refusal is not None:
                self._queue.add(key)
        self._metrics.failed(error.reason)
        is_usual = isinstance(error, ObjectChanged | ObjectMissing)
        level = logging.INFO if is_usual else logging.WARNING
        _log.log(
            level,
            "%s; retry in %.0f s",
            error.message,
            delay,
            extra=about(key, reason=error.reason),
        )
        if is_usual:
            await self._refresh(key)

    def _delay(self, key: Ref, error: SnaploomError) -> float:
        if isinstance(error, NamespaceTerminating) and not self._is_known_to_end(key):
            return 0.0  # decided anew: finalizers can be removed where nothing can be created
        if isinstance(error, TooManyRequests):
            return self._queue.fail(key, error.after)
        if error.retryable:
            return self._queue.fail(key)
        self._queue.add_after(key, LONGEST_BACKOFF)
        return LONGEST_BACKOFF

    def _is_known_to_end(self, key: Ref) -> bool:
        """Whether the last action of a resource was refused since its namespace terminates."""
        held = self._held.get(key)
        refusal = held.refusal if held is not None else None
        return refusal is not None and refusal.is_namespace_terminating

    async def _refresh(self, key: Ref) -> None:
        """Read an outdated resource from the API server: its watch may be late or broken."""
        try:
            stored = await self._cluster.get(OURS[key.kind], key.namespace, key.name)
        except ObjectMissing:
            self._queue.add_all(self._store.remove(key))
        except SnaploomError as error:
            _log.info("cannot refresh: %s", error.message, extra=about(key))
        else:
            self._take_in(stored)

    def _forget(self, key: Ref) -> None:
        self._held.pop(key, None)
        self._queue.forget(key)


def _status_of(observed: ObservedResource | Unparsable) -> ResourceStatus | None:
    if isinstance(observed, Unparsable):
        return observed.status
    resource = observed.resource
    assert isinstance(resource, AnyResource)  # there are no other kinds
    return resource.status


def _uid(observed: ObservedResource | Unparsable) -> str:
    if isinstance(observed, Unparsable):
        return observed.uid
    return observed.resource.metadata.uid or ""


def _uid_of(stored: JsonObject) -> str:
    return text_in(metadata_of(stored), "uid")


def _is_ready_for_removal(stored: JsonObject) -> bool:
    """Whether the API server removes a resource: it is being deleted and has no finalizers."""
    metadata = metadata_of(stored)
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")

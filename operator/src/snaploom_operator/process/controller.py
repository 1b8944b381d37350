"""The loop: key -> gather -> decide -> apply -> status -> notes, one step of one resource a pass.

It is level-based: a key says which resource to look at, never what happened. Each pass makes one
step and, when it changed anything, has the resource looked at again at once. So a process that dies
anywhere has left a cluster from which the next one goes on.

A pass that fails never ends the loop. What the API server cannot do now is tried again later and
later; what it refuses becomes part of what the next decision knows (`Refusal`), so that the status
says it, and is tried again rarely, or as soon as the resource is changed.
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
from snaploom_operator.acting.apply import apply
from snaploom_operator.acting.statuswriting import write_status
from snaploom_operator.actions import Action, Delete
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import OURS
from snaploom_operator.decision import Decision, EventType, Note
from snaploom_operator.errors import (
    ApiUnavailable,
    ObjectChanged,
    ObjectMissing,
    TooManyRequests,
)
from snaploom_operator.knowledge.parsing import parse_resource
from snaploom_operator.knowledge.references import ref_of
from snaploom_operator.knowledge.store import Store
from snaploom_operator.metadata import metadata_of, text_in
from snaploom_operator.metrics import Metrics, Outcome
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.observed import ObservedResource, Refusal, Unparsable
from snaploom_operator.observing.gather import Gatherer, Unjudged
from snaploom_operator.process.endedruns import ended_run
from snaploom_operator.process.logs import about
from snaploom_operator.workqueue import LONGEST_BACKOFF, WorkQueue

SENTINEL = Ref("Sentinel", "", "")
"""A key that stands for no resource: that it is worked off shows that the loop is alive."""
HEARTBEAT = 15.0
"""Seconds between two times that the sentinel is due; liveness fails after sixty without it."""
DELETED_SOON = 5.0
"""Seconds after which a resource is looked at again whose child was deleted, if no event comes."""

_PASSING = (ApiUnavailable, ObjectChanged, TooManyRequests)
"""Failures that are over before anybody could read of them in a status."""
_log = logging.getLogger(__name__)

Decide = Callable[[ObservedResource | Unparsable], Decision]


class Recorder(Protocol):
    """Posts events about resources."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one; it never raises for what the cluster says."""
        ...


@dataclass(frozen=True)
class _Held:
    """Why actions of a resource wait."""

    refusal: Refusal | None
    """None for a failure that the status does not tell of."""
    generation: int
    until: float
    """Time of the loop's clock; a changed spec ends the wait earlier."""


@dataclass(frozen=True)
class _Done:
    """What the actions of a pass came to."""

    is_news: bool = False
    """Whether one changed something that the store did not know."""
    has_deleted: bool = False
    owner: Resource | None = None
    """The resource itself, where its finalizers were changed."""
    is_gone: bool = False
    """Whether the resource was let go."""
    failure: SnaploomError | None = None
    """Why the last of them failed."""


class Controller:
    """Works off keys.

    Args:
        store: what was last seen of the cluster.
        cluster: where actions are performed.
        gatherer: observes resources.
        decide: makes a decision of an observation.
        queue: the keys.
        recorder: posts events.
        clock: seconds that never go back; the queue's.
        metrics: what is counted.
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
    def silence(self) -> float:
        """Seconds since the loop last showed that it is alive."""
        return self._clock() - self._last_beat

    def start(self, workers: int) -> None:
        """Begin to work off keys."""
        self._last_beat = self._clock()
        self._queue.add(SENTINEL)
        for number in range(workers):
            task = asyncio.create_task(self._work(), name=f"worker {number}")
            self._workers.add(task)

    async def stop(self, patience: float) -> None:
        """Finish the passes in hand, and begin no other.

        Args:
            patience: seconds after which a pass is broken off: every step can be taken up again.
        """
        self._is_stopping = True
        for task in self._idle:
            task.cancel()
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=patience)
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
                await self.work_off(key)
            finally:
                self._queue.done(key)
            # A pass without a request never waits; probes and the Lease must get their turn.
            await asyncio.sleep(0)

    async def work_off(self, key: Ref) -> None:
        """One pass; it never raises but for being cancelled."""
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
        except Exception:  # noqa: BLE001 - whatever one resource does to us, the others go on
            outcome = Outcome.CRASHED
            delay = self._queue.fail(key)
            _log.exception("a pass failed unexpectedly; again in %.0f s", delay, extra=about(key))
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
            await self._tell(key, observed, decision.notes)
            self._forget(key)
            return Outcome.CHANGED
        written = None
        if decision.status != _status_of(observed):  # most are as they should be
            written = await write_status(done.owner or observed, decision.status, self._cluster)
        if written is not None:
            self._take_in(written)
            ended = ended_run(_status_of(observed), decision.status)
            if ended is not None:
                self._metrics.run_ended(key.kind, ended.phase, ended.reason, ended.seconds)
                if ended.published:
                    self._metrics.published(key, ended.published, ended.rows, ended.bytes)
        await self._tell(key, observed, decision.notes)
        if key not in self._held:
            self._queue.forget(key)
        return self._schedule(key, decision, done, is_told_anew=written is not None)

    async def _tell(
        self, key: Ref, observed: ObservedResource | Unparsable, notes: tuple[Note, ...]
    ) -> None:
        """Log what was decided, and post it as events."""
        for note in notes:
            level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
            _log.log(level, "%s", note.message, extra=about(key, reason=note.reason))
            await self._recorder.record(key, _uid(observed), note)

    def _schedule(
        self, key: Ref, decision: Decision, done: _Done, *, is_told_anew: bool
    ) -> Outcome:
        """Have the resource looked at again: at once after a step, else when the decision says."""
        if done.is_news or is_told_anew:
            self._queue.add(key)
        elif done.has_deleted:
            # The event of the deletion wakes the resource; this is for one that is never seen.
            self._queue.add_after(key, DELETED_SOON)
        if decision.requeue_after is not None:
            self._queue.add_after(key, decision.requeue_after)
        if key in self._held:
            self._queue.add_after(key, self._held[key].until - self._clock())
        is_changed = done.is_news or done.has_deleted or is_told_anew
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
            if is_owner and _is_let_go(stored):
                self._queue.add_all(self._store.remove(key, _uid_of(stored)))
                return replace(done, is_gone=True)
            done = replace(done, is_news=self._take_in(stored) or done.is_news)
            content = parse_resource(stored) if is_owner else None
            if isinstance(content, Resource):
                owner = content
                done = replace(done, owner=content)
        return done

    def _take_in(self, stored: JsonObject) -> bool:
        """Put our own write into the store; whether it is news."""
        if self._store.is_known(stored):
            return False
        self._queue.add_all(self._store.put(stored))
        return True

    # Failures

    def _held_back(self, key: Ref) -> _Held | None:
        """Why its actions wait; another spec is tried at once."""
        held, entry = self._held.get(key), self._store.entry(key)
        if held is not None and entry is not None and held.generation != entry.generation:
            del self._held[key]
            self._queue.forget(key)
            return None
        return held

    def _must_wait(self, held: _Held | None) -> bool:
        return held is not None and self._clock() < held.until

    async def _failed(self, key: Ref, error: SnaploomError, *, is_action: bool) -> None:
        """Try again later; what is worth reading goes into the status at once."""
        delay = self._delay(key, error)
        entry = self._store.entry(key)
        if is_action and entry is not None:
            told = None if isinstance(error, _PASSING) else Refusal(error.reason, error.message)
            self._held[key] = _Held(told, entry.generation, self._clock() + delay)
            if told is not None:
                self._queue.add(key)
        self._metrics.failed(error.reason)
        is_usual = isinstance(error, ObjectChanged | ObjectMissing)
        level = logging.INFO if is_usual else logging.WARNING
        _log.log(
            level,
            "%s; again in %.0f s",
            error.message,
            delay,
            extra=about(key, reason=error.reason),
        )
        if is_usual:
            await self._look_afresh(key)

    def _delay(self, key: Ref, error: SnaploomError) -> float:
        if isinstance(error, TooManyRequests):
            return self._queue.fail(key, error.after)
        if error.retryable:
            return self._queue.fail(key)
        self._queue.add_after(key, LONGEST_BACKOFF)
        return LONGEST_BACKOFF

    async def _look_afresh(self, key: Ref) -> None:
        """Read a resource of which we know an old state: its watch may be late, or dead."""
        try:
            stored = await self._cluster.get(OURS[key.kind], key.namespace, key.name)
        except ObjectMissing:
            self._queue.add_all(self._store.remove(key))
        except SnaploomError as error:
            _log.info("not read afresh: %s", error.message, extra=about(key))
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


def _is_let_go(stored: JsonObject) -> bool:
    """Whether the API server removes a resource now that nobody holds it any more."""
    metadata = metadata_of(stored)
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")

"""The work queue of keys, and the queue of runs.

The first is as in client-go: never two passes for one key at a time, and none is lost that is added
meanwhile. Failures delay a key exponentially, with jitter.
"""

import asyncio
import heapq
import itertools
import random
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from snaploom.models.common import EpochNanos
from snaploom.models.run import CurrentPhase, CurrentRun
from snaploom_operator.decision import Queue
from snaploom_operator.objects import Ref, known_instant
from snaploom_operator.settings import Limits

Key = TypeVar("Key")
FIRST_BACKOFF = 1.0
"""Seconds after the first failure; most conflicts are over by then."""
LONGEST_BACKOFF = 300.0
"""Seconds: a recovered cluster is noticed within minutes, and a failing one gets few requests."""
JITTER = 0.2
"""Share of a delay by which it is lengthened at random."""


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter."""

    first: float = FIRST_BACKOFF
    longest: float = LONGEST_BACKOFF
    jitter: float = JITTER

    def after(self, failures: int, chance: float) -> float:
        """Seconds to wait after consecutive failures; `chance` is between 0 and 1."""
        exponent = min(failures - 1, 30)  # the limit is reached before floats overflow
        return min(self.longest, self.first * 2.0**exponent) * (1 + self.jitter * chance)


class WorkQueue(Generic[Key]):
    """A queue of due and delayed keys, by monotonic seconds; `chance` is for the jitter."""

    def __init__(
        self,
        clock: Callable[[], float],
        backoff: Backoff | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._chance = chance
        self._ready: dict[Key, float] = {}
        """Due keys, in order, and since when."""
        self._busy: set[Key] = set()
        self._again: dict[Key, float] = {}
        """Keys that were added while they were processed, and when."""
        self._later: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        """Time at which a delayed key is due; other entries of it in `_later` are outdated."""
        self._numbers = itertools.count()
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def add(self, key: Key) -> None:
        """Make a key due now."""
        now = self._clock()
        if key in self._busy:
            self._again.setdefault(key, now)
        elif key not in self._ready:
            self._ready[key] = now
            self._changed.set()

    def add_all(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Make a key due after a delay; the earliest of several delays counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock() + seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._later, (due, next(self._numbers), key))
            self._changed.set()

    def fail(self, key: Key, at_least: float = 0.0) -> float:
        """Requeue a key with backoff, of at least some seconds, after a failure; the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._backoff.after(failures, self._chance()))
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Reset the failure count of a key."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """Wait for the next due key; call `done` after processing it."""
        while True:
            self._promote()
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._busy.add(key)
                return key
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self.next_due)

    def done(self, key: Key) -> None:
        """Mark a taken key as processed."""
        self._busy.discard(key)
        if key in self._again:
            self._ready[key] = self._again.pop(key)
            self._changed.set()

    @property
    def depth(self) -> int:
        """Number of due keys; thread-safe."""
        now, due = self._clock(), self._due.copy()
        return len({*self._ready, *(key for key in due if due[key] <= now)}) + len(self._again)

    @property
    def is_idle(self) -> bool:
        return not self._busy and self.depth == 0

    @property
    def next_due(self) -> float | None:
        """Seconds until a delayed key is due; None without one."""
        return max(0.0, self._later[0][0] - self._clock()) if self._later else None

    @property
    def age(self) -> float:
        """Seconds that the longest waiting key has been due; 0 without one. Thread-safe."""
        since = min((*self._ready.copy().values(), *self._again.copy().values()), default=None)
        return 0.0 if since is None else max(0.0, self._clock() - since)

    def _promote(self) -> None:
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)


NOTIFIED_WAITERS = 20
"""Queued runs whose position is updated when a run before them starts; later ones are updated
later. Each update is a write, so that updating a long queue would take longer than the runs."""


@dataclass(frozen=True, order=True, slots=True)
class _Place:
    since: EpochNanos
    ref: Ref


class RunQueue:
    """The queued runs and the runs in flight."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places: dict[Ref, _Place] = {}
        self._waiting: list[_Place] = []
        self._waiting_in: defaultdict[str, list[_Place]] = defaultdict(list)
        self._in_flight: set[Ref] = set()
        self._in_flight_in: Counter[str] = Counter()
        self._startable: frozenset[Ref] | None = frozenset()
        """Waiting runs that may start; None where it is to be found anew."""
        self._startable_in: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def all(self) -> frozenset[Ref]:
        """Every resource with a queued run or one in flight."""
        return frozenset((*self._in_flight, *self._places))

    def put(self, ref: Ref, run: CurrentRun | None, *, may_start: bool = True) -> bool:
        """Set the run of a resource; True if any position changed.

        A run that may not start, since it is paused or suspended, blocks no other run.
        """
        is_waiting = run is not None and run.phase is CurrentPhase.QUEUED and may_start
        is_in_flight = run is not None and run.phase is not CurrentPhase.QUEUED
        place = None
        if run is not None and is_waiting:  # an invalid time sorts first
            place = _Place(known_instant(run.started_at) or EpochNanos(0), ref)
        if place == self._places.get(ref) and is_in_flight == (ref in self._in_flight):
            return False
        self._forget(ref)
        self._startable = None
        if place is not None:
            self._places[ref] = place
            insort(self._waiting, place)
            insort(self._waiting_in[ref.namespace], place)
        if is_in_flight:
            self._in_flight.add(ref)
            self._in_flight_in[ref.namespace] += 1
        return True

    def next(self) -> frozenset[Ref]:
        """Resources whose run may start now, and the first queued ones."""
        return self._with_slot() | {place.ref for place in self._waiting[:NOTIFIED_WAITERS]}

    def place_of(self, ref: Ref) -> Queue:
        """The position of a resource's run; 0 if it is not queued."""
        in_namespace = self._in_flight_in[ref.namespace]
        is_full_here = in_namespace >= self._limits.runs_per_namespace
        waiting = self._waiting_in[ref.namespace] if is_full_here else self._waiting
        place = self._places.get(ref)
        return Queue(
            has_slot=self._has_slot(ref),
            position=0 if place is None else bisect_left(waiting, place) + 1,
            waiting=len(waiting),
            limit=self._limits.runs_per_namespace if is_full_here else self._limits.runs,
        )

    def _has_slot(self, ref: Ref) -> bool:
        """Return whether the turn of a run has come, or nothing waits before it."""
        if ref in self._in_flight:  # claimed before, by a write that failed
            return True
        startable = self._with_slot()
        if ref in self._places:
            return ref in startable
        here = self._in_flight_in[ref.namespace] + self._startable_in[ref.namespace]
        is_room_here = here < self._limits.runs_per_namespace
        return is_room_here and len(self._in_flight) + len(startable) < self._limits.runs

    def _with_slot(self) -> frozenset[Ref]:
        if self._startable is None:
            self._startable = self._first_with_room()
            self._startable_in = Counter(ref.namespace for ref in self._startable)
        return self._startable

    def _first_with_room(self) -> frozenset[Ref]:
        free = self._limits.runs - len(self._in_flight)
        taken = Counter(self._in_flight_in)
        startable: set[Ref] = set()
        for place in self._waiting:
            if len(startable) >= free:
                break
            if taken[place.ref.namespace] < self._limits.runs_per_namespace:
                taken[place.ref.namespace] += 1
                startable.add(place.ref)
        return frozenset(startable)

    def _forget(self, ref: Ref) -> None:
        place = self._places.pop(ref, None)
        if place is not None:
            del self._waiting[bisect_left(self._waiting, place)]
            here = self._waiting_in[ref.namespace]
            del here[bisect_left(here, place)]
        if ref in self._in_flight:
            self._in_flight.remove(ref)
            self._in_flight_in[ref.namespace] -= 1

"""The queue of runs: which runs are in flight, and which may start next.

Runs start in the order in which they were decided, within the limits of runs in flight: in total
and per namespace. A full namespace does not block others. A run that nothing waits before never
waits: it is recorded as submitting, with one write.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from dataclasses import dataclass

from snaploom.models.run import CurrentPhase, CurrentRun
from snaploom.models.times import EpochNanos
from snaploom_operator.instants import known_instant
from snaploom_operator.objects import Ref
from snaploom_operator.observed import Queue
from snaploom_operator.operatorsettings import Limits

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
        """Runs that are submitted or running."""
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        """Number of queued runs."""
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

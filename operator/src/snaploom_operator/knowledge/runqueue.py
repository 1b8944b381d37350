"""All runs that wait or are in flight, and who may go next.

Runs go in the order in which they were decided, as long as fewer than the limits are in flight: in
all, and in their namespace. Who waits behind a full namespace does not hold up others.
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
from snaploom_operator.settings import Limits

TOLD_OF_MOVES = 20
"""How many of the waiting are told when one of the runs before them goes: who waits further back
learns its place later. Each of them costs a write, so that telling all of a long queue would take
longer than the runs."""


@dataclass(frozen=True, order=True, slots=True)
class _Place:
    since: EpochNanos
    ref: Ref


class RunQueue:
    """Who waits, and who is in flight.

    Args:
        limits: how many runs may be in flight.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places: dict[Ref, _Place] = {}
        self._waiting: list[_Place] = []
        self._waiting_in: defaultdict[str, list[_Place]] = defaultdict(list)
        self._flying: set[Ref] = set()
        self._flying_in: Counter[str] = Counter()
        self._going: frozenset[Ref] | None = frozenset()

    @property
    def in_flight(self) -> int:
        """Runs that are submitted or running."""
        return len(self._flying)

    @property
    def waiting(self) -> int:
        """Runs that wait."""
        return len(self._waiting)

    @property
    def all(self) -> frozenset[Ref]:
        """Every resource with a run that waits or is in flight."""
        return frozenset((*self._flying, *self._places))

    def put(self, ref: Ref, run: CurrentRun | None, *, may_go: bool = True) -> bool:
        """Take in the run of a resource; whether that changes anybody's place.

        Args:
            ref: the resource.
            run: its run; None without one.
            may_go: False where it waits for a person: it then holds up nobody.
        """
        waits = run is not None and run.phase is CurrentPhase.QUEUED and may_go
        flies = run is not None and run.phase is not CurrentPhase.QUEUED
        place = _Place(_since(run), ref) if run is not None and waits else None
        if place == self._places.get(ref) and flies == (ref in self._flying):
            return False
        self._forget(ref)
        self._going = None
        if place is not None:
            self._places[ref] = place
            insort(self._waiting, place)
            insort(self._waiting_in[ref.namespace], place)
        if flies:
            self._flying.add(ref)
            self._flying_in[ref.namespace] += 1
        return True

    def next(self) -> frozenset[Ref]:
        """Who may go now, and the first of those who wait."""
        return self._with_slot() | {place.ref for place in self._waiting[:TOLD_OF_MOVES]}

    def place_of(self, ref: Ref) -> Queue:
        """Where the run of a resource stands; position 0 where it does not wait."""
        in_namespace = self._flying_in[ref.namespace]
        is_full_here = in_namespace >= self._limits.runs_per_namespace
        waiting = self._waiting_in[ref.namespace] if is_full_here else self._waiting
        place = self._places.get(ref)
        return Queue(
            has_slot=ref in self._with_slot(),
            position=0 if place is None else bisect_left(waiting, place) + 1,
            waiting=len(waiting),
            in_flight=in_namespace if is_full_here else len(self._flying),
            limit=self._limits.runs_per_namespace if is_full_here else self._limits.runs,
        )

    def _with_slot(self) -> frozenset[Ref]:
        if self._going is None:
            self._going = self._first_with_room()
        return self._going

    def _first_with_room(self) -> frozenset[Ref]:
        free = self._limits.runs - len(self._flying)
        taken = Counter(self._flying_in)
        going: set[Ref] = set()
        for place in self._waiting:
            if len(going) >= free:
                break
            if taken[place.ref.namespace] < self._limits.runs_per_namespace:
                taken[place.ref.namespace] += 1
                going.add(place.ref)
        return frozenset(going)

    def _forget(self, ref: Ref) -> None:
        place = self._places.pop(ref, None)
        if place is not None:
            del self._waiting[bisect_left(self._waiting, place)]
            here = self._waiting_in[ref.namespace]
            del here[bisect_left(here, place)]
        if ref in self._flying:
            self._flying.remove(ref)
            self._flying_in[ref.namespace] -= 1


def _since(run: CurrentRun) -> EpochNanos:
    """Since when a run waits; one whose status was edited so that nobody can tell goes first."""
    return known_instant(run.started_at) or EpochNanos(0)

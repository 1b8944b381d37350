"""Indexes of the store: by folder, by what runs have seen, and the queue of runs."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass

from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.run import CurrentPhase, CurrentRun
from snaploom.models.times import EpochNanos
from snaploom.planning.sources.registry import declared
from snaploom.planning.validation.outputfolder import comparable_folder
from snaploom.planning.validation.overlaps import folder_of
from snaploom_operator.decision import Queue
from snaploom_operator.objects import FoundReport, Ref, known_instant
from snaploom_operator.settings import Limits

# An index of outputs and sources by folder.

_WILDCARD = re.compile(r"[*?\[{\\]")


def read_folders(source: DataSource) -> frozenset[str]:
    """The folders below which a source's files lie, up to the first wildcard of each glob."""
    fixed = (_WILDCARD.split(glob, maxsplit=1)[0] for glob in declared(source).globs)
    return frozenset(comparable_folder(path.rpartition("/")[0]) for path in fixed)


def folders_of(resource: Resource) -> frozenset[str]:
    """The folders of an output or a source; other kinds have none."""
    if isinstance(resource, OutputDataset):
        return frozenset({folder_of(resource)})
    return read_folders(resource) if isinstance(resource, DataSource) else frozenset()


class PathIndex:
    """Objects by folder path; every path ends with `/`."""

    def __init__(self) -> None:
        self._at: defaultdict[str, set[Ref]] = defaultdict(set)
        self._below: defaultdict[str, set[Ref]] = defaultdict(set)

    def add(self, path: str, ref: Ref) -> None:
        """Add an object at a path."""
        self._at[path].add(ref)
        for above in _above(path):
            self._below[above].add(ref)

    def discard(self, path: str, ref: Ref) -> None:
        """Remove an object from a path."""
        _drop(self._at, path, ref)
        for above in _above(path):
            _drop(self._below, above, ref)

    def touching(self, path: str) -> set[Ref]:
        """Objects at a path, above it, or below it."""
        found = {ref for place in (path, *_above(path)) for ref in self._at.get(place, ())}
        return found | self._below.get(path, set())


class Folders:
    """Outputs and sources of one namespace by their folders."""

    def __init__(self) -> None:
        self._outputs = PathIndex()
        self._sources = PathIndex()

    def add(self, ref: Ref, folders: Iterable[str]) -> None:
        """Add an output or a source with its folders."""
        index = self._outputs if ref.kind == OutputDataset.__name__ else self._sources
        for path in folders:
            index.add(path, ref)

    def discard(self, ref: Ref, folders: Iterable[str]) -> None:
        """Remove an output or a source from its folders."""
        index = self._outputs if ref.kind == OutputDataset.__name__ else self._sources
        for path in folders:
            index.discard(path, ref)

    def overlapping(self, output: OutputDataset) -> set[Ref]:
        """Outputs whose folder equals, contains or is inside that of this one; itself included."""
        return self._outputs.touching(folder_of(output))

    def readers(self, output: OutputDataset) -> set[Ref]:
        """Sources that may read what an output publishes."""
        return self._sources.touching(folder_of(output))

    def published_below(self, source: DataSource) -> set[Ref]:
        """Outputs whose files a source may read."""
        return {ref for path in read_folders(source) for ref in self._outputs.touching(path)}


def _above(path: str) -> list[str]:
    """Every folder that a folder lies in, the nearest first."""
    found = []
    end = path.rfind("/", 0, -1)
    while end >= 0:
        found.append(path[: end + 1])
        end = path.rfind("/", 0, end)
    return found


def _drop(index: defaultdict[str, set[Ref]], path: str, ref: Ref) -> None:
    index[path].discard(ref)
    if not index[path]:
        del index[path]


# The newest observation of each source by a run: `seen` of the reports.


def take_seen(
    newest: dict[Ref, LastSeen], namespace: str, found: FoundReport | None, declared: Container[Ref]
) -> set[Ref]:
    """Take the observations of a report that are newer; the sources that they are about.

    They are kept when the report is deleted, so that they do not depend on `run.historyLimit`. A
    report may be forged: sources that nobody declared are not remembered.
    """
    report = None if found is None else found.report
    if report is None:
        return set()
    updated: set[Ref] = set()
    for seen in report.seen:
        source = Ref(DataSource.__name__, namespace, seen.source)
        if source not in declared:
            continue
        known = newest.get(source)
        look = LastSeen(
            run=report.run_id,
            at=report.finished_at or report.started_at,
            latest_snapshot=seen.latest_snapshot,
            snapshots=seen.snapshots,
            # A run that read no row of it knows no schema; keep the previous one.
            schema_fingerprint=seen.schema_fingerprint
            or (known.schema_fingerprint if known is not None else None),
        )
        if newer(look, known):
            newest[source] = look
            updated.add(source)
    return updated


def newer(look: LastSeen, other: LastSeen | None) -> bool:
    """Return whether one observation is newer than another; an invalid time is the oldest."""
    return other is None or _age(look) > _age(other)


def _age(look: LastSeen) -> tuple[EpochNanos, str]:
    return known_instant(look.at) or EpochNanos(0), look.run


# The queue of runs: which runs are in flight, and which may start next.

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

"""Statistics of skipping in a session: counted as queries are planned, written nowhere."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from snaploom.models.times import EpochNanos, now
from snaploom.skipping.spark.optimizer.outcomes import IndexOutcome, RelationOutcome
from snaploom.skipping.stores.port import NEVER

RECENT = 200
"""Decisions that are remembered one by one."""


@dataclass(frozen=True)
class IndexUse:
    """Usage of one skipping index."""

    target: str
    """Target of the index."""
    times: int = 0
    """How often it was used."""
    dropped_files: int = 0
    """Files that it proved are not needed, summed over its uses."""
    last_used: EpochNanos = NEVER


@dataclass(frozen=True)
class Statistics:
    """Sums since the session was enabled, or since they were reset.

    A relation is asked about while its query is optimised, and again when it runs if filters or
    files are others by then: that counts twice.
    """

    relations: int = 0
    """Requests that an index could answer or not."""
    served: int = 0
    """Requests of which an index dropped at least one file."""
    files: int = 0
    bytes: int = 0
    """Listed, before skipping."""
    kept_files: int = 0
    kept_bytes: int = 0
    stale: int = 0
    """Files that indexes knew otherwise than they were."""
    missing: int = 0
    """Files that indexes did not know."""
    seconds: float = 0.0
    """Spent on deciding."""
    errors: int = 0
    """Requests that failed: every file was read."""
    last_error: str = ""
    indexes: Mapping[str, IndexUse] = field(default_factory=dict)
    """By where an index is kept."""
    recent: tuple[RelationOutcome, ...] = ()
    """The last decisions, oldest first."""

    @property
    def dropped_files(self) -> int:
        """Files that were not read."""
        return self.files - self.kept_files

    @property
    def dropped_bytes(self) -> int:
        """Bytes that were not read."""
        return self.bytes - self.kept_bytes


class Counting:
    """Counts decisions; safe to use from several threads."""

    def __init__(self, clock: Callable[[], EpochNanos] = now) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sums = Statistics()
        self._recent: deque[RelationOutcome] = deque(maxlen=RECENT)

    def add(self, outcome: RelationOutcome) -> None:
        """Count a decision."""
        with self._lock:
            self._recent.append(outcome)
            self._sums = _added(self._sums, outcome, self._clock())

    def fail(self, message: str) -> None:
        """Count a request that failed."""
        with self._lock:
            sums = self._sums
            self._sums = replace(sums, errors=sums.errors + 1, last_error=message)

    def read(self) -> Statistics:
        """Return the counts so far."""
        with self._lock:
            return replace(self._sums, recent=tuple(self._recent))

    def reset(self) -> None:
        """Reset to zero; the times of last use are kept."""
        with self._lock:
            uses = {
                uri: IndexUse(use.target, last_used=use.last_used)
                for uri, use in self._sums.indexes.items()
            }
            self._sums = Statistics(indexes=uses)
            self._recent.clear()


def _added(sums: Statistics, outcome: RelationOutcome, at: EpochNanos) -> Statistics:
    used = [index for index in outcome.indexes if index.is_used]
    uses = dict(sums.indexes)
    for index in used:
        uses[index.uri] = _used(uses.get(index.uri), index, at)
    return replace(
        sums,
        relations=sums.relations + 1,
        served=sums.served + bool(outcome.dropped_files),
        files=sums.files + outcome.files,
        bytes=sums.bytes + outcome.bytes,
        kept_files=sums.kept_files + outcome.kept_files,
        kept_bytes=sums.kept_bytes + outcome.kept_bytes,
        stale=sums.stale + sum(index.stale for index in used),
        missing=sums.missing + sum(index.missing for index in used),
        seconds=sums.seconds + outcome.seconds,
        indexes=uses,
    )


def _used(before: IndexUse | None, index: IndexOutcome, at: EpochNanos) -> IndexUse:
    times, dropped = (before.times, before.dropped_files) if before is not None else (0, 0)
    return IndexUse(index.target, times + 1, dropped + index.dropped, at)

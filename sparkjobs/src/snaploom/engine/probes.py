"""The counts taken while a tree is folded, and the two ways to take them.

`fold` hands every frame worth counting to a probe and goes on with what it gets back. `Observing`
attaches Spark observations, which count in the same job; `Recording` keeps the frames, for exact
counts by queries of their own when the observed ones are missing or suspect (rule W25).

Two points a node suffice, because a left join never loses rows: *in*, the rows of an internal node
before its first join, and *out*, its packed rows after the last one. If both are equal, no join in
between multiplied rows. The null keys of a node's own key are counted at *out* too; the matches of
a join are the packed rows whose child is not NULL.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the fold where rows are counted."""

    number: int
    """Number of the node."""
    is_out: bool
    """After the node's last join, rather than before its first."""


ROWS = "rows"
Counts = Mapping[str, int]
"""`rows`, and for some numbers of nodes `null_<n>` (rows whose key of that join has a NULL) and
`matched_<n>` (rows that found a match in that join). Where several snapshots are woven together,
`rows` counts all of them, and the others are counted of each (`of_snapshot`)."""


def of_snapshot(name: str, number: int) -> str:
    """Name of a count of one of several snapshots, by its number from 0."""
    return f"{name}@{number}"


def counts_of_snapshot(counts: Counts, number: int) -> Counts:
    """The counts of one of several snapshots, named as if it were woven by itself."""
    ending = of_snapshot("", number)
    return {
        name.removesuffix(ending): count for name, count in counts.items() if name.endswith(ending)
    }


class Probe(Protocol):
    """Sees the frames of a fold."""

    def at(self, point: Point, frame: DataFrame, counters: Sequence[Column]) -> DataFrame:
        """Register a frame and the counts to take in it; return the frame to continue with."""


@dataclass
class Observing:
    """Counts in the job that runs the fold anyway."""

    left_out: frozenset[Point] = frozenset()
    """Points at which nothing is counted."""
    observations: dict[Point, Observation] = field(default_factory=dict)

    def at(self, point: Point, frame: DataFrame, counters: Sequence[Column]) -> DataFrame:
        """Attach an observation."""
        if point in self.left_out:
            return frame
        observation = Observation()
        self.observations[point] = observation
        return frame.observe(observation, *counters)

    def read(self, patience: float) -> dict[Point, Counts]:
        """The observed counts, once the job has ended.

        `Observation.get` waits for ever when the observed part of the plan was optimised away
        (SPARK-54620), so only completed ones are read; the others are absent from the result.
        Spark's listeners report after the job's end; `patience` is the seconds to wait for them.
        """
        deadline = time.monotonic() + patience
        waiting = dict(self.observations)
        counts: dict[Point, Counts] = {}
        while waiting:
            done = [point for point, one in waiting.items() if _is_completed(one)]
            for point in done:
                observation = waiting.pop(point)
                if _has_metrics(observation):
                    counts[point] = observation.get
            if time.monotonic() >= deadline:
                break
            if waiting and not done:
                time.sleep(0.005)  # short against a job, long against a call into the JVM
        return counts


def _is_completed(observation: Observation) -> bool:
    handle = observation._jo  # the public API can only wait
    return handle is not None and bool(handle.future().isCompleted())


def _has_metrics(observation: Observation) -> bool:
    # Spark 4.3 completes what was optimised away with a row without columns, on which `get` fails.
    handle = observation._jo
    return handle is not None and handle.getRow().schema() is not None


@dataclass
class Recording:
    """Counts by queries of their own, each when asked."""

    frames: dict[Point, tuple[DataFrame, tuple[Column, ...]]] = field(default_factory=dict)

    def at(self, point: Point, frame: DataFrame, counters: Sequence[Column]) -> DataFrame:
        """Keep the frame."""
        self.frames[point] = (frame, tuple(counters))
        return frame

    def frame(self, point: Point) -> DataFrame:
        """The frame at a point."""
        return self.frames[point][0]

    def count(self, point: Point) -> Counts:
        """Exact counts at a point: one Spark job."""
        frame, counters = self.frames[point]
        row = frame.agg(*counters).first()
        assert row is not None  # an aggregation without keys has one row
        return {name: int(value) for name, value in row.asDict().items()}


def rows_counter() -> Column:
    """Counts the rows."""
    return sf.count(sf.lit(1)).alias(ROWS)

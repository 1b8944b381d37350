"""Intervals of an output that have no snapshot, between two that have one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import Interval, Intervals, IntervalSettings
from snaploom.site.pagedata import Gap

MOST_COUNTED = 1_000
"""Intervals by cron that are counted one by one in a gap: beyond, their number adds nothing."""


def gaps_of(settings: IntervalSettings, times: Iterable[EpochNanos]) -> tuple[Gap, ...]:
    """The gaps between snapshots, by time.

    Intervals that `excludeIntervals` leaves out as a whole are none, nor are those whose snapshot
    retention deleted, if `times` has it.
    """
    intervals = [interval for _, interval in settings.intervals.of_each(sorted(set(times)))]
    return tuple(
        gap
        for before, after in pairwise(intervals)
        if before.end < after.start
        for gap in _between(settings, before, after)
    )


def _between(settings: IntervalSettings, before: Interval, after: Interval) -> Iterator[Gap]:
    parts = [(before.end, after.start)]
    for first, last in settings.excluded:
        parts = [piece for part in parts for piece in _without(part, first, last)]
    for start, end in parts:
        count = _count(settings, start, end)
        if count:
            yield Gap(start, end, min(count, MOST_COUNTED), count > MOST_COUNTED)


def _without(
    part: tuple[EpochNanos, EpochNanos], first: EpochNanos, last: EpochNanos
) -> Iterator[tuple[EpochNanos, EpochNanos]]:
    start, end = part
    if last <= start or end <= first:
        yield part
        return
    if start < first:
        yield start, first
    if last < end:
        yield last, end


def _count(settings: IntervalSettings, start: EpochNanos, end: EpochNanos) -> int:
    """Intervals that begin in a span; up to one more than `MOST_COUNTED`."""
    last = EpochNanos(end - 1)
    sequence = settings.intervals
    if isinstance(sequence, Intervals):
        first_interval, last_interval = sequence.containing(start), sequence.containing(last)
        if first_interval is None or last_interval is None:
            return 0
        return last_interval.index - first_interval.index + 1
    covering = islice(sequence.covering(start, last), MOST_COUNTED + 1)
    return sum(start <= interval.start for interval in covering)

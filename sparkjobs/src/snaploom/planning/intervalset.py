"""Times without gaps: the union of inclusive intervals of whole milliseconds.

A complex virtual source has a snapshot at *every* millisecond of the intervals that its query
returns, so its snapshots cannot be listed one by one. They are kept as spans that neither overlap
nor touch; the questions that planning asks of a list of times (the first or the last within some
bounds) are answered by bisection, and the work grows with spans, never with milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos
from snaploom.planning.calendar import FIRST_INSTANT, LAST_INSTANT

_FIRST = -(-FIRST_INSTANT // NANOS_PER_MILLISECOND)
_LAST = LAST_INSTANT // NANOS_PER_MILLISECOND


class ReversedInterval(ValueError):
    """An interval ends before it begins."""


@dataclass(frozen=True, slots=True)
class Span:
    """Milliseconds since the epoch from `first` to `last`, both of them included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class IntervalSet:
    """Spans in ascending order, at least one millisecond between any two."""

    spans: tuple[Span, ...] = ()

    @staticmethod
    def of(intervals: Iterable[tuple[int, int]]) -> IntervalSet:
        """The union of inclusive intervals of milliseconds, in any order.

        What lies beyond the calendar is cut off: "for ever" is often written as the largest number
        that there is.

        Raises:
            ReversedInterval: one ends before it begins.
        """
        spans: list[Span] = []
        for first, last in sorted(intervals):
            if last < first:
                raise ReversedInterval(first, last)
            first, last = max(first, _FIRST), min(last, _LAST)
            if last < first:
                continue
            if spans and first <= spans[-1].last + 1:
                spans[-1] = Span(spans[-1].first, max(spans[-1].last, last))
            else:
                spans.append(Span(first, last))
        return IntervalSet(tuple(spans))

    def newest(self, first: int, last: int) -> EpochNanos | None:
        """The last time from one instant to another, both inclusive, in nanoseconds."""
        latest = last // NANOS_PER_MILLISECOND
        index = bisect_right(self.spans, latest, key=_first_of) - 1
        if index < 0:
            return None
        found = min(self.spans[index].last, latest) * NANOS_PER_MILLISECOND
        return EpochNanos(found) if found >= first else None

    def oldest(self, first: int, last: int) -> EpochNanos | None:
        """The first time from one instant to another, both inclusive, in nanoseconds."""
        earliest = -(-first // NANOS_PER_MILLISECOND)
        index = bisect_left(self.spans, earliest, key=_last_of)
        if index == len(self.spans):
            return None
        found = max(self.spans[index].first, earliest) * NANOS_PER_MILLISECOND
        return EpochNanos(found) if found <= last else None

    def without(self, ranges: Iterable[tuple[int, int]]) -> IntervalSet:
        """The rest of it outside half-open ranges of nanoseconds."""
        kept = list(self.spans)
        for start, end in ranges:
            # The first and the last millisecond that lie in the range.
            low = -(-start // NANOS_PER_MILLISECOND)
            high = -(-end // NANOS_PER_MILLISECOND) - 1
            kept = [part for span in kept for part in _cut(span, low, high)]
        return IntervalSet(tuple(kept))


NO_TIME = IntervalSet()
"""Not a millisecond."""


def _cut(span: Span, low: int, high: int) -> tuple[Span, ...]:
    if high < low or high < span.first or span.last < low:
        return (span,)
    sides = Span(span.first, low - 1), Span(high + 1, span.last)
    return tuple(side for side in sides if side.first <= side.last)


def _first_of(span: Span) -> int:
    return span.first


def _last_of(span: Span) -> int:
    return span.last

"""Every answer of a continuum is the one that a list of all its milliseconds gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.times import EpochNanos
from snaploom.planning.calendar import FIRST_INSTANT, LAST_INSTANT
from snaploom.planning.continuum import Continuum, ReversedInterval, Span

MILLI = 1_000_000
moments = st.integers(-12 * MILLI, 42 * MILLI) | st.integers(-12, 42).map(lambda ms: ms * MILLI)
intervals = st.lists(
    st.tuples(st.integers(-10, 40), st.integers(0, 8)).map(lambda pair: (pair[0], sum(pair))),
    max_size=6,
)


def listed(given_intervals: list[tuple[int, int]]) -> list[int]:
    """Nanoseconds of every millisecond, one by one."""
    millis = {ms for first, last in given_intervals for ms in range(first, last + 1)}
    return [ms * MILLI for ms in sorted(millis)]


@given(intervals)
def test_spans_are_apart_and_hold_the_union(pairs: list[tuple[int, int]]) -> None:
    spans = Continuum.of(pairs).spans
    assert all(a.last + 1 < b.first for a, b in zip(spans, spans[1:], strict=False))
    assert listed([(span.first, span.last) for span in spans]) == listed(pairs)


@given(intervals, moments, moments)
def test_newest_and_oldest_are_those_of_all_milliseconds(
    pairs: list[tuple[int, int]], first: int, last: int
) -> None:
    inside = [time for time in listed(pairs) if first <= time <= last]
    continuum = Continuum.of(pairs)
    assert continuum.newest(first, last) == max(inside, default=None)
    assert continuum.oldest(first, last) == min(inside, default=None)


@given(intervals, st.lists(st.tuples(moments, moments), max_size=3))
def test_what_is_cut_out_is_half_open(
    pairs: list[tuple[int, int]], ranges: list[tuple[int, int]]
) -> None:
    left = [time for time in listed(pairs) if not any(start <= time < end for start, end in ranges)]
    found = Continuum.of(pairs).without(ranges)
    assert listed([(span.first, span.last) for span in found.spans]) == left


def test_for_ever_ends_with_the_calendar() -> None:
    forever = Continuum.of([(-(2**63), 2**63 - 1)])
    oldest = forever.oldest(FIRST_INSTANT, LAST_INSTANT)
    newest = forever.newest(FIRST_INSTANT, LAST_INSTANT)
    assert oldest == FIRST_INSTANT
    assert newest == EpochNanos(LAST_INSTANT // MILLI * MILLI)
    assert Continuum.of([(2**62, 2**63 - 1)]) == Continuum()


def test_an_interval_that_ends_before_it_begins_is_refused() -> None:
    assert Continuum.of([(5, 5), (6, 7)]).spans == (Span(5, 7),)
    with pytest.raises(ReversedInterval):
        Continuum.of([(5, 4)])

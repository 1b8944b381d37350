"""Every answer of an interval set is the one that a list of all its milliseconds gives."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples

from snaploom.models.common import EpochNanos, Preference, TimeOffset, parse_instant
from snaploom.models.outputdataset import ChildSnapshot
from snaploom.plan.intervals import (
    CronIntervals,
    Intervals,
    IntervalSet,
    IntervalSettings,
    ReversedInterval,
    SourceSnapshots,
    Span,
    TooManyCandidates,
    root_candidates,
)
from snaploom.plan.steps import choose
from snaploom.plan.times import FIRST_INSTANT, LAST_INSTANT, CronTicks, length_of

MILLI = 1_000_000
START = parse_instant("2020-01-01T00:00:00Z")
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
    spans = IntervalSet.of(pairs).spans
    assert all(a.last + 1 < b.first for a, b in pairwise(spans))
    assert listed([(span.first, span.last) for span in spans]) == listed(pairs)


@given(intervals, moments, moments)
def test_newest_and_oldest_are_those_of_all_milliseconds(
    pairs: list[tuple[int, int]], first: int, last: int
) -> None:
    inside = [time for time in listed(pairs) if first <= time <= last]
    intervalset = IntervalSet.of(pairs)
    assert intervalset.newest(first, last) == max(inside, default=None)
    assert intervalset.oldest(first, last) == min(inside, default=None)


@given(intervals, st.lists(st.tuples(moments, moments), max_size=3))
def test_what_is_cut_out_is_half_open(
    pairs: list[tuple[int, int]], ranges: list[tuple[int, int]]
) -> None:
    left = [time for time in listed(pairs) if not any(start <= time < end for start, end in ranges)]
    found = IntervalSet.of(pairs).without(ranges)
    assert listed([(span.first, span.last) for span in found.spans]) == left


def test_for_ever_ends_with_the_calendar() -> None:
    forever = IntervalSet.of([(-(2**63), 2**63 - 1)])
    oldest = forever.oldest(FIRST_INSTANT, LAST_INSTANT)
    newest = forever.newest(FIRST_INSTANT, LAST_INSTANT)
    assert oldest == FIRST_INSTANT
    assert newest == EpochNanos(LAST_INSTANT // MILLI * MILLI)
    assert IntervalSet.of([(2**62, 2**63 - 1)]) == IntervalSet()


def test_an_interval_that_ends_before_it_begins_is_refused() -> None:
    assert IntervalSet.of([(5, 5), (6, 7)]).spans == (Span(5, 7),)
    with pytest.raises(ReversedInterval):
        IntervalSet.of([(5, 4)])


MINUTELY = CronIntervals(START, CronTicks("*/2 * * * *", "UTC"), TimeOffset(nano=7 * MILLI))
TINY = [
    Intervals(START, length_of(TimeOffset(nano=nanos)), "UTC")
    for nanos in (5 * MILLI, 7_500_000, 100 * MILLI)
]


@given(
    st.sampled_from([MINUTELY, *TINY]),
    st.lists(st.tuples(st.sampled_from([-8, 0, 25, 119_995]), st.integers(0, 30)), max_size=4),
    st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 20)), max_size=2),
    st.sampled_from(Preference),
    st.booleans(),
    st.data(),
)
@settings(max_examples=examples(150))
def test_candidates_of_an_interval_set_are_those_of_all_its_milliseconds(
    intervals: Intervals | CronIntervals,
    lengths: list[tuple[int, int]],
    excluded: list[tuple[int, int]],
    preference: Preference,
    only_closed: bool,
    data: st.DataObject,
) -> None:
    start = START // MILLI
    pairs = [(start + first, start + first + length) for first, length in lengths]
    millis = SourceSnapshots.of(map(EpochNanos, listed(pairs)))
    intervalset = SourceSnapshots(intervalset=IntervalSet.of(pairs))
    now = EpochNanos(START + data.draw(st.integers(0, 130_000) | st.integers(0, 60)) * MILLI + 1)
    taken = [time for time in millis.times if data.draw(st.integers(0, 9)) == 0]
    left_out = tuple(
        (EpochNanos(START + first * MILLI), EpochNanos(START + (first + length) * MILLI))
        for first, length in excluded
    )
    age = TimeOffset(nano=data.draw(st.sampled_from([0, 20 * MILLI, 119_990 * MILLI])))
    wanted = IntervalSettings(intervals, preference, only_closed, age, left_out)
    assert root_candidates(wanted, intervalset, taken, now) == root_candidates(
        wanted, millis, taken, now
    )


@given(intervals, moments, st.integers(0, 9), st.integers(0, 9), st.sampled_from(Preference))
def test_a_child_is_taken_as_from_a_list_of_all_milliseconds(
    pairs: list[tuple[int, int]], time: int, before: int, after: int, preference: Preference
) -> None:
    rules = ChildSnapshot(
        preference=preference,
        time_before=TimeOffset(nano=before * MILLI),
        time_after=TimeOffset(nano=after * MILLI + 1),
    )
    asked = EpochNanos(time), EpochNanos(0), "UTC"
    millis = SourceSnapshots.of(map(EpochNanos, listed(pairs)))
    intervalset = SourceSnapshots(intervalset=IntervalSet.of(pairs))
    assert choose(rules, intervalset, *asked) == choose(rules, millis, *asked)
    assert intervalset.is_empty == millis.is_empty
    assert intervalset.latest(EpochNanos(time)) == millis.latest(EpochNanos(time))


def test_endless_tiny_intervals_end_in_an_error() -> None:
    forever = SourceSnapshots(intervalset=IntervalSet.of([(-(2**62), 2**62)]))
    tiny = IntervalSettings(Intervals(START, length_of(TimeOffset(nano=1)), "UTC"))
    with (
        patch("snaploom.plan.intervals.MOST_CANDIDATES", 100),
        pytest.raises(TooManyCandidates, match="more than 100 intervals"),
    ):
        root_candidates(tiny, forever, [], EpochNanos(START + MILLI))

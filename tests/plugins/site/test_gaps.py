"""Gaps against an oracle that looks at every interval."""

from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.common import EpochNanos, TimeOffset
from snaploom.plan.intervals import (
    MOST_COUNTED,
    CronIntervals,
    Intervals,
    IntervalSettings,
    gaps_of,
)
from snaploom.plan.times import CalendarLength, CronTicks

HOUR = 3_600 * 10**9
START = EpochNanos(1_704_067_200 * 10**9)
HOURLY = Intervals(START, CalendarLength(0, 0, 0, 0, HOUR), "UTC")


def hour(number: int) -> EpochNanos:
    return EpochNanos(START + number * HOUR)


@given(
    st.sets(st.integers(0, 60), max_size=20),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=3),
)
def test_intervals_of_gaps_are_those_between_that_have_none(there, left_out):
    excluded = tuple((hour(first), hour(first + count)) for first, count in left_out)
    gaps = gaps_of(IntervalSettings(HOURLY, excluded=excluded), map(hour, there))
    missing = [
        number
        for number in range(min(there, default=0), max(there, default=0))
        if number not in there
        and not any(first <= number < first + count for first, count in left_out)
    ]
    shown = [n for gap in gaps for n in range(*((t - START) // HOUR for t in (gap.start, gap.end)))]
    assert shown == missing
    assert sum(gap.intervals for gap in gaps) == len(missing)


def test_time_between_ticks_is_no_gap() -> None:
    nights = CronIntervals(START, CronTicks("0 22 * * *", "UTC"), TimeOffset(hour=2))
    gaps = gaps_of(IntervalSettings(nights), [hour(22), hour(23 + 24), hour(22 + 4 * 24)])
    assert [(gap.start, gap.end, gap.intervals) for gap in gaps] == [
        (hour(24 * 2), hour(22 + 4 * 24), 2)
    ]


def test_long_gap_of_ticks_is_counted_up_to_a_bound() -> None:
    minutes = CronIntervals(START, CronTicks("* * * * *", "UTC"), TimeOffset(minute=1))
    (gap,) = gaps_of(IntervalSettings(minutes), [hour(0), hour(10_000)])
    assert (gap.intervals, gap.is_bounded) == (MOST_COUNTED, True)

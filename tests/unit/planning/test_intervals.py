from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from whenever import PlainDateTime

from snaploom.models.asof import ChildSnapshot
from snaploom.models.common import EpochNanos, Preference, TimeOffset, format_instant, parse_instant
from snaploom.models.outputdataset import SnapshotFilter
from snaploom.models.report import SnapshotReason
from snaploom.plan.intervals import (
    NEVER,
    READ_TIME,
    CronIntervals,
    Interval,
    Intervals,
    IntervalSet,
    IntervalSettings,
    ReversedInterval,
    RootCandidate,
    SourceSnapshots,
    Span,
    TooManyCandidates,
    root_candidates,
    settings_of,
)
from snaploom.plan.steps import choose
from snaploom.plan.times import FIRST_INSTANT, LAST_INSTANT, CronTicks, length_of, local_instant

HOUR = 3_600_000_000_000
DAY = 24 * HOUR
START = parse_instant("2020-01-01T00:00:00Z")
DAILY = Intervals(START, length_of(TimeOffset(day=1)), "UTC")


def day(number: float) -> EpochNanos:
    return EpochNanos(START + int(number * DAY))


def times(*days: float) -> SourceSnapshots:
    return SourceSnapshots.of(day(number) for number in days)


def reasons(candidates: tuple[RootCandidate, ...]) -> list[tuple[float, SnapshotReason]]:
    return [((c.time - START) / DAY, c.reason) for c in candidates]


def test_month_ends_are_not_worn_down() -> None:
    start = local_instant(PlainDateTime(2020, 1, 31), "UTC")
    monthly = Intervals(start, length_of(TimeOffset(month=1)), "UTC")
    assert [format_instant(monthly.boundary(i))[:10] for i in range(4)] == [
        "2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30",
    ]  # fmt: skip


def test_a_day_that_a_zone_skipped_is_an_empty_interval() -> None:
    start = local_instant(PlainDateTime(2011, 12, 29, 10), "Pacific/Apia")
    daily = Intervals(start, length_of(TimeOffset(day=1)), "Pacific/Apia")
    assert daily.boundary(1) == daily.boundary(2) > daily.boundary(0)
    found = daily.containing(daily.boundary(1))
    assert found.index == 2


def test_a_boundary_belongs_to_the_later_interval() -> None:
    found = DAILY.containing(day(3))
    assert (found.index, found.start) == (3, day(3))
    assert day(3) in found
    assert day(4) not in found


def test_an_interval_that_outlasts_the_calendar_never_ends() -> None:
    forever = Intervals(START, length_of(TimeOffset(year=9000)), "UTC")
    found = forever.containing(day(5))
    assert found.end == NEVER


def test_tiny_intervals_are_found_without_walking() -> None:
    nanos = Intervals(START, length_of(TimeOffset(nano=1)), "UTC")
    found = nanos.containing(day(10_000))
    assert found.index == 10_000 * DAY


@pytest.mark.parametrize(
    ("preference", "expected"), [(Preference.NEWEST, 1.5), (Preference.OLDEST, 1.0)]
)
def test_the_preference_decides_within_an_interval(preference: Preference, expected: float) -> None:
    settings = IntervalSettings(DAILY, preference)
    [candidate] = root_candidates(settings, times(1, 1.25, 1.5), [], day(3))
    assert candidate.time == day(expected)


def test_the_future_is_no_candidate_but_now_is() -> None:
    found = root_candidates(IntervalSettings(DAILY), times(1, 2, 2.1), [], day(2))
    assert reasons(found) == [(1, SnapshotReason.NEW_SNAPSHOT), (2, SnapshotReason.NEW_SNAPSHOT)]
    assert [candidate.is_open for candidate in found] == [False, True]


def test_intervals_with_a_published_or_tombstoned_snapshot_are_done() -> None:
    found = root_candidates(IntervalSettings(DAILY), times(1, 2, 3), [day(2.9)], day(9))
    assert [candidate.time for candidate in found] == [day(1), day(3)]


def test_intervals_that_ended_before_the_horizon_are_not_looked_at() -> None:
    settings = IntervalSettings(DAILY, max_age=TimeOffset(hour=36))
    # The horizon is day 3.5: interval 3 is still partly within reach.
    found = root_candidates(settings, times(1, 2, 3, 4), [], day(5))
    assert [candidate.time for candidate in found] == [day(3), day(4)]


def test_open_intervals_wait_when_only_closed_ones_count() -> None:
    settings = IntervalSettings(DAILY, only_closed=True)
    found = root_candidates(settings, times(1, 2), [], day(2.5))
    assert reasons(found) == [(1, SnapshotReason.NEW_SNAPSHOT), (2, SnapshotReason.INTERVAL_OPEN)]
    # An interval is closed from its very end.
    assert root_candidates(settings, times(2), [], day(3))[0].reason == "NEW_SNAPSHOT"


def test_excluded_times_are_not_chosen_and_empty_intervals_have_a_reason() -> None:
    settings = IntervalSettings(DAILY, excluded=((day(1.5), day(3)),))
    found = root_candidates(settings, times(1.4, 1.6, 2.5, 3), [], day(9))
    assert reasons(found) == [
        (1.4, SnapshotReason.NEW_SNAPSHOT),
        (2.5, SnapshotReason.INTERVAL_EXCLUDED),
        (3, SnapshotReason.NEW_SNAPSHOT),
    ]


def test_a_root_read_as_it_is_has_one_candidate_now() -> None:
    [candidate] = root_candidates(IntervalSettings(DAILY), READ_TIME, [], day(4.5))
    assert (candidate.time, candidate.interval.index) == (day(4.5), 4)
    assert root_candidates(IntervalSettings(DAILY), READ_TIME, [day(4.1)], day(4.5)) == ()


NIGHTLESS: dict[str, Any] = {
    "schedule": "0 6-23 * * *",
    "timeZone": "Australia/Melbourne",
    "startDate": "2020-01-01T00:00:00Z",
    "length": {"hour": 1},
}


def hour(text: str) -> EpochNanos:
    return parse_instant(f"2020-01-02T{text}+11:00")


def cron_candidates(*clock: str, now: str = "23:59:00", **changes: object) -> list[str]:
    settings = settings_of(SnapshotFilter.parse({"fromCron": NIGHTLESS | changes}))
    offered = SourceSnapshots.of(hour(text) for text in clock)
    found = root_candidates(settings, offered, [hour("09:59:00")], hour(now))
    return [f"{format_instant(c.time)[11:16]} {c.reason.value}" for c in found]


def test_cron_takes_one_snapshot_a_tick_and_none_at_night() -> None:
    day_and_night = ("00:10:00", "05:59:59", "06:00:00", "06:30:00", "09:10:00", "23:30:00")
    assert cron_candidates(*day_and_night) == ["19:30 NEW_SNAPSHOT", "12:30 NEW_SNAPSHOT"]
    assert cron_candidates("06:00:00", "06:59:59", "07:00:00", preference="OLDEST") == [
        "19:00 NEW_SNAPSHOT",
        "20:00 NEW_SNAPSHOT",
    ]


def test_cron_intervals_honour_what_the_others_honour() -> None:
    clock = ("06:30:00", "08:10:00", "12:30:00")
    excluded = [{"from": "2020-01-02T08:00:00+11:00", "to": "2020-01-02T09:00:00+11:00"}]
    assert cron_candidates(*clock, excludeIntervals=excluded, maxSnapshotAge={"hour": 5}) == []
    assert cron_candidates(
        *clock, now="12:40:00", excludeIntervals=excluded, maxSnapshotAge={"hour": 5},
        onlyClosedIntervals=True,
    ) == ["21:10 INTERVAL_EXCLUDED", "01:30 INTERVAL_OPEN"]  # fmt: skip


def test_an_interval_by_cron_ends_at_the_next_tick_at_the_latest() -> None:
    settings = settings_of(SnapshotFilter.parse({"fromCron": NIGHTLESS | {"length": {"hour": 3}}}))
    found = settings.intervals.containing(hour("22:30:00"))
    assert found == Interval(found.index if found else 0, hour("22:00:00"), hour("23:00:00"))
    night = settings.intervals.containing(EpochNanos(hour("23:00:00") + 2 * HOUR))
    assert night.end - night.start == 3 * HOUR


def test_settings_resolve_the_start_in_its_zone() -> None:
    start = {"year": 2018, "month": 11, "day": 4, "hour": 0, "minute": 0, "second": 0, "nano": 0}
    declared: dict[str, Any] = {
        "intervalStartDate": start | {"timezone": "America/Sao_Paulo"},
        "intervalLength": {"day": 1},
        "excludeIntervals": [{"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00+01:00"}],
    }
    settings = settings_of(SnapshotFilter.parse({"fromInterval": declared}))
    assert format_instant(settings.intervals.start) == "2018-11-04T03:00:00Z"
    assert settings.excluded == ((START, EpochNanos(START + 23 * HOUR)),)


ZONES = ["UTC", "Pacific/Apia", "Australia/Lord_Howe", "America/Sao_Paulo"]
LENGTHS = [
    TimeOffset(hour=6), TimeOffset(day=1), TimeOffset(week=1, hour=1), TimeOffset(month=1),
    TimeOffset(month=1, day=3), TimeOffset(day=2, minute=50),
]  # fmt: skip


@st.composite
def interval_cases(draw: st.DrawFn) -> tuple[Intervals, list[EpochNanos]]:
    zone = draw(st.sampled_from(ZONES))
    local = draw(st.sampled_from([PlainDateTime(2011, 12, 27, 2, 30), PlainDateTime(2018, 10, 30)]))
    start = local_instant(local, zone)
    found = Intervals(start, length_of(draw(st.sampled_from(LENGTHS))), zone)
    hours = draw(st.lists(st.integers(-50, 24 * 60), max_size=12, unique=True))
    edges = [found.boundary(i) for i in draw(st.lists(st.integers(0, 20), max_size=4))]
    moments = [EpochNanos(start + hour * HOUR) for hour in hours]
    return found, sorted({*moments, *edges})


@given(interval_cases())
def test_intervals_found_by_search_are_those_found_by_walking(case):
    intervals, instants = case
    boundaries = [intervals.boundary(i) for i in range(260)]
    assert all(first <= second for first, second in pairwise(boundaries))
    walked = []
    for instant in instants:
        below = [i for i, boundary in enumerate(boundaries) if boundary <= instant]
        if below:
            walked.append((instant, max(below)))
    assert [(t, interval.index) for t, interval in intervals.of_each(instants)] == walked


@given(
    interval_cases(), st.integers(0, 24 * 40), st.sampled_from(Preference), st.booleans(), st.data()
)
def test_candidates_agree_with_walking_every_interval(case, age, preference, only_closed, data):
    intervals, instants = case
    taken = [t for t in instants if data.draw(st.integers(0, 4)) == 0]
    now = EpochNanos(intervals.start + data.draw(st.integers(0, 24 * 60)) * HOUR)
    settings = IntervalSettings(intervals, preference, only_closed, TimeOffset(hour=age or 9000))
    expected = []
    for index in range(260):
        first, last = intervals.boundary(index), intervals.boundary(index + 1)
        inside = [t for t in instants if first <= t < last and t <= now]
        done = any(first <= t < last for t in taken)
        if inside and not done and last > now - (age or 9000) * HOUR:
            time = max(inside) if preference is Preference.NEWEST else min(inside)
            waits = only_closed and now < last
            expected.append((time, index, "INTERVAL_OPEN" if waits else "NEW_SNAPSHOT"))
    found = root_candidates(settings, SourceSnapshots.of(instants), taken, now)
    assert [(c.time, c.interval.index, c.reason.value) for c in found] == expected


MILLI = 1_000_000
moments = st.integers(-12 * MILLI, 42 * MILLI) | st.integers(-12, 42).map(lambda ms: ms * MILLI)
intervals = st.lists(
    st.tuples(st.integers(-10, 40), st.integers(0, 8)).map(lambda pair: (pair[0], sum(pair))),
    max_size=6,
)


def listed(given_intervals: list[tuple[int, int]]) -> list[int]:
    millis = {ms for first, last in given_intervals for ms in range(first, last + 1)}
    return [ms * MILLI for ms in sorted(millis)]


@given(intervals)
def test_spans_are_apart_and_hold_the_union(pairs: list[tuple[int, int]]) -> None:
    spans = IntervalSet.of(pairs).spans
    assert all(a.last + 1 < b.first for a, b in pairwise(spans))
    assert listed([(span.first, span.last) for span in spans]) == listed(pairs)


@given(intervals, moments, moments)
def test_newest_and_oldest_are_those_of_all_milliseconds(pairs, first, last):
    inside = [time for time in listed(pairs) if first <= time <= last]
    intervalset = IntervalSet.of(pairs)
    assert intervalset.newest(first, last) == max(inside, default=None)
    assert intervalset.oldest(first, last) == min(inside, default=None)


@given(intervals, st.lists(st.tuples(moments, moments), max_size=3))
def test_what_is_cut_out_is_half_open(pairs, ranges):
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

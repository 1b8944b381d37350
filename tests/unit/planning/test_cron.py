"""Ticks of cron against a clock that is watched minute by minute."""

import csv
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from whenever import PlainDateTime

from snaploom.models.common import EpochNanos, TimeOffset, format_instant, parse_instant
from snaploom.plan.intervals import NEVER, CronIntervals
from snaploom.plan.times import (
    FIRST_INSTANT,
    LAST_INSTANT,
    CalendarLength,
    CronTicks,
    OutOfCalendar,
    advance,
    local_instant,
    minus,
    minus_bounded,
    plus,
    plus_bounded,
    times,
)

MINUTE = 60_000_000_000
EPOCH = datetime(1970, 1, 1)

CHANGES = {
    "America/New_York": ("2020-03-08", "2020-11-01"),
    "Australia/Lord_Howe": ("2020-04-05", "2020-10-04"),
    "America/Sao_Paulo": ("2018-02-18", "2018-11-04"),
    "Pacific/Apia": ("2011-12-30", "2012-04-01"),
    "Africa/Casablanca": ("2020-04-19", "2020-05-31"),
    "UTC": ("2020-02-29", "2020-03-01"),
}
"""Days on which clocks change: by an hour, by half an hour, at midnight, by a whole day."""
SCHEDULES = (
    "* * * * *", "*/30 2 * * *", "30 2 * * *", "0,30 1-3 * * *", "15 */2 * * *", "0 0 * * *",
    "59 23 * * 6,7", "0 0-23 * * *", "0 6-23 * * *", "45 1 1-7 * SUN", "*/20 0 30 12 *",
    "5 4 L * *",
)  # fmt: skip


class Clock:
    """Everything that a zone's clock shows in the days around a change, minute by minute."""

    def __init__(self, zone: str, day: str) -> None:
        middle = datetime.fromisoformat(day)
        self.zone = ZoneInfo(zone)
        self.first, self.last = middle - timedelta(days=4), middle + timedelta(days=5)
        self.shown: dict[datetime, list[EpochNanos]] = {}
        for moment in minutes(self.first - timedelta(days=1), self.last + timedelta(days=1)):
            local = moment.replace(tzinfo=UTC).astimezone(self.zone).replace(tzinfo=None)
            instant = EpochNanos(int((moment - EPOCH).total_seconds()) * 10**9)
            self.shown.setdefault(local, []).append(instant)

    def ticks(self, schedule: str) -> list[EpochNanos]:
        minute, hour, *_ = schedule.split()
        found: set[EpochNanos] = set()
        if minute.startswith("*") or hour.startswith("*"):
            due = (instants for time, instants in self.shown.items() if matches(schedule, time))
            found.update(chain.from_iterable(due))
        else:
            for time in minutes(self.first, self.last):
                if matches(schedule, time):
                    later = time
                    while later not in self.shown:
                        later += timedelta(minutes=1)
                    found.add(self.shown[later][0])
        return sorted(found)


def minutes(first: datetime, last: datetime) -> Iterator[datetime]:
    while first < last:
        yield first
        first += timedelta(minutes=1)


def matches(schedule: str, time: datetime) -> bool:
    minute, hour, day, month, weekday = schedule.split()
    return (
        time.minute in numbers(minute, 0, 59)
        and time.hour in numbers(hour, 0, 23)
        and time.month in numbers(month, 1, 12)
        and is_due_on(day, weekday, time.date())
    )


@cache
def is_due_on(day: str, weekday: str, date: date) -> bool:
    is_last = (date + timedelta(days=1)).day == 1
    of_month = is_last if day == "L" else date.day in numbers(day, 1, 31)
    named = weekday.replace("SUN", "0").replace("7", "0")
    of_week = date.isoweekday() % 7 in numbers(named, 0, 6)
    is_both = "*" in (day[0], weekday[0])
    return of_month and of_week if is_both else of_month or of_week


@cache
def numbers(text: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(found)


clock_of = cache(Clock)


@cache
def ticks_of(zone: str, day: str, schedule: str) -> list[EpochNanos]:
    return clock_of(zone, day).ticks(schedule)


days = st.sampled_from([(zone, day) for zone, days in CHANGES.items() for day in days])


@pytest.mark.slow
@given(days, st.sampled_from(SCHEDULES), st.integers(-4200, 4200), st.integers(0, MINUTE - 1))
def test_ticks_are_those_of_a_count_minute_by_minute(at, schedule, minute, nanos):
    expected = ticks_of(*at, schedule)
    instant = EpochNanos(parse_instant(f"{at[1]}T00:00:00Z") + minute * MINUTE + nanos)
    found = CronTicks(schedule, at[0])
    before = [tick for tick in expected if tick <= instant]
    after = [tick for tick in expected if tick > instant]
    if before:
        assert found.latest(instant) == before[-1]
    if after:
        assert found.following(instant) == after[0]


@pytest.mark.parametrize(
    ("side", "zone", "schedule", "at", "expected"),
    [
        ("latest", "Africa/Casablanca", "30 2 * * *", "2020-04-19T02:00", "2020-04-19T01:30"),
        ("latest", "America/Sao_Paulo", "30 23 * * *", "2018-02-18T02:00", "2018-02-18T01:30"),
        ("latest", "America/New_York", "30 1 * * *", "2020-11-01T06:00", "2020-11-01T05:30"),
        ("following", "America/New_York", "30 2 * * *", "2020-03-08T06:00", "2020-03-08T07:00"),
        ("following", "America/New_York", "30 1 * * *", "2020-11-01T05:30", "2020-11-02T06:30"),
        ("following", "America/New_York", "30 * * * *", "2020-11-01T05:30", "2020-11-01T06:30"),
        ("following", "America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", "2018-11-04T03:00"),
        ("following", "UTC", "0 0 29 2 *", "2020-03-01T00:00", "2024-02-29T00:00"),
    ],
)
def test_ticks_around_a_change_come_at_the_end_of_a_gap_and_once(
    side: str, zone: str, schedule: str, at: str, expected: str
) -> None:
    found = getattr(CronTicks(schedule, zone), side)(parse_instant(f"{at}:00Z"))
    assert format_instant(found) == f"{expected}:00Z"


@pytest.mark.slow
@given(
    days, st.sampled_from(SCHEDULES), st.integers(1, 2000),
    st.lists(st.integers(-4200, 4200), max_size=9, unique=True),
)  # fmt: skip
def test_intervals_by_cron_are_ticks_cut_at_the_next(at, schedule, length, moments):
    noon = parse_instant(f"{at[1]}T00:00:00Z")
    start = EpochNanos(noon - 3000 * MINUTE)
    ticks = [tick for tick in ticks_of(*at, schedule) if tick >= start]
    intervals = CronIntervals(start, CronTicks(schedule, at[0]), TimeOffset(minute=length))
    instants = sorted(EpochNanos(noon + minute * MINUTE) for minute in moments)
    expected = []
    for instant in instants:
        begun = [tick for tick in ticks if tick <= instant]
        if begun and instant < begun[-1] + length * MINUTE:
            expected.append((instant, begun[-1]))
    assert [(t, interval.start) for t, interval in intervals.of_each(instants)] == expected
    one_by_one = [(t, intervals.containing(t)) for t in instants]
    assert [(t, found.start) for t, found in one_by_one if found] == expected


def test_ticks_end_with_the_calendar() -> None:
    ticks = CronTicks("0 0 1 1 *", "UTC")
    assert ticks.following(parse_instant("9999-06-01T00:00:00Z")) is None
    assert ticks.latest(parse_instant("0001-01-01T00:00:00Z")) is not None
    start = parse_instant("9999-01-01T00:00:00Z")
    found = CronIntervals(start, ticks, TimeOffset(year=1)).containing(start)
    assert found.end == NEVER


NEW_YORK = "America/New_York"
VECTORS = Path(__file__).parent / "vectors" / "calendar.csv"


def at(local: str, zone: str) -> EpochNanos:
    return local_instant(PlainDateTime.parse_iso(local), zone)


def vectors(*kinds: str) -> list[dict[str, str]]:
    with VECTORS.open(newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["kind"] in kinds]


def test_times_multiplies_every_part() -> None:
    offset = TimeOffset(year=1, month=2, week=3, day=4, hour=5, minute=6, second=7, nano=8)
    exact = ((5 * 60 + 6) * 60 + 7) * 1_000_000_000 + 8
    assert times(offset, 3) == CalendarLength(3, 6, 9, 12, 3 * exact)


def test_moves_agree_with_java_time() -> None:
    rows = vectors("plus", "minus")
    assert len(rows) > 2500
    wrong = []
    for row in rows:
        factor = int(row["factor"]) * (1 if row["kind"] == "plus" else -1)
        parts = (int(row[name]) for name in ("year", "month", "week", "day", "nanos"))
        moved = advance(
            EpochNanos(int(row["start"])), CalendarLength(*parts).times(factor), row["zone"]
        )
        if moved != int(row["result"]):
            wrong.append((row, moved))
    assert wrong == []


def test_local_times_agree_with_java_time() -> None:
    rows = vectors("local")
    assert len(rows) > 900
    wrong = [row for row in rows if at(row["start"], row["zone"]) != int(row["result"])]
    assert wrong == []


@pytest.mark.parametrize(
    "offset",
    [
        pytest.param(TimeOffset(year=8000), id="years"),
        pytest.param(TimeOffset(day=10**12), id="days"),
        pytest.param(TimeOffset(hour=10**12), id="hours"),
    ],
)
def test_moves_beyond_the_calendar_are_refused_or_bounded(offset: TimeOffset) -> None:
    start = parse_instant("2020-01-01T00:00:00Z")
    with pytest.raises(OutOfCalendar):
        plus(start, offset, "UTC")
    with pytest.raises(OutOfCalendar):
        minus(start, offset, "UTC")
    assert plus_bounded(start, offset, "UTC") == LAST_INSTANT
    assert minus_bounded(start, offset, "UTC") == FIRST_INSTANT

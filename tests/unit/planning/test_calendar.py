from __future__ import annotations

import csv
from pathlib import Path

import pytest
from whenever import OffsetDateTime, PlainDateTime

from snaploom.models.common import EpochNanos, TimeOffset, format_instant, parse_instant
from snaploom.plan.times import (
    FIRST_INSTANT,
    LAST_INSTANT,
    CalendarLength,
    OutOfCalendar,
    advance,
    local_instant,
    minus,
    minus_bounded,
    plus,
    plus_bounded,
    times,
)

NEW_YORK = "America/New_York"
VECTORS = Path(__file__).parent / "vectors" / "calendar.csv"


def at(local: str, zone: str) -> EpochNanos:
    return local_instant(PlainDateTime.parse_iso(local), zone)


def vectors(*kinds: str) -> list[dict[str, str]]:
    with VECTORS.open(newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["kind"] in kinds]


@pytest.mark.parametrize(
    ("zone", "start", "offset", "expected"),
    [
        pytest.param(
            NEW_YORK, "2020-03-07T02:30:00-05:00", TimeOffset(day=1),
            "2020-03-08T03:30:00-04:00", id="day into a gap",
        ),
        pytest.param(
            NEW_YORK, "2020-03-07T02:30:00-05:00", TimeOffset(day=2),
            "2020-03-09T02:30:00-04:00", id="two days over a gap",
        ),
        pytest.param(
            NEW_YORK, "2020-10-31T01:30:00-04:00", TimeOffset(day=1),
            "2020-11-01T01:30:00-04:00", id="day into an overlap keeps the offset",
        ),
        pytest.param(
            NEW_YORK, "2020-03-07T12:00:00-05:00", TimeOffset(hour=24),
            "2020-03-08T13:00:00-04:00", id="24 hours are exact",
        ),
        pytest.param(
            NEW_YORK, "2020-03-07T12:00:00-05:00", TimeOffset(day=1),
            "2020-03-08T12:00:00-04:00", id="a day is local",
        ),
        pytest.param(
            "UTC", "2020-01-31T00:00:00Z", TimeOffset(month=2),
            "2020-03-31T00:00:00Z", id="two months at once",
        ),
    ],
)  # fmt: skip
def test_plus_gives_the_golden_vectors(
    zone: str, start: str, offset: TimeOffset, expected: str
) -> None:
    assert plus(parse_instant(start), offset, zone) == parse_instant(expected)


def test_plus_one_month_twice_is_not_two_months() -> None:
    once = plus(parse_instant("2020-01-31T00:00:00Z"), TimeOffset(month=1), "UTC")
    assert format_instant(plus(once, TimeOffset(month=1), "UTC")) == "2020-03-29T00:00:00Z"


def test_plus_one_day_twice_stays_moved_after_a_gap() -> None:
    once = plus(at("2020-03-07T02:30", NEW_YORK), TimeOffset(day=1), NEW_YORK)
    assert plus(once, TimeOffset(day=1), NEW_YORK) == at("2020-03-09T03:30", NEW_YORK)


@pytest.mark.parametrize(
    ("zone", "start", "offset", "expected"),
    [
        pytest.param(
            NEW_YORK, "2020-11-02T01:30:00-05:00", TimeOffset(day=1),
            "2020-11-01T01:30:00-05:00", id="back into an overlap keeps the offset",
        ),
        pytest.param(
            "UTC", "2020-03-31T00:00:00Z", TimeOffset(month=1, day=1),
            "2020-02-28T00:00:00Z", id="month before day",
        ),
    ],
)  # fmt: skip
def test_minus_gives_the_golden_vectors(
    zone: str, start: str, offset: TimeOffset, expected: str
) -> None:
    assert minus(parse_instant(start), offset, zone) == parse_instant(expected)


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
    ("local", "zone", "expected"),
    [
        pytest.param(
            "2018-11-04T00:00", "America/Sao_Paulo", "2018-11-04T01:00:00-02:00",
            id="a missing midnight is the start of the day",
        ),
        pytest.param(
            "2020-11-01T01:30", NEW_YORK, "2020-11-01T01:30:00-04:00",
            id="the earlier of two",
        ),
        pytest.param(
            "2011-12-30T00:00", "Pacific/Apia", "2011-12-31T00:00:00+14:00",
            id="a missing day moves by its length",
        ),
    ],
)  # fmt: skip
def test_local_instant_resolves_gaps_and_overlaps(local: str, zone: str, expected: str) -> None:
    wanted = OffsetDateTime.parse_iso(expected).to_instant().timestamp(unit="nanosecond")
    assert at(local, zone) == wanted


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

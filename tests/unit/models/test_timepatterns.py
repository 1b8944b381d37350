"""Values of a pattern are periods of the calendar, by Python's own as the oracle."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from snaploom.models.common import Granularity, PatternInvalid, format_instant, parse_pattern
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.sources.prefix import NotAnInstant, instant_of

DAYS = st.dates(date(1000, 1, 1), date(9998, 12, 31))


@given(DAYS, st.sampled_from(["yyyyMMdd", "dd.MM.yyyy", "yyyy/MM/dd", "'d'yyyy-MM-dd"]))
def test_a_day_is_read_as_it_was_written(day: date, pattern: str) -> None:
    forms = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "'d'": "d"}
    form = pattern
    for unit, code in forms.items():
        form = form.replace(unit, code)
    start = parse_pattern(pattern).start(day.strftime(form))
    assert start.format_iso() == f"{day.isoformat()}T00:00:00"
    assert parse_pattern(pattern).granularity is Granularity.DAY


@given(DAYS)
def test_weeks_and_days_of_the_year_are_those_of_the_calendar(day: date) -> None:
    week = day.isocalendar()
    monday = date.fromisocalendar(week.year, week.week, 1)
    written = f"{week.year:04d}-W{week.week:02d}"
    found = parse_pattern("YYYY-'W'ww").start(written)
    assert found.format_iso().startswith(monday.isoformat())
    found = parse_pattern("yyyyDDD").start(day.strftime("%Y%j"))
    assert found.format_iso().startswith(day.isoformat())


@pytest.mark.parametrize(
    ("pattern", "granularity"),
    [("yyyy", "year"), ("yyyyMM", "month"), ("YYYYww", "week"), ("yyyyMMddHH", "hour"),
     ("HH:mm dd.MM.yyyy", "minute"), ("yyyyMMdd'T'HHmmss", "second")],
)  # fmt: skip
def test_the_smallest_unit_is_the_granularity(pattern: str, granularity: str) -> None:
    assert parse_pattern(pattern).granularity == granularity


@pytest.mark.parametrize(
    "pattern",
    ["MM", "yyyydd", "YYYYMM", "yyyy-MM-DD", "yyyyMMHH", "yy", "yyyy'x", "yyyyMMddmm", "yyyyyyyy",
     "yyyyMMdd HH yyyy", "-", "yyyy''' MM"],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_by_the_model(pattern: str) -> None:
    with pytest.raises(PatternInvalid):
        parse_pattern(pattern)
    raw = {"fieldName": "day", "timeFormat": "PATTERN", "timePattern": pattern}
    with pytest.raises(ValidationError, match="this is no pattern of a date"):
        FromFieldValue.parse(raw)


@given(st.text(max_size=20))
def test_no_pattern_breaks_the_parser(text: str) -> None:
    try:
        parsed = parse_pattern(text)
    except PatternInvalid:
        return
    with pytest.raises(ValueError, match=r".*"):
        parsed.start("x" * (parsed.width + 1))


def field(pattern: str, zone: str = "UTC") -> FromFieldValue:
    return FromFieldValue(
        field_name="day",
        time_format=TimeFormat.PATTERN,
        time_pattern=pattern,
        default_timezone=zone,
    )


@pytest.mark.parametrize(
    ("value", "settings", "instant"),
    [
        ("2024-05", field("yyyy-MM"), "2024-05-01T00:00:00Z"),
        (20240501, field("yyyyMMdd", "Australia/Melbourne"), "2024-04-30T14:00:00Z"),
        (1052024, field("ddMMyyyy"), "2024-05-01T00:00:00Z"),
        ("2024-W01", field("YYYY-'W'ww"), "2024-01-01T00:00:00Z"),
        ("2024033102", field("yyyyMMddHH", "Europe/Berlin"), "2024-03-31T01:00:00Z"),
    ],
)
def test_a_period_begins_at_its_first_moment_in_its_zone(
    value: str | int, settings: FromFieldValue, instant: str
) -> None:
    assert format_instant(instant_of(value, settings)) == instant


@pytest.mark.parametrize(
    ("value", "pattern"),
    [("20240231", "yyyyMMdd"), ("2024-5", "yyyy-MM"), ("2024-W54", "YYYY-'W'ww"),
     ("2023366", "yyyyDDD"), (-20240501, "yyyyMMdd"), ("2024-05-01", "yyyy-MM")],
)  # fmt: skip
def test_what_is_not_of_the_pattern_is_no_instant(value: str | int, pattern: str) -> None:
    with pytest.raises(NotAnInstant):
        instant_of(value, field(pattern))

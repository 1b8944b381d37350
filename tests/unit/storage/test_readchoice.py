"""What `at` and `between` of a read take, and how anything else is refused."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.models.common import format_instant
from snaploom.output.versions import ReadChoice, instant_of

BERLIN = dt.datetime(2024, 1, 31, tzinfo=ZoneInfo("Europe/Berlin"))
WRONG = [
    ("01.02.2024", "'01.02.2024' (str)"),
    ("", "'' (str)"),
    (5, "5 (int)"),
    (True, "True (bool)"),
    (dt.time(1), "datetime.time(1, 0) (time)"),
    (dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=1))), "9999-12-31T23:59"),
]


@pytest.mark.parametrize(
    ("time", "instant"),
    [
        ("2024-01-31T12:00:00+01:00", "2024-01-31T11:00:00Z"),
        ("2024-01-31", "2024-01-31T00:00:00Z"),
        (dt.date(2024, 1, 31), "2024-01-31T00:00:00Z"),
        (BERLIN, "2024-01-30T23:00:00Z"),
    ],
)
def test_texts_dates_and_datetimes_are_times_at_every_place(time, instant) -> None:
    assert format_instant(ReadChoice.parse(time, None).at) == instant
    both = ReadChoice.parse(None, (time, time)).between
    assert both is not None
    assert {format_instant(end) for end in both} == {instant}


@pytest.mark.parametrize(("wrong", "found"), WRONG)
def test_what_is_no_time_is_refused_with_what_was_found_and_the_forms_that_are_right(
    wrong, found
) -> None:
    for argument, at, between in (("at", wrong, None), ("between[1]", None, ("2024-01-01", wrong))):
        with pytest.raises(SnaploomError) as caught:
            ReadChoice.parse(at, between)
        assert caught.value.path == argument
        assert found in str(caught.value.found)
        assert "ISO 8601 with Z" in str(caught.value.expected)
        assert caught.value.hint


def test_time_without_a_zone_shows_the_form_that_is_right_for_utc() -> None:
    for time in ("2024-01-31T12:00:00", dt.datetime(2024, 1, 31, 12)):
        with pytest.raises(ArgumentInvalid, match="2024-01-31T12:00:00Z"):
            instant_of(time, "at")


@pytest.mark.parametrize("between", ["2024-01-01", 5, ("2024-01-01",), ("a", "b", "c")])
def test_range_that_is_no_pair_shows_a_pair(between) -> None:
    with pytest.raises(ArgumentInvalid, match="two times, the first and the last"):
        ReadChoice.parse(None, between)


def test_reversed_range_is_refused_with_both_ends() -> None:
    with pytest.raises(ArgumentInvalid, match="from 2024-02-01T00:00:00Z to 2024-01-01T00:00:00Z"):
        ReadChoice.parse(None, ("2024-02-01", dt.date(2024, 1, 1)))

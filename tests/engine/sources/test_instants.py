"""Snapshot values are instants by ISO 8601 and by the clocks of zones; datetime is the oracle."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.common import format_instant
from snaploom.models.datasource import FromFieldValue
from snaploom.sources.prefix import NotAnInstant, instant_of

ZONES = ["UTC", "Australia/Melbourne", "America/Sao_Paulo", "Asia/Kathmandu"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def settings(time_format: str, zone: str = "UTC") -> FromFieldValue:
    return FromFieldValue.parse(
        {"fieldName": "f", "timeFormat": time_format, "defaultTimezone": zone}
    )


def nanos(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND * 1000


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.sampled_from(ZONES))
def test_a_local_time_is_read_in_the_default_zone(local, zone):
    aware = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)

    assert instant_of(local.isoformat(), settings("ISO8601_DATE_TIME", zone)) == nanos(aware)


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.timezones()),
    st.sampled_from(ZONES),
)
def test_a_time_with_an_offset_ignores_the_default_zone(moment, zone):
    text = moment.astimezone(UTC).isoformat()

    assert instant_of(text, settings("ISO8601_DATE_TIME", zone)) == nanos(moment.astimezone(UTC))


@given(st.dates(), st.sampled_from(["UTC", "Asia/Kathmandu"]))
def test_a_date_is_midnight_in_the_default_zone(day, zone):
    try:
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    except OverflowError:
        with pytest.raises(NotAnInstant):
            instant_of(day.isoformat(), settings("ISO8601_DATE", zone))
        return

    assert instant_of(day.isoformat(), settings("ISO8601_DATE", zone)) == nanos(midnight)


@pytest.mark.parametrize(
    ("value", "time_format", "zone", "expected"),
    [
        ("2018-11-04", "ISO8601_DATE", "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        ("2020-04-05T02:30:00", "ISO8601_DATE_TIME", "Australia/Melbourne", "2020-04-04T15:30:00Z"),
        ("2020-10-04T02:30:00", "ISO8601_DATE_TIME", "Australia/Melbourne", "2020-10-03T16:30:00Z"),
        ("2020-01-01T00:00Z", "ISO8601_DATE_TIME", "UTC", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00.123456789+11:00", "ISO8601_DATE_TIME", "UTC",
         "2019-12-31T13:00:00.123456789Z"),
        (1577836800, "UNIX_SECONDS", "Asia/Kathmandu", "2020-01-01T00:00:00Z"),
        ("1577836800123", "UNIX_MILLISECONDS", "UTC", "2020-01-01T00:00:00.123Z"),
        ("-1", "UNIX_MILLISECONDS", "UTC", "1969-12-31T23:59:59.999Z"),
        ("+0", "UNIX_SECONDS", "UTC", "1970-01-01T00:00:00Z"),
    ],
)  # fmt: skip
def test_a_value_is_the_instant_of_the_standard(value, time_format, zone, expected):
    assert format_instant(instant_of(value, settings(time_format, zone))) == expected


@pytest.mark.parametrize(
    ("value", "time_format"),
    [
        ("", "ISO8601_DATE"),
        ("2020-02-30", "ISO8601_DATE"),
        ("2020-01-01T00:00:00Z", "ISO8601_DATE"),
        (" 2020-01-01", "ISO8601_DATE"),
        ("01/02/2020", "ISO8601_DATE"),
        (20200101, "ISO8601_DATE"),
        ("2020-01-01", "ISO8601_DATE_TIME"),
        ("2020-01-01T25:00:00Z", "ISO8601_DATE_TIME"),
        ("yesterday", "ISO8601_DATE_TIME"),
        ("1e9", "UNIX_SECONDS"),
        ("1.0", "UNIX_SECONDS"),
        ("", "UNIX_SECONDS"),
        ("٣", "UNIX_SECONDS"),
        ("9" * 5000, "UNIX_SECONDS"),
        (10**15, "UNIX_SECONDS"),
        (-(10**17), "UNIX_MILLISECONDS"),
    ],
)
def test_a_value_that_is_not_of_its_format_is_refused(value, time_format):
    with pytest.raises(NotAnInstant):
        instant_of(value, settings(time_format))

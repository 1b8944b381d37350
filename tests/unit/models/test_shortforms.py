"""Short forms are the same models as long forms, and nothing is read in two ways."""

import re
from datetime import date
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from support.declared.declarations import files, output, spoilt

from snaploom.loading.documents import read_object
from snaploom.models.common import DataType, SchemaField, TimeOffset, format_instant
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.models.outputdataset import FromInterval
from snaploom.models.shortforms import (
    LENGTH,
    LENGTH_PARTS,
    LENGTH_PATTERN,
    LOCAL_TIME_PATTERN,
    TYPE,
    TYPE_PATTERN,
    Granularity,
    PatternInvalid,
    ShortFormInvalid,
    parse_pattern,
    read_length,
    read_local_time,
    read_type,
)
from snaploom.sources.prefix import NotAnInstant, instant_of

INTERVAL = "spec.dataModel.rootDataSource.snapshotFilter.fromInterval"
UNITS = {"y": "year", "mo": "month", "w": "week", "d": "day", "h": "hour", "min": "minute",
         "s": "second", "ns": "nano"}  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(UNITS)), st.integers(0, 10**12 - 1), min_size=1))
def test_units_in_any_order_are_the_parts(parts: dict[str, int]) -> None:
    text = "".join(f"{number}{unit}" for unit, number in parts.items())
    assert read_length(text) == {UNITS[unit]: number for unit, number in parts.items()}
    assert re.fullmatch(LENGTH_PATTERN, text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("P7D", {"day": 7}),
        ("P1Y2M3W4DT5H6M7.5S", dict(zip(LENGTH_PARTS, (1, 2, 3, 4, 5, 6, 7, 500_000_000),
                                        strict=True))),
        ("PT90M", {"minute": 90}),
        ("P3M", {"month": 3}),
    ],
)  # fmt: skip
def test_iso_8601_distinguishes_months_from_minutes(text: str, parts: dict[str, int]) -> None:
    assert read_length(text) == parts
    assert re.fullmatch(LENGTH_PATTERN, text)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "7", "d", "5m", "7 days", "1d1d", "-1d", "P1DT", "1.5h", "PT1.5H", "1D"]
)
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(ShortFormInvalid):
        read_length(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("bigint", {"long": {}}),
        ("INT", {"integer": {}}),
        ("timestampNtz", {"timestampNtz": {}}),
        ("timestamp_ntz", {"timestampNtz": {}}),
        ("decimal(12, 2)", {"decimal": {"precision": 12, "scale": 2}}),
        ("decimal", {"decimal": {"precision": 10, "scale": 0}}),
        ("map<string,bigint>", {"map": {"keyType": {"string": {}}, "valueType": {"long": {}}}}),
        (
            "struct<a:int, `b c`: array<date> NOT NULL>",
            {"struct": {"fields": [
                {"name": "a", "dataType": {"integer": {}}},
                {"name": "b c", "dataType": {"array": {"elementType": {"date": {}}}},
                 "nullable": False},
            ]}},
        ),
    ],
)  # fmt: skip
def test_a_type_of_sql_is_its_long_form(text: str, form: dict[str, object]) -> None:
    assert read_type(text) == form
    assert re.fullmatch(TYPE_PATTERN, text)
    short = SchemaField.parse({"name": "x", "dataType": text})
    assert short == SchemaField.model_validate({"name": "x", "dataType": form})


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("int64", "it is called `bigint`"),
        ("varchar(20)", "it is called `string`"),
        ("money", "write a type of Spark SQL, such as `bigint`"),
        ("array<string", "close all brackets"),
        ("decimal(a)", "write decimal(PRECISION,SCALE)"),
        ("int)", "remove it"),
        ("array<" * 17 + "int" + ">" * 17, "nest fewer types"),
    ],
)
def test_what_is_no_type_gets_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(ShortFormInvalid) as caught:
        read_type(text)
    assert caught.value.hint == hint


@given(st.text("abcdeinrstuy<>(),:` 0129", max_size=60))
def test_no_text_breaks_the_reader_of_types(text: str) -> None:
    try:
        found = TypeAdapter(Annotated[DataType, TYPE]).validate_python(text)
    except ValidationError:
        return
    assert isinstance(found, DataType)
    assert re.fullmatch(TYPE_PATTERN, text.strip())


@pytest.mark.parametrize(
    ("text", "zone", "clock"),
    [
        ("2024-02-29", "UTC", (0, 0, 0, 0)),
        ("2024-02-29[Australia/Melbourne]", "Australia/Melbourne", (0, 0, 0, 0)),
        ("2024-02-29T06:30Z", "UTC", (6, 30, 0, 0)),
        ("2024-02-29 06:30:01.5[Europe/Berlin]", "Europe/Berlin", (6, 30, 1, 500_000_000)),
    ],
)
def test_a_date_begins_at_midnight_of_its_zone(text, zone, clock):
    found = read_local_time(text)
    assert (found["year"], found["month"], found["day"]) == (2024, 2, 29)
    assert tuple(found[part] for part in ("hour", "minute", "second", "nano")) == clock
    assert found["timezone"] == zone
    assert re.fullmatch(LOCAL_TIME_PATTERN, text)


@pytest.mark.parametrize(
    "text",
    ["2023-02-29", "2024-01-01+02:00", "01.02.2024", "2024-01-01Z[Europe/Berlin]", "2024-1-1"],
)
def test_a_start_that_could_be_misread_is_refused(text: str) -> None:
    (finding,) = read_object(spoilt(output(), f"{INTERVAL}.intervalStartDate", text)).findings
    assert (finding.code, finding.path) == ("SL113", f"{INTERVAL}.intervalStartDate")
    assert "2024-01-01" in finding.expected


def test_short_and_long_declarations_are_equal() -> None:
    raw = output()
    put = {"intervalStartDate": "2024-05-01", "intervalLength": "1d", "maxSnapshotAge": "P30D"}
    for field, text in put.items():
        raw = spoilt(raw, f"{INTERVAL}.{field}", text)
    read = read_object(raw)
    assert read.findings == ()
    found = read.resource.spec.data_model.root_data_source.snapshot_filter.from_interval
    assert found.max_snapshot_age == TimeOffset(day=30)
    assert FromInterval.parse(found.dump()) == found


def test_faults_inside_a_long_form_have_their_usual_place() -> None:
    (finding,) = read_object(spoilt(output(), f"{INTERVAL}.intervalLength", {"dya": 1})).findings
    assert (finding.code, finding.path) == ("SL110", f"{INTERVAL}.intervalLength.dya")
    assert finding.hint == "did you mean `day`?"


@pytest.mark.parametrize("given_value", [7, 1.5, True, ["7d"]])
def test_neither_text_nor_mapping_is_a_wrong_type(given_value: object) -> None:
    (finding,) = read_object(spoilt(output(), f"{INTERVAL}.maxSnapshotAge", given_value)).findings
    assert finding.code == "SL112"


def test_a_short_form_is_bounded() -> None:
    with pytest.raises(ValidationError, match="too long"):
        TypeAdapter(Annotated[TimeOffset, LENGTH]).validate_python("1" * 65)


def test_a_column_is_declared_in_one_word() -> None:
    fields = [{"name": "id", "dataType": "bigint"}, {"name": "at", "dataType": "timestamp_ntz"}]
    read = read_object(spoilt(files("a"), "spec.hdfsLike.schemaFields", fields))
    assert read.findings == ()


@pytest.mark.parametrize("given", ["string", {"string": {}}])
def test_plain_types_are_one_model_in_memory(given: object) -> None:
    adapter = TypeAdapter(Annotated[DataType, TYPE])
    assert adapter.validate_python(given) is adapter.validate_python(given)
    assert adapter.validate_python(given).dump() == {"string": {}}


def test_lengths_of_time_of_the_same_parts_are_one_model_and_others_are_not() -> None:
    adapter = TypeAdapter(Annotated[TimeOffset, LENGTH])
    first, second, other = (adapter.validate_python({"day": day}) for day in (1, 1, 2))
    assert first is second
    assert (first.day, other.day) == (1, 2)


def test_types_with_parts_are_not_shared() -> None:
    adapter = TypeAdapter(Annotated[DataType, TYPE])
    first, second = (
        adapter.validate_python({"array": {"elementType": "string"}}) for _ in range(2)
    )
    assert first == second
    assert first is not second


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


@given(
    st.dates(date(2000, 1, 1), date(2099, 12, 31)),
    st.sampled_from([
        ("M/d/yyyy", "%-m/%-d/%Y"), ("yyyy-M-d", "%Y-%m-%d"), ("MM-dd-yy", "%m-%d-%y"),
        ("dMMMyyyy", "%-d%b%Y"), ("MMM d, yyyy", "%B %d, %Y"), ("yyMMdd", "%y%m%d"),
    ]),
)  # fmt: skip
def test_days_of_other_orders_are_read_as_written(day: date, form: tuple[str, str]) -> None:
    parsed = parse_pattern(form[0])
    assert parsed.start(day.strftime(form[1])).format_iso() == f"{day.isoformat()}T00:00:00"
    assert parsed.has_one_width is (form[0] in ("MM-dd-yy", "yyMMdd"))


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
    ["MM", "yyyydd", "YYYYMM", "yyyy-MM-DD", "yyyyMMHH", "yyyyMd", "yyyy'x", "yyyyMMddmm",
     "yyyyyyyy", "yyyyMMdd HH yyyy", "-", "yyyy''' MM", "yy yyyy MM", "yyyy-d'1'M",
     "yyyy MMMM", "yyyy-MMM-MM"],
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
def test_a_period_begins_at_its_first_moment_in_its_zone(value, settings, instant):
    assert format_instant(instant_of(value, settings)) == instant


@pytest.mark.parametrize(
    ("value", "pattern"),
    [("20240231", "yyyyMMdd"), ("2024-5", "yyyy-MM"), ("2024-W54", "YYYY-'W'ww"),
     ("2023366", "yyyyDDD"), (-20240501, "yyyyMMdd"), ("2024-05-01", "yyyy-MM")],
)  # fmt: skip
def test_what_is_not_of_the_pattern_is_no_instant(value: str | int, pattern: str) -> None:
    with pytest.raises(NotAnInstant):
        instant_of(value, field(pattern))

"""Snapshots by a column: every type and format, nothing dropped, one pass over the column."""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf
from support.declared.sources import by_field, files, reader, rows_at, snapshot_times

from snaploom.errors import SnapshotValueInvalid, SourceSchemaInvalid
from snaploom.models.common import EpochNanos, format_instant, parse_instant

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JANUARY = "2020-01-01T00:00:00Z"
ZONE = "Australia/Melbourne"


def by_column(folder, field, time_format, **settings):
    return files("parquet", f"{folder}/*", snapshot=by_field(field, time_format, **settings))


def write(folder, values, data_type=None):
    """One row a value; `v` is the row's number."""
    column = pa.array(values, data_type)
    pq.write_table(pa.table({"v": list(range(len(values))), "at": column}), folder / "a.parquet")


def oracle(values, instant):
    expected = defaultdict(list)
    for number, value in enumerate(values):
        expected[(instant(value) - EPOCH) // timedelta(microseconds=1) * 1000].append((number,))
    return dict(expected)


def local(moment):
    return moment.replace(tzinfo=ZoneInfo(ZONE))


DAYS = [date(2020, 1, 1), date(1969, 12, 31), date(2020, 1, 1), date(2020, 4, 5)]
MOMENTS = [datetime(2020, 4, 5, 2, 30), datetime(2020, 1, 1, 0, 0, 0, 1), datetime(1960, 1, 1)]
MILLIS = [1577836800000, 1577836800001, -1, 1577836800000]
CASES = [
    ("ISO8601_DATE", [d.isoformat() for d in DAYS], pa.string(),
     lambda v: local(datetime.fromisoformat(v))),
    ("ISO8601_DATE", DAYS, pa.date32(), lambda v: local(datetime(v.year, v.month, v.day))),
    ("ISO8601_DATE_TIME", ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00",
                           "2020-01-01T00:00:00", "2020-01-01T00:00:00.000001Z"], pa.string(),
     lambda v: m if (m := datetime.fromisoformat(v)).tzinfo else local(m)),
    ("TIMESTAMP", [m.replace(tzinfo=UTC) for m in MOMENTS], pa.timestamp("us", tz="UTC"),
     lambda v: v),
    ("TIMESTAMP", MOMENTS, pa.timestamp("us"), local),
    ("TIMESTAMP", DAYS, pa.date32(), lambda v: local(datetime(v.year, v.month, v.day))),
    ("UNIX_MILLISECONDS", MILLIS, pa.int64(), lambda v: EPOCH + timedelta(milliseconds=v)),
    ("UNIX_MILLISECONDS", [Decimal(m) for m in MILLIS], pa.decimal128(20, 0),
     lambda v: EPOCH + timedelta(milliseconds=int(v))),
    ("UNIX_SECONDS", [1577836800, 0, -5], pa.int32(), lambda v: EPOCH + timedelta(seconds=v)),
    ("UNIX_SECONDS", [1, 100, -100], pa.int16(), lambda v: EPOCH + timedelta(seconds=v)),
    ("UNIX_SECONDS", [1, 100, -100], pa.int8(), lambda v: EPOCH + timedelta(seconds=v)),
]  # fmt: skip


@pytest.mark.parametrize(("time_format", "values", "data_type", "instant"), CASES)
@pytest.mark.parametrize("session_zone", ["UTC", "America/New_York"])
def test_every_type_gives_the_instants_and_rows_of_plain_python(
    spark, tmp_path, time_format, values, data_type, instant, session_zone
):
    write(tmp_path, values, data_type)
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    try:
        source = reader(spark, by_column(tmp_path, "at", time_format, defaultTimezone=ZONE))
        found = {time: rows_at(source, EpochNanos(time)) for time in snapshot_times(source)}
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert found == oracle(values, instant)


@pytest.mark.parametrize(
    ("pattern", "values", "data_type"),
    [("yyyyMMdd", [20240501, 20240502, 20240501], pa.int32()),
     ("M/d/yyyy", ["5/1/2024", "05/13/2024", "5/1/2024"], pa.string()),
     ("d MMM yy", ["1 Mai 24", "13 May 24", "1 Mai 24"], pa.string()),
     ("YYYY-'W'ww", ["2024-W18", "2024-W19", "2024-W18"], pa.string())],
)  # fmt: skip
def test_a_pattern_gives_the_first_moment_of_each_period(
    spark, tmp_path, pattern, values, data_type
):
    write(tmp_path, values, data_type)
    settings = by_column(tmp_path, "at", "PATTERN", timePattern=pattern, defaultTimezone=ZONE)
    source = reader(spark, settings)
    first, second = snapshot_times(source)

    start = "2024-04-28T14:00:00Z" if "ww" in pattern else "2024-04-30T14:00:00Z"
    assert format_instant(EpochNanos(first)) == start
    assert rows_at(source, EpochNanos(first)) == [(0,), (2,)]
    assert rows_at(source, EpochNanos(second)) == [(1,)]


def test_texts_of_one_instant_are_one_snapshot(spark, tmp_path):
    write(tmp_path, ["2020-01-01T00:00Z", "2020-01-01T11:00:00+11:00", "20200101T000000Z"])
    source = reader(spark, by_column(tmp_path, "at", "ISO8601_DATE_TIME"))

    assert [format_instant(time) for time in source.listing().times] == [JANUARY]
    assert rows_at(source, JANUARY) == [(0,), (1,), (2,)]


def test_null_and_unreadable_values_are_quoted_and_counted(spark, tmp_path):
    write(tmp_path, ["2020-01-01", None, None, "soon", "2020-1-2"])

    with pytest.raises(SnapshotValueInvalid, match="4 rows") as caught:
        reader(spark, by_column(tmp_path, "at", "ISO8601_DATE")).listing()

    assert caught.value.found == "NULL (2 rows), '2020-1-2' (1 row), 'soon' (1 row)"
    assert "2020-01-31" in str(caught.value.expected)


@pytest.mark.parametrize(("value", "is_month"), [("2026-02", True), ("202602", True), ("1", False)])
def test_a_month_in_a_column_is_refused_with_what_to_do(spark, tmp_path, value, is_month):
    write(tmp_path, [value])

    with pytest.raises(SnapshotValueInvalid) as caught:
        reader(spark, by_column(tmp_path, "at", "ISO8601_DATE")).listing()

    assert ("write its first day, as in 2020-01-01" in str(caught.value.hint)) is is_month


def test_a_number_beyond_the_calendar_is_refused(spark, tmp_path):
    write(tmp_path, [2**63 - 1])

    with pytest.raises(SnapshotValueInvalid, match="1 row has"):
        reader(spark, by_column(tmp_path, "at", "UNIX_SECONDS")).listing()


@pytest.mark.parametrize(
    ("sql", "time_format", "helps"),
    [
        ("1L", "ISO8601_DATE", "timeFormat: UNIX_MILLISECONDS or UNIX_SECONDS or PATTERN"),
        ("1BD", "TIMESTAMP", "timeFormat: UNIX_MILLISECONDS or UNIX_SECONDS or PATTERN"),
        ("date'2020-01-01'", "ISO8601_DATE_TIME", "timeFormat: ISO8601_DATE or TIMESTAMP"),
        ("timestamp'2020-01-01'", "ISO8601_DATE", "timeFormat: TIMESTAMP"),
        ("1.5D", "UNIX_SECONDS", "schemaFields"),
        ("'2020-01-01'", "TIMESTAMP", ""),
        ("'1577836800'", "UNIX_SECONDS", ""),
        ("1.5BD", "UNIX_MILLISECONDS", ""),
        ("true", "UNIX_MILLISECONDS", ""),
        ("array(1)", "UNIX_MILLISECONDS", ""),
    ],
)
def test_a_type_that_cannot_hold_the_format_is_refused(spark, tmp_path, sql, time_format, helps):
    spark.sql(f"select 1 v, {sql} at").write.parquet(f"{tmp_path}/d")

    with pytest.raises(SnapshotValueInvalid, match="has a type") as caught:
        reader(spark, by_column(f"{tmp_path}/d", "at", time_format)).listing()

    assert caught.value.path == "spec.hdfsLike.snapshot.fromFieldValue.timeFormat"
    assert caught.value.hint.endswith(helps)


def test_an_absent_column_is_one_clear_error(spark, tmp_path):
    write(tmp_path, ["2020-01-01"])

    with pytest.raises(SourceSchemaInvalid, match="neither") as caught:
        reader(spark, by_column(tmp_path, "day", "ISO8601_DATE")).listing()

    assert caught.value.found == "columns v, at"


@pytest.mark.parametrize(
    ("field", "dropped", "kept"),
    [
        ("`A.t`", "struct<v:int,s:struct<T:string,u:int>>", True),
        ("`a.T`", "struct<v:int,s:struct<T:string,u:int>>", False),
        ("S.t", "struct<v:int,A.t:string,s:struct<u:int>>", False),
    ],
)
def test_the_field_is_found_ignoring_case_and_dropped_when_asked(
    spark, tmp_path, field, dropped, kept
):
    day = sf.lit("2020-01-01")
    spark.range(1).select(
        sf.lit(1).alias("v", metadata={"k": "v"}),
        day.alias("A.t"),
        sf.struct(day.alias("T"), sf.lit(2).alias("u")).alias("s", metadata={"k": "s"}),
    ).write.parquet(f"{tmp_path}/d")
    spec = by_column(f"{tmp_path}/d", field, "ISO8601_DATE", dropField=not kept)

    frame = reader(spark, spec).read(parse_instant(JANUARY)).frame

    whole = "struct<v:int,A.t:string,s:struct<T:string,u:int>>"
    assert frame.schema.simpleString() == (whole if kept else dropped)
    assert frame.count() == 1
    assert [frame.schema[name].metadata for name in ("v", "s")] == [{"k": "v"}, {"k": "s"}]


def test_a_struct_is_not_left_without_fields(spark, tmp_path):
    spark.sql("select 1 v, named_struct('t', '2020-01-01') s").write.parquet(f"{tmp_path}/d")
    source = reader(spark, by_column(f"{tmp_path}/d", "s.t", "ISO8601_DATE"))

    with pytest.raises(SourceSchemaInvalid, match="nothing of a struct"):
        source.read(parse_instant(JANUARY))


def test_the_column_is_passed_over_once_a_run(spark, tmp_path):
    write(tmp_path, ["2020-01-01", "2020-01-02"])
    source = reader(spark, by_column(tmp_path, "at", "ISO8601_DATE"))
    source.listing()
    (tmp_path / "a.parquet").unlink()

    assert len(source.listing().times) == 2
    assert source.read(parse_instant(JANUARY)).frame.columns == ["v"]


def test_the_filter_reaches_the_files(spark, tmp_path):
    write(tmp_path, [datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    frame = reader(spark, by_column(tmp_path, "at", "TIMESTAMP")).read(parse_instant(JANUARY)).frame

    plan = frame._jdf.queryExecution().executedPlan().toString()

    assert "EqualTo(at,2020-01-01" in plan

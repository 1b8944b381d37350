"""Snapshots by paths: listed without opening a file, and read with what each path captures."""

import shutil
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declared.sources import (
    NOW,
    READ_TIME,
    by_field,
    files,
    reader,
    rows_at,
    snapshot_times,
)

from snaploom.errors import (
    SnapshotMissing,
    SnapshotValueInvalid,
    SourceFileUnmatched,
    SourceSchemaInvalid,
)
from snaploom.models.common import format_instant, parse_instant

pytestmark = pytest.mark.spark


def write(folder, path, *values):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": list(values)}), folder / path)


def by_path(folder, prefix, snapshot, glob="**", data_format="parquet"):
    return files(
        data_format, f"{folder}/{glob}", sourceUriPrefix=f"{folder}/{prefix}", snapshot=snapshot
    )


def times(source):
    return [format_instant(time) for time in source.listing().times]


@pytest.mark.parametrize(
    ("folders", "capture", "snapshot", "expected"),
    [
        (["2020-01-02", "2020-01-01"], "STRING", by_field("t", "ISO8601_DATE"),
         ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"]),
        (["2020-01-02"], "STRING",
         by_field("T", "ISO8601_DATE", defaultTimezone="Australia/Melbourne"),
         ["2020-01-01T13:00:00Z"]),
        (["2020-01-01T00%3A00%3A00Z", "2020-01-01T11%3A00%3A00%2B11%3A00"], "ISO8601_DATE_TIME",
         by_field("t", "ISO8601_DATE_TIME"), ["2020-01-01T00:00:00Z"]),
        (["2020-01-01T00%3A00%3A00"], "ISO8601_DATE_TIME",
         by_field("t", "TIMESTAMP", defaultTimezone="Asia/Kathmandu"), ["2019-12-31T18:15:00Z"]),
        (["1577836800000", "01577836800001"], "LONG", by_field("t", "UNIX_MILLISECONDS"),
         ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.001Z"]),
        (["1577836800"], "INTEGER", by_field("t", "UNIX_SECONDS"), ["2020-01-01T00:00:00Z"]),
        (["1577836800"], "STRING", by_field("t", "UNIX_SECONDS"), ["2020-01-01T00:00:00Z"]),
    ],
)  # fmt: skip
def test_every_capture_and_format_gives_its_instants(
    spark, tmp_path, folders, capture, snapshot, expected
):
    for number, folder in enumerate(folders):
        write(tmp_path, f"t={folder}/a.parquet", number)
    source = reader(spark, by_path(tmp_path, f"t={{t:{capture}}}/", snapshot, "*/*"))

    assert times(source) == expected
    read = [row for time in snapshot_times(source) for row in rows_at(source, time)]
    assert sorted(read) == [(number,) for number in range(len(folders))]


def test_enumeration_opens_no_file(spark, tmp_path):
    for day in range(1, 4):
        write(tmp_path, f"d=2020-01-0{day}/a.parquet", day)
        (tmp_path / f"d=2020-01-0{day}/a.parquet").write_bytes(b"not parquet at all")
    source = reader(spark, by_path(tmp_path, "d={d:STRING}/", by_field("d", "ISO8601_DATE"), "*/*"))

    assert len(source.listing().times) == 3


def test_a_snapshot_is_read_from_its_own_files_only(spark, tmp_path):
    write(tmp_path, "2020-01-01/a.parquet", 1)
    write(tmp_path, "2020-01-01/b.parquet", 2)
    write(tmp_path, "2020-01-02/a.parquet", 3)
    (tmp_path / "2020-01-03").mkdir()
    (tmp_path / "2020-01-03/a.parquet").write_bytes(b"broken, and not asked for")
    source = reader(spark, by_path(tmp_path, "{d:STRING}/", by_field("d", "ISO8601_DATE"), "*/*"))

    assert rows_at(source, "2020-01-01T00:00:00Z") == [(1,), (2,)]
    assert rows_at(source, "2020-01-02T00:00:00Z") == [(3,)]
    with pytest.raises(SnapshotMissing, match="2021"):
        source.read(parse_instant("2021-01-01T00:00:00Z"))


def test_a_snapshot_is_listed_once_and_stays(spark, tmp_path):
    write(tmp_path, "2020-01-01/a.parquet", 1)
    source = reader(spark, by_path(tmp_path, "{d:STRING}/", by_field("d", "ISO8601_DATE"), "*/*"))
    before = source.listing()
    write(tmp_path, "2020-01-02/a.parquet", 2)

    assert source.listing() == before


def test_captures_become_typed_columns_after_those_of_the_data(spark, tmp_path):
    write(tmp_path, "x/eu%20west/7/8/2020-01-01T00%3A00%3A00/a.parquet", 1)
    prefix = "{kind:STRING}/{Region:STRING}/{n:INTEGER}/{big:LONG}/{at:ISO8601_DATE_TIME}/"
    spec = by_path(tmp_path, prefix, READ_TIME, "*/*/*/*/*/*")

    frame = reader(spark, spec).read(NOW).frame

    assert frame.schema.simpleString() == (
        "struct<v:bigint,kind:string,Region:string,n:int,big:bigint,at:timestamp>"
    )
    (row,) = frame.selectExpr("v", "kind", "Region", "n", "big", "unix_micros(at) us").collect()
    epoch = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
    assert tuple(row) == (1, "x", "eu west", 7, 8, int(epoch * 1_000_000))


def test_the_snapshot_stays_as_a_column_when_it_is_not_to_be_dropped(spark, tmp_path):
    write(tmp_path, "2020-01-01/r=a/x.parquet", 1)
    kept = by_field("d", "ISO8601_DATE", dropField=False)
    source = reader(spark, by_path(tmp_path, "{d:STRING}/r={r:STRING}/", kept, "*/*/*"))

    frame = source.read(parse_instant("2020-01-01T00:00:00Z")).frame

    assert frame.columns == ["v", "d", "r"]
    assert [tuple(row) for row in frame.collect()] == [(1, "2020-01-01", "a")]


def test_files_of_one_snapshot_keep_their_own_captures_whatever_their_names(spark, tmp_path):
    regions = ["a", "b c", "ü", "100%", "x;y", "{z}", "a"]
    for number, region in enumerate(regions):
        coded = region.replace("%", "%25")
        write(tmp_path, f"2020-01-01/{coded}/f{number} %41é.parquet", number)
    source = reader(
        spark,
        by_path(
            tmp_path, "{d:STRING}/{r:STRING}/f{n:INTEGER} ", by_field("d", "ISO8601_DATE"), "*/*/*"
        ),
    )

    assert rows_at(source, "2020-01-01T00:00:00Z") == [
        (number, region, number) for number, region in enumerate(regions)
    ]


def test_captured_times_differ_by_file_too(spark, tmp_path):
    write(tmp_path, "2020-01-01T00%3A00%3A00Z/a.parquet", 1)
    write(tmp_path, "2020-01-01T00%3A00%3A00+01%3A00/a.parquet", 2)
    spec = by_path(tmp_path, "{at:ISO8601_DATE_TIME}/", READ_TIME, "*/*")

    frame = reader(spark, spec).read(NOW).frame.selectExpr("v", "unix_seconds(at)")

    assert sorted(tuple(row) for row in frame.collect()) == [(1, 1577836800), (2, 1577833200)]


@pytest.mark.parametrize("data_format", ["csv", "json", "orc", "avro", "text"])
def test_captures_work_for_every_format(spark, tmp_path, data_format):
    from_spark = spark.createDataFrame([("1",)], "v string").coalesce(1)
    name = "org.apache.spark.sql.avro.AvroFileFormat" if data_format == "avro" else data_format
    for region in ("a", "b"):
        from_spark.write.format(name).save(f"{tmp_path}/{region}")

    rows = rows_at(
        reader(spark, by_path(tmp_path, "{r:STRING}/", READ_TIME, "*/*", data_format)), NOW
    )

    assert rows == [("1", "a"), ("1", "b")]


def test_files_of_a_snapshot_share_one_inferred_schema(spark, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/x.json").write_text('{"v": 1}')
    (tmp_path / "b/x.json").write_text('{"v": 1.5, "w": "only here"}')

    frame = (
        reader(spark, by_path(tmp_path, "{r:STRING}/", READ_TIME, "*/*", "json")).read(NOW).frame
    )

    assert frame.schema.simpleString() == "struct<v:double,w:string,r:string>"
    assert sorted(tuple(row) for row in frame.collect()) == [
        (1.0, None, "a"), (1.5, "only here", "b"),
    ]  # fmt: skip


def test_a_file_that_matches_no_prefix_is_named_with_the_prefix(spark, tmp_path):
    write(tmp_path, "d=2020-01-01/a.parquet", 1)
    for number in range(25):
        write(tmp_path, f"stray/{number:02}.parquet", 1)
    source = reader(spark, by_path(tmp_path, "d={d:STRING}/", by_field("d", "ISO8601_DATE"), "*/*"))

    with pytest.raises(SourceFileUnmatched, match="25 of 26 files") as caught:
        source.listing()

    assert "stray/00.parquet" in str(caught.value)
    assert "stray/19.parquet" in str(caught.value)
    assert "and 5 more" in str(caught.value)
    assert "d={d:STRING}/" in str(caught.value.expected)


@pytest.mark.parametrize(
    "folder", ["d=soon", "d=2020-02-30", "d=__HIVE_DEFAULT_PARTITION__", "d=2020-01-01%0A"]
)
def test_a_path_without_a_time_is_named(spark, tmp_path, folder):
    write(tmp_path, f"{folder}/a.parquet", 1)
    write(tmp_path, "d=2020-01-01/a.parquet", 1)
    source = reader(spark, by_path(tmp_path, "d={d:STRING}/", by_field("d", "ISO8601_DATE"), "*/*"))

    with pytest.raises(SnapshotValueInvalid, match="1 of 2 files") as caught:
        source.listing()

    assert folder in str(caught.value)


@pytest.mark.parametrize("month", ["2020-01", "202012", "2020_07"])
def test_a_month_in_a_path_is_refused_with_what_to_do(spark, tmp_path, month):
    write(tmp_path, f"{month}.parquet", 1)
    source = reader(spark, by_path(tmp_path, "{d:STRING}.parquet", by_field("d", "ISO8601_DATE")))

    with pytest.raises(SnapshotValueInvalid) as caught:
        source.listing()

    assert "name the files by its first day" in caught.value.hint


def test_a_capture_with_the_name_of_a_column_is_refused(spark, tmp_path):
    write(tmp_path, "a/x.parquet", 1)

    with pytest.raises(SourceSchemaInvalid, match="captures a name") as caught:
        reader(spark, by_path(tmp_path, "{V:STRING}/", READ_TIME, "*/*")).read(NOW)

    assert caught.value.found == "V and column v"


def test_no_files_are_no_snapshots(spark, tmp_path):
    by_day = by_field("d", "ISO8601_DATE")
    for snapshot, prefix in (
        (READ_TIME, None),
        (by_day, f"{tmp_path}/{{d:STRING}}/"),
        (by_day, None),
    ):
        extra = {} if prefix is None else {"sourceUriPrefix": prefix}
        source = reader(spark, files("parquet", f"{tmp_path}/none/*", snapshot=snapshot, **extra))
        assert list(source.listing().known_at(NOW)) == []
        with pytest.raises(SnapshotMissing):
            source.read(NOW)


def test_read_time_is_the_one_snapshot_of_its_source(spark, tmp_path):
    write(tmp_path, "a.parquet", 1)
    source = reader(spark, files("parquet", f"{tmp_path}/*"))

    assert list(source.listing().known_at(NOW)) == [NOW]
    assert rows_at(source, NOW) == [(1,)]
    with pytest.raises(SnapshotMissing):
        source.read(parse_instant("2020-01-01T00:00:00Z"))


def test_the_fingerprint_is_that_of_the_snapshots_own_files(spark, tmp_path):
    write(tmp_path, "2020-01-01/a.parquet", 1)
    write(tmp_path, "2020-01-02/a.parquet", 1)
    spec = by_path(tmp_path, "{d:STRING}/", by_field("d", "ISO8601_DATE"), "*/*")

    def prints():
        source = reader(spark, spec)
        return [source.read(time).fingerprint for time in source.listing().times]

    before = prints()
    shutil.copy(tmp_path / "2020-01-02/a.parquet", tmp_path / "2020-01-02/b.parquet")
    after = prints()

    assert before[0] == after[0]
    assert len({*before, after[1]}) == 3


def of_two_schemas(folder, second):
    (folder / "t=2020-01-01").mkdir()
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), folder / "t=2020-01-01/1.parquet")
    pq.write_table(pa.table(second), folder / "t=2020-01-01/2.parquet")


@pytest.fixture(params=["by path", "by read time"])
def read_of(request, spark):
    """Reads the rows of a folder with one day."""

    def read(folder):
        if request.param == "by read time":
            return rows_at(reader(spark, files("parquet", f"{folder}/*/*")), NOW)
        snapshot = by_field("t", "ISO8601_DATE", dropField=True)
        source = reader(spark, by_path(folder, "t={t:STRING}/", snapshot, "*/*"))
        return rows_at(source, "2020-01-01T00:00:00Z")

    return read


def test_files_of_one_snapshot_have_the_columns_of_any_and_the_wider_type(read_of, tmp_path):
    of_two_schemas(tmp_path, {"n": pa.array([2**40], pa.int64()), "new": [1.5]})
    assert read_of(tmp_path) == [(1, None), (2**40, 1.5)]


def test_types_of_one_snapshot_with_nothing_in_common_are_refused(read_of, tmp_path):
    of_two_schemas(tmp_path, {"n": ["two"]})
    with pytest.raises(SourceSchemaInvalid, match="nothing in common") as caught:
        read_of(tmp_path)
    folder = f"file:{tmp_path}/t=2020-01-01"
    assert caught.value.found == (
        f"n is integer in {folder}/1.parquet and string in {folder}/2.parquet"
    )

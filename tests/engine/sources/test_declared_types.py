"""Declared types against those of files: equal values or an error, never NULL in their place."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from support.declared.sources import NOW, by_field, files, reader, rows_at, saved

from snaploom.errors import SnaploomError, SourceSchemaInvalid
from snaploom.models.common import EpochNanos

pytestmark = pytest.mark.spark

FORMATS = ("parquet", "orc", "avro", "arrow")
MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)
DAY = dt.date(2020, 1, 2)

FILES = {
    "boolean": [True, False],
    "tinyint": [-128, 127],
    "smallint": [-32768, 300],
    "int": [-(2**31), 2**24 + 1],
    "bigint": [-(2**63), 2**53 + 1, 7],
    "float": [1.5, 2.0**24],
    "double": [0.1, 1e300],
    "decimal(10,2)": [Decimal("12345678.91"), Decimal("-1.00")],
    "decimal(20,0)": [Decimal(2**64), Decimal(7)],
    "string": ["abc", "7", "2020-01-02"],
    "binary": [bytearray(b"abc"), bytearray(b"\xff\x00")],
    "date": [DAY],
    "timestamp": [MOMENT],
    "timestamp_ntz": [MOMENT],
    "array<string>": [["x", "7"]],
    "array<int>": [[1, 2]],
    "map<string,bigint>": [{"a": 2**40}],
    "struct<a:bigint>": [{"a": 2**40}],
    "struct<a:int>": [{"a": 7}],
}
"""Types of files, with values at their ends."""


def decimal(precision, scale):
    return {"decimal": {"precision": precision, "scale": scale}}


def array(element):
    return {"array": {"elementType": {element: {}}}}


DECLARED = {
    **{
        name: {name: {}}
        for name in (
            "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary",
            "date", "timestamp", "timestampNtz",
        )
    },
    "decimal(10,1)": decimal(10, 1),
    "decimal(12,2)": decimal(12, 2),
    "decimal(38,10)": decimal(38, 10),
    "decimal(20,0)": decimal(20, 0),
    "array of long": array("long"),
    "array of string": array("string"),
    "map of int": {"map": {"keyType": {"string": {}}, "valueType": {"integer": {}}}},
    "struct of int": {"struct": {"fields": [{"name": "A", "dataType": {"integer": {}}}]}},
    "struct of long": {"struct": {"fields": [{"name": "a", "dataType": {"long": {}}}]}},
}  # fmt: skip

READ = {
    *[("tinyint", other) for other in ("byte", "short", "integer", "long", "double")],
    *[("smallint", other) for other in ("short", "integer", "long", "double")],
    *[("int", other) for other in ("integer", "long", "double", "decimal(38,10)")],
    *[(same, same) for same in ("float", "double", "string", "binary", "date", "timestamp")],
    ("bigint", "long"), ("bigint", "decimal(20,0)"), ("float", "double"), ("boolean", "boolean"),
    ("decimal(10,2)", "decimal(12,2)"), ("decimal(20,0)", "decimal(38,10)"),
    ("array<int>", "array of long"), ("array<string>", "array of string"),
    ("struct<a:int>", "struct of long"), ("struct<a:int>", "struct of int"),
    ("struct<a:bigint>", "struct of long"), ("timestamp_ntz", "timestampNtz"),
}  # fmt: skip
"""Types of files, with declared ones that hold them, which one format at least has to read."""


def fields(declared, name="v"):
    return {"schemaFields": [{"name": name, "dataType": declared}]}


def plain(value):
    """A value as Python compares it, whatever its type."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return sorted((key.lower(), plain(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return value


def outcome(spark, data_format, folder, declared):
    """The values that are read, or what is raised instead."""
    source = reader(spark, files(data_format, f"{folder}/*", **fields(declared)))
    try:
        frame = source.read(NOW).frame
        if declared == {"string": {}}:  # PySpark shows bytes that are no text as other ones
            frame = frame.select(frame.v.cast("binary"))
        return [plain(row["v"]) for row in frame.collect()]
    except (SnaploomError, Py4JError, PySparkException) as error:
        return error


def expected(values, own, name):
    if name in ("string", "binary"):
        return [value.encode() if own == "string" else bytes(value) for value in values]
    if (own, name) == ("date", "timestampNtz"):
        return [dt.datetime.combine(day, dt.time()) for day in values]
    return [plain(value) for value in values]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("data_format", FORMATS)
def test_each_file_type_read_as_each_declared_type_gives_its_values_or_an_error(
    spark, tmp_path, data_format
):
    read = set()
    for number, (own, values) in enumerate(FILES.items()):
        folder = f"{tmp_path}/{number}"
        saved(
            spark.createDataFrame([(value,) for value in values], f"v {own}"), data_format, folder
        )
        for name, declared in DECLARED.items():
            found = outcome(spark, data_format, folder, declared)
            if isinstance(found, list):
                read.add((own, name))
                assert found == expected(values, own, name), (own, name)
    missing = READ - read
    if data_format == "avro":  # its integers have 32 or 64 bits, and decimals are read as they are
        missing = {pair for pair in missing if pair[0] not in ("tinyint", "smallint", "int")}
        missing -= {("bigint", "decimal(20,0)")}
    assert missing == set()


ID = fields({"long": {}}, "id")
ID_AND_TEXT = {"schemaFields": [*ID["schemaFields"], *fields({"string": {}}, "t")["schemaFields"]]}


def orc_file(folder, name, schema=ID, **columns):
    pa.orc.write_table(pa.table(columns), folder / f"{name}.orc")
    return files("orc", folder / "*.orc", **schema)


def test_text_in_an_orc_file_where_a_number_is_declared_is_one_error_that_names_all(
    spark, tmp_path
):
    orc_file(tmp_path, "a", id=[1, 2])
    declared = orc_file(tmp_path, "b", id=["7", "x"], other=["y", "z"])

    with pytest.raises(SourceSchemaInvalid) as caught:
        reader(spark, declared).read(NOW)

    error = caught.value
    assert error.resource == "DataSource/orders"
    assert error.path == "spec.hdfsLike.schemaFields[0].dataType"
    assert "id is string in file:" in str(error.found)
    assert "b.orc" in str(error.found)
    assert "id bigint" in str(error.expected)
    assert "leave the column out of schemaFields" in str(error.hint)


def test_orc_files_of_narrower_and_missing_columns_are_read(spark, tmp_path):
    orc_file(tmp_path, "a", id=pa.array([1], pa.int16()))
    orc_file(tmp_path, "b", other=["x"])
    (tmp_path / "zero.orc").write_bytes(b"")
    declared = orc_file(tmp_path, "c", ID=[2**40], other=["x"])
    read = [row[0] for row in reader(spark, declared).read(NOW).frame.collect()]
    assert sorted(map(str, read)) == sorted(["1", "None", str(2**40)])


@pytest.mark.parametrize(("second", "is_read"), [([5, 6], True), (["5", "6"], False)])
def test_columns_that_hive_names_by_place_are_compared_by_place(spark, tmp_path, second, is_read):
    orc_file(tmp_path, "a", _col0=[1, 2], _col1=["x", "y"])
    declared = orc_file(tmp_path, "b", ID_AND_TEXT, _col0=second, _col1=["x", "y"])
    if is_read:
        read = rows_at(reader(spark, declared), NOW)
        assert read == [(1, "x"), (2, "y"), (5, "x"), (6, "y")]
    else:
        with pytest.raises(SourceSchemaInvalid, match=r"b\.orc"):
            reader(spark, declared).read(NOW)


def test_each_schema_of_parquet_files_is_compared(spark, tmp_path):
    for number in range(5):
        pq.write_table(pa.table({"id": [number], "other": [1.5]}), tmp_path / f"{number}.parquet")
    declared = files("parquet", tmp_path / "*", **fields({"long": {}}, "id"))
    assert len(rows_at(reader(spark, declared), NOW)) == 5

    pq.write_table(pa.table({"id": [MOMENT]}), tmp_path / "9.parquet")
    with pytest.raises(SourceSchemaInvalid, match=r"9\.parquet"):
        reader(spark, declared).read(NOW)


def test_a_column_of_parquet_that_spark_has_no_type_for_hides_no_other(spark, tmp_path):
    nanoseconds = pa.array([1, 2], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [1, 2], "at": nanoseconds}), tmp_path / "a.parquet")
    for name in ("id", "at"):
        declared = files("parquet", tmp_path / "*", **fields({"long": {}}, name))
        assert rows_at(reader(spark, declared), NOW) == [(1,), (2,)]


def write_times(path, unit, zone=None, name="at", microseconds=1_714_557_600_123_456):
    times = pa.array([microseconds, -microseconds, 0]).cast(pa.timestamp("us", zone))
    pq.write_table(pa.table({"id": [1, 2, 3], name: times.cast(pa.timestamp(unit, zone))}), path)


@pytest.mark.parametrize("session_zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_parquet_in_nanoseconds_are_those_in_microseconds(
    spark, tmp_path, zone, session_zone
):
    write_times(tmp_path / "ns.parquet", "ns", zone)
    write_times(tmp_path / "us.parquet", "us", zone)
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    try:
        ns, us = (
            reader(spark, files("parquet", tmp_path / f"{unit}.parquet")).read(NOW).frame
            for unit in ("ns", "us")
        )
        assert ns.schema == us.schema
        assert ns.orderBy("id").collect() == us.orderBy("id").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_digits_of_times_after_microseconds_are_cut(spark, tmp_path):
    times = pa.array([1_999, -1_999], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": times}), tmp_path / "a.parquet")
    rows = rows_at(reader(spark, files("parquet", tmp_path / "*")), NOW)
    assert sorted(at.microsecond for (at,) in rows) == [1, 999_999]


@pytest.mark.parametrize("declared", [{}, fields({"timestampNtz": {}}, "at")])
@pytest.mark.parametrize("units", [("ns", "us", "ns"), ("us", "us", "ns"), ("ns", "ns")])
def test_files_of_both_units_are_read_together(spark, tmp_path, units, declared):
    for number, unit in enumerate(units):
        name = "AT" if number and not declared else "at"
        write_times(tmp_path / f"{number}.parquet", unit, name=name, microseconds=number)
    frame = reader(spark, files("parquet", tmp_path / "*", **declared)).read(NOW).frame
    found = {row.n for row in frame.selectExpr("unix_micros(cast(at AS timestamp)) AS n").collect()}
    assert found == set(range(1 - len(units), len(units)))


def test_a_file_in_nanoseconds_among_others_in_microseconds_is_refused(spark, tmp_path):
    for number, unit in enumerate(("us", "ns", "us")):
        write_times(tmp_path / f"{number}.parquet", unit)
    with pytest.raises((PySparkException, Py4JError), match=r"1\.parquet"):
        rows_at(
            reader(spark, files("parquet", tmp_path / "*", **fields({"timestampNtz": {}}, "at"))),
            NOW,
        )


def test_snapshots_in_a_column_of_nanoseconds_are_found(spark, tmp_path):
    for number, unit in enumerate(("ns", "us")):
        write_times(tmp_path / f"{number}.parquet", unit, "UTC", microseconds=number + 5)
    snapshot = by_field("at", "TIMESTAMP")
    found = reader(spark, files("parquet", tmp_path / "*", snapshot=snapshot))
    assert [at // 1000 for at in found.listing().times] == [-6, -5, 0, 5, 6]
    rows = {at: len(rows_at(found, EpochNanos(1000 * at))) for at in (-6, 0, 5)}
    assert rows == {-6: 1, 0: 2, 5: 1}


def test_nanoseconds_inside_other_columns_are_refused_with_column_file_and_remedy(spark, tmp_path):
    times = pa.array([[1], [2]], pa.list_(pa.timestamp("ns")))
    pq.write_table(pa.table({"at": times}), tmp_path / "0.parquet")
    with pytest.raises(SourceSchemaInvalid, match="times in nanoseconds") as caught:
        reader(spark, files("parquet", tmp_path / "*")).read(NOW)
    assert f"column at.list.element of file:{tmp_path}/0.parquet" in str(caught.value.found)
    assert "coerce_timestamps='us'" in caught.value.hint


def test_whole_numbers_of_merged_files_keep_their_metadata(spark, tmp_path):
    for name in "ab":
        frame = spark.range(2).withMetadata("id", {"comment": "key"})
        frame.coalesce(1).write.parquet(f"{tmp_path}/{name}")
    options = {"datetimeRebaseMode": "CORRECTED"}
    found = reader(spark, files("parquet", tmp_path / "*/*.parquet", formatOptions=options))
    assert found.read(NOW).frame.schema["id"].metadata == {"comment": "key"}


def test_types_of_parquet_widen_in_the_reader_of_rows_too(spark, tmp_path):
    """Spark reads tables of thousands of columns by it."""
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        table = pa.table({"a": pa.array([2**31 - 1], pa.int32())})
        pq.write_table(table, tmp_path / "a.parquet")
        for name in ("long", "double", "decimal(38,10)"):
            declared = files("parquet", tmp_path / "*", **fields(DECLARED[name], "a"))
            assert rows_at(reader(spark, declared), NOW) == [(2**31 - 1,)]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_declared_columns_that_files_lack_are_named_once(spark, tmp_path, form):
    saved(spark.createDataFrame([(1, "x")], "A long, c string"), form, f"{tmp_path}/1")
    saved(spark.createDataFrame([(2, None)], "a long, c string"), form, f"{tmp_path}/2")
    fields = [{"name": name, "dataType": {"long": {}}} for name in ("a", "b")]
    source = reader(spark, files(form, f"{tmp_path}/*/*", schemaFields=fields))
    read = source.read(NOW)
    assert sorted(map(tuple, read.frame.collect())) == [(1, None), (2, None)]
    assert [each.partition(":")[0] for each in read.listed.notes] == [
        "2 of 2 files have no column `b`, which is NULL in their rows"
    ]
    assert source.read(NOW).listed.notes == ()

"""Snapshots that footers prove before there is a session are those that a session finds."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.declared.sources import by_field, files, reader, without_spark

from snaploom.errors import SnaploomError
from snaploom.plan.intervals import SourceSnapshots
from snaploom.sources.files import footers

pytestmark = pytest.mark.spark

DAY = datetime.date(2020, 1, 1)


def write(folder: Path, name: str, values: list[Any], kind: pa.DataType, **more: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    numbers = pa.array(range(len(values)), pa.int64())
    columns = {"Day": pa.array(values, kind), "n": numbers, **more}
    pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=2)


def declared(folder: Path, time_format: str = "ISO8601_DATE", **settings: Any) -> dict[str, Any]:
    pattern = {"timePattern": "yyyyMMdd"} if time_format == "PATTERN" else {}
    snapshot = by_field("day", time_format, defaultTimezone="Australia/Melbourne", **pattern)
    return files("parquet", f"file://{folder}/*.parquet", snapshot=snapshot, **settings)


@pytest.mark.parametrize(
    ("time_format", "kind", "values"),
    [
        ("ISO8601_DATE", pa.string(), ["2020-01-01", "2020-04-05"]),
        ("ISO8601_DATE_TIME", pa.string(), ["2020-01-01T00:00:00", "2020-01-01T00:00:00Z"]),
        ("ISO8601_DATE", pa.date32(), [DAY, datetime.date(1969, 12, 31)]),
        ("TIMESTAMP", pa.date32(), [DAY, datetime.date(2020, 4, 5)]),
        ("UNIX_SECONDS", pa.int32(), [1_577_836_800, -1]),
        ("UNIX_MILLISECONDS", pa.int64(), [1_577_836_800_000, 1]),
        ("PATTERN", pa.int32(), [20200101, 20200405]),
        ("PATTERN", pa.string(), ["20200101", "20200405"]),
    ],
)
def test_values_of_each_type_are_instants_as_in_a_session(
    spark, tmp_path, time_format, kind, values
) -> None:
    for number, value in enumerate([*values, values[0]]):
        write(tmp_path, str(number), [value] * 3, kind)
    spec = declared(tmp_path, time_format)
    found = without_spark(spec)
    assert found == reader(spark, spec).listing()
    assert len(found.times) == 2


@pytest.mark.parametrize("time_format", ["ISO8601_DATE", "TIMESTAMP", "PATTERN"])
def test_files_that_spark_wrote_are_read_by_the_schema_that_it_noted(spark, tmp_path, time_format):
    column = {
        "ISO8601_DATE": "'2020-01-01'",
        "TIMESTAMP": "DATE'2020-01-01'",
        "PATTERN": "20200101",
    }
    frame = spark.range(4).selectExpr(f"{column[time_format]} AS day", "id", "1.5 AS price")
    frame.write.parquet(f"{tmp_path}/out")
    spec = declared(tmp_path / "out", time_format)
    found = without_spark(spec)
    assert found == reader(spark, spec).listing()
    assert found is not None


def several_values(folder: Path) -> None:
    write(folder, "2", ["2020-01-01", "2020-01-02"], pa.string())


def null(folder: Path) -> None:
    write(folder, "2", ["2020-01-01", None], pa.string())


def other_schema(folder: Path) -> None:
    write(folder, "2", ["2020-01-01"], pa.string(), more=[1])


def other_type(folder: Path) -> None:
    write(folder, "2", [DAY], pa.date32())


def broken(folder: Path) -> None:
    (folder / "2.parquet").write_bytes(b"no Parquet at all")


def no_date(folder: Path) -> None:
    write(folder, "2", ["soon"], pa.string())


@pytest.mark.parametrize(
    "change", [several_values, null, other_schema, other_type, broken, no_date]
)
def test_a_file_in_doubt_is_left_to_the_session(tmp_path, change) -> None:
    write(tmp_path, "1", ["2020-01-01"], pa.string())
    change(tmp_path)
    assert without_spark(declared(tmp_path)) is None


@pytest.mark.parametrize(
    "more",
    [{"DAY": ["x"]}, {"N": [1]}, {"s": [{"a": 1}]}, {"u": pa.array([1], pa.uint32())}],
    ids=["column twice", "names in two cases", "struct", "type of Arrow's"],
)
def test_columns_that_spark_may_refuse_are_left_to_the_session(tmp_path, more) -> None:
    write(tmp_path, "1", ["2020-01-01"], pa.string(), **more)
    assert without_spark(declared(tmp_path)) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"formatOptions": {"mergeSchema": "true"}},
        {"schemaFields": [{"name": "day", "dataType": {"string": {}}}]},
        {"sourceUriPrefix": "file://FOLDER/{n:STRING}.parquet"},
    ],
    ids=["options", "declared columns", "captured name"],
)
def test_declarations_that_decide_about_columns_are_left_to_the_session(tmp_path, settings) -> None:
    write(tmp_path, "1", ["2020-01-01"], pa.string())
    spec = declared(tmp_path, **settings)
    prefix = spec["hdfsLike"].get("sourceUriPrefix")
    if prefix:
        spec["hdfsLike"]["sourceUriPrefix"] = prefix.replace("FOLDER", str(tmp_path))
    assert without_spark(spec) is None


def test_more_files_than_are_worth_it_are_left_to_the_session(tmp_path, monkeypatch) -> None:
    for number in range(3):
        write(tmp_path, str(number), ["2020-01-01"], pa.string())
    monkeypatch.setattr(footers, "MOST_FOOTERS", 2)
    assert without_spark(declared(tmp_path)) is None


def test_no_file_is_no_snapshot(tmp_path) -> None:
    assert without_spark(declared(tmp_path)) == SourceSnapshots()


days = st.sampled_from(["2020-01-01", "2020-01-02", "2020-02-30", "", None])


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(days, max_size=4), max_size=3))
def test_whatever_columns_hold_is_found_as_in_a_session_or_left_to_it(
    spark, tmp_path_factory, columns
) -> None:
    folder = tmp_path_factory.mktemp("columns")
    for number, column in enumerate(columns):
        write(folder, str(number), column, pa.string())
    spec = declared(folder)
    found = without_spark(spec)
    try:
        expected = reader(spark, spec).listing()
    except SnaploomError:
        expected = None
    assert found is None or found == expected
    groups = [column[at : at + 2] for column in columns for at in range(0, len(column), 2)]
    is_sure = all(len(set(group)) == 1 for group in groups) and expected is not None
    assert (found is not None) == is_sure

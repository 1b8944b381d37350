"""Footers tell the values of a column exactly when every row group has one, or not at all."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark_types
from support.sources import by_field, files, reader, rows_at, snapshot_times

from snaploom.engine.fields import Found
from snaploom.engine.sources.files import ListedFile
from snaploom.engine.sources.footers import constant_values

TEXT, LONG, DATE = spark_types.StringType(), spark_types.LongType(), spark_types.DateType()


def told(
    folder: Path,
    *columns: pa.Array,
    kind: spark_types.DataType = TEXT,
    name: str = "day",
    group: int = 2,
    **how: object,
) -> frozenset[str | int] | None:
    """What footers tell of a file a column, in row groups of two."""
    listed = []
    for number, column in enumerate(columns):
        path = folder / f"{number}.parquet"
        table = pa.table({"day": column, "x": list(range(len(column)))})
        pq.write_table(table, path, row_group_size=group, **how)
        listed.append(ListedFile(f"file:{path}", 1, 1))
    return constant_values(listed, Found((name,), kind, {}))


values = st.lists(st.sampled_from(["2020-01-01", "2020-01-02", "ünï", None]), max_size=6)


@given(st.lists(values, min_size=1, max_size=3))
def test_footers_tell_the_values_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, columns: list[list[str | None]]
) -> None:
    folder = tmp_path_factory.mktemp("footers")
    arrays = [pa.array(column, pa.string()) for column in columns]
    groups = [column[i : i + 2] for column in columns for i in range(0, len(column), 2)]
    sure = all(len(set(group)) == 1 and None not in group for group in groups)
    expected = frozenset(value for column in columns for value in column if value)
    assert told(folder, *arrays) == (expected if sure else None)


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array([5, 5]), LONG, {5}),
        (pa.array([5, 5], pa.int16()), spark_types.ShortType(), {5}),
        (pa.array([datetime.date(2020, 1, 2)] * 2), DATE, {18263}),
        (pa.array([datetime.date(1500, 1, 1)] * 2), DATE, None),
        (pa.array([5, 5]), TEXT, None),
        (pa.array([5.0, 5.0]), spark_types.DoubleType(), None),
        (pa.array([b"a", b"a"]), TEXT, None),
        (pa.array([datetime.datetime(2020, 1, 1)] * 2), spark_types.TimestampType(), None),
        (pa.array([["a"], ["a"]]), TEXT, None),
    ],
)
def test_only_types_whose_statistics_are_their_values_are_told(
    tmp_path: Path, column: pa.Array, kind: spark_types.DataType, expected: set[int] | None
) -> None:
    assert told(tmp_path, column, kind=kind) == (None if expected is None else frozenset(expected))


def test_what_is_not_there_or_not_known_is_not_told(tmp_path: Path) -> None:
    column = pa.array(["a", "a"])
    assert told(tmp_path, column) == frozenset(["a"])
    assert told(tmp_path, column, name="other") is None
    assert told(tmp_path, column, name="DAY") is None
    assert told(tmp_path, column, write_statistics=False) is None
    (tmp_path / "0.parquet").write_bytes(b"PAR1 cut short")
    assert (
        constant_values([ListedFile(f"file:{tmp_path}/0.parquet", 1, 1)], Found(("day",), TEXT, {}))
        is None
    )
    assert (
        constant_values([ListedFile("s3a://b/0.parquet", 1, 1)], Found(("day",), TEXT, {})) is None
    )


@pytest.mark.spark
def test_snapshots_are_listed_without_a_job_where_footers_tell(spark, tmp_path):
    spec = files("parquet", f"{tmp_path}/*", snapshot=by_field("day", "ISO8601_DATE"))
    for number, day in enumerate(["2020-01-01", "2020-01-02"]):
        table = pa.table({"day": [day] * 3, "n": [number] * 3})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    source = reader(spark, spec)
    assert source.source._column.field.path == "day"  # inferring the schema takes a job
    spark.sparkContext.setJobGroup("footers", "listing")
    times = snapshot_times(source)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")

    assert spark.sparkContext.statusTracker().getJobIdsForGroup("footers") == []
    assert rows_at(source, times[1]) == [(1,)] * 3
    mixed = pa.table({"day": ["2020-01-03", "2020-01-01"], "n": [7, 8]})
    pq.write_table(mixed, tmp_path / "2.parquet")
    assert [rows_at(reader(spark, spec), time) for time in snapshot_times(reader(spark, spec))] == [
        [(0,)] * 3 + [(8,)], [(1,)] * 3, [(7,)],
    ]  # fmt: skip

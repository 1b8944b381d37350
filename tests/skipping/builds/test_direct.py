"""Files that Arrow reads for an index, against the same rows when Spark reads them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import Row, build, index

from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetlookup import open_path

TIMES = [datetime(2020, 1, 2, 3, 4, 5, 678901, UTC), datetime(1999, 1, 1, tzinfo=UTC)]

COLUMNS: Mapping[str, pa.Array] = {
    "boolean": pa.array([True, None, False, True]),
    "tinyint": pa.array([1, None, -128, 1], pa.int8()),
    "smallint": pa.array([1, None, -300, 1], pa.int16()),
    "int": pa.array([1, None, -70000, 1], pa.int32()),
    "bigint": pa.array([1, None, -(1 << 40), 1]),
    "float": pa.array([1.5, None, -0.0, float("nan")], pa.float32()),
    "double": pa.array([0.0, None, -0.0, float("nan")]),
    "decimal(9,2)": pa.array([Decimal("1.25"), None, Decimal("-9.00"), None], pa.decimal128(9, 2)),
    "decimal(18,4)": pa.array([Decimal("1.25"), None, None, None], pa.decimal128(18, 4)),
    "date": pa.array([date(2020, 1, 1), None, date(1969, 12, 31), None]),
    "timestamp": pa.array([*TIMES, None, None], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array(
        [*(time.replace(tzinfo=None) for time in TIMES), None, None], pa.timestamp("us")
    ),
    "string": pa.array(["zoë", None, "\U0001f600" * 20, ""]),
    "binary": pa.array([b"\xff\x00", None, b"x" * 2000, b"\xff\x00"]),
}
TYPES = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")


def as_a_set(row: Row) -> dict[str, object]:
    """A row without what differs between files, its sets without order."""
    return {
        name: sorted(map(repr, value)) if isinstance(value, list) else repr(value)
        for name, value in row.items()
        if name.startswith("i")
    }


def indexed(target: SparkTarget, *columns: str) -> list[dict[str, object]]:
    names = [(kind, column) for kind in TYPES for column in columns]
    indexes = (index(target, k, c, index_id=f"i{n}") for n, (k, c) in enumerate(names))
    return [as_a_set(row) for row in build(target, *indexes)]


def test_rows_of_every_type_are_those_of_sparks_scan(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    table = pa.table({f"c{number}": values for number, values in enumerate(COLUMNS.values())})
    for number, part in enumerate((table, table.slice(2), table.slice(1, 1), table.slice(0, 0))):
        pq.write_table(part, tmp_path / "t" / f"{number}.parquet", row_group_size=3)
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    assert [target.column(name).data_type for name in table.column_names] == list(COLUMNS)
    direct = indexed(target, *table.column_names)
    assert (target.counters.direct_files, target.counters.scanned_files) == (3, 0)
    monkeypatch.setattr("snaploom.skipping.spark.builds.filerows._direct", lambda *_: ())
    monkeypatch.setattr("snaploom.skipping.spark.builds.filerows._proved_terms", lambda *_: ())
    assert indexed(target, *table.column_names) == direct
    assert (target.counters.direct_files, target.counters.scanned_files) == (3, 4)


def test_an_expression_is_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"c": ["A", "a", "b"]}), tmp_path / "t" / "a.parquet")
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    column, lower = index(target, "VALUE_SET", "c"), target.expression("lower(c)")
    both = (column, type(column)("i2", "VALUE_SET", (lower,)))
    (row,) = build(target, *both)
    assert (row["i1.set"], row["i2.set"]) == ([b"A", b"a", b"b"], [b"a", b"b"])
    assert target.counters.scanned_files == 1

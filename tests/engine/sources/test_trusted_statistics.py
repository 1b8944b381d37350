"""Sources and indexes believe the same footers, by every writer, and these are right."""

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.documentation.examples import REPOSITORY

from snaploom.files.listed import ListedFile
from snaploom.parquet.footers import END
from snaploom.skipping.spark.builds.footers import FooterReader, FooterTerm
from snaploom.sources.files.footers import read_footers

Found = frozenset[str | int] | None

COLUMNS = {
    "same": ("string", pa.array(["same", "same"])),
    "two": ("string", pa.array(["same", "some"])),
    "empty": ("string", pa.array(["", ""])),
    "with_null": ("string", pa.array(["same", None])),
    "only_null": ("string", pa.array([None, None], pa.string())),
    "long_text": ("string", pa.array(["x" * 100, "x" * 99 + "y"])),
    "short": ("smallint", pa.array([-5, -5], pa.int16())),
    "whole": ("bigint", pa.array([1 << 40, 1 << 40])),
    "unsigned": ("bigint", pa.array([1 << 40, 1 << 40], pa.uint64())),
    "new_day": ("date", pa.array([date(2020, 1, 2)] * 2)),
    "old_day": ("date", pa.array([date(1500, 1, 1)] * 2)),
    "not_a_number": ("double", pa.array([1.0, float("nan")])),
}
"""Columns by name, with the type as which indexes have them."""
TABLE = pa.table({name: column for name, (_, column) in COLUMNS.items()})
DAYS_OF_1970 = date(1970, 1, 1)


def by_source(path: Path, name: str) -> Found:
    listed = ListedFile(f"file:{path}", path.stat().st_size, 1)
    (footer,) = read_footers([listed], name, lambda file, count: b"")
    return None if footer is None or footer.column is None else footer.column.values


def by_index(path: Path, name: str) -> Found:
    """The one value of a column, where an index takes least and greatest from the footer."""
    reader = FooterReader((FooterTerm((name,), COLUMNS[name][0]),), is_case_sensitive=False)
    proved = reader.read_local([str(path)]).column(0)
    nulls, least, greatest = (
        part[0].as_py() for part in (proved.nulls, proved.minimum, proved.maximum)
    )
    if nulls != 0 or least is None or least != greatest or COLUMNS[name][0] == "double":
        return None
    return frozenset([least.decode() if isinstance(least, bytes) else least])


def in_data(name: str) -> Found:
    values = COLUMNS[name][1].to_pylist()
    return frozenset((v - DAYS_OF_1970).days if isinstance(v, date) else v for v in values)


def by_arrow(path: Path, _spark: SparkSession) -> None:
    pq.write_table(TABLE, path)


def by_duckdb(path: Path, _spark: SparkSession) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", TABLE)
        connection.sql(f"COPY rows TO '{path}' (FORMAT parquet)")


def by_polars(path: Path, _spark: SparkSession) -> None:
    polars.from_arrow(TABLE).write_parquet(path)


def by_spark(path: Path, spark: SparkSession, **options: str) -> None:
    folder = path.parent / "spark"
    frame = spark.createDataFrame(TABLE.drop_columns(["unsigned"])).coalesce(1)
    frame.write.options(**options).parquet(str(folder))
    (written,) = folder.glob("*.parquet")
    written.rename(path)


def by_spark_that_cuts(path: Path, spark: SparkSession) -> None:
    by_spark(path, spark, **{"parquet.statistics.truncate.length": "2"})


def by_spark_in_the_old_calendar(path: Path, spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    by_spark(path, session)
    assert b"org.apache.spark.legacyDateTime" in (pq.read_metadata(path).metadata or {})


def edited(path: Path, pattern: bytes, change: Callable[[re.Match[bytes]], bytes]) -> None:
    """Change a footer, of any length, and state its new length."""
    content = path.read_bytes()
    length = int.from_bytes(content[-END:-4], "little")
    data, footer = content[: -END - length], content[-END - length : -END]
    changed, count = re.subn(pattern, change, footer, flags=re.DOTALL)
    assert count
    path.write_bytes(data + changed + len(changed).to_bytes(4, "little") + content[-4:])


def by_an_old_arrow(path: Path, spark: SparkSession) -> None:
    by_arrow(path, spark)
    edited(path, rb"arrow version \d\d", lambda _: b"arrow version 07")


def by_an_old_parquet_mr(path: Path, spark: SparkSession) -> None:
    by_spark(path, spark)
    edited(path, rb"parquet-mr version 1\.\d\d", lambda _: b"parquet-mr version 1.09")


def by_nobody(path: Path, spark: SparkSession) -> None:
    by_arrow(path, spark)
    edited(path, rb"parquet-cpp-arrow", lambda _: b"parquet-cpp-other")


def with_deprecated_statistics(path: Path, spark: SparkSession) -> None:
    """`min` and `max` in place of `min_value` and `max_value`, whose order nobody defined."""
    by_arrow(path, spark)
    for value in (b"same", (1 << 40).to_bytes(8, "little")):
        text = bytes([len(value)]) + value
        new = b"\x36\x00\x28" + text + b"\x18" + text + b"\x11\x11\x00"
        old = b"\x18" + text + b"\x18" + text + b"\x16\x00\x00"
        edited(path, re.escape(new), lambda _, old=old: old)


TRUSTED = (by_arrow, by_duckdb, by_spark)
WRITERS = (
    *TRUSTED,
    by_polars,
    by_spark_that_cuts,
    by_spark_in_the_old_calendar,
    by_an_old_arrow,
    by_an_old_parquet_mr,
    by_nobody,
    with_deprecated_statistics,
)


@pytest.mark.parametrize("writer", WRITERS)
def test_sources_and_indexes_believe_the_same(spark, tmp_path, writer):
    path = tmp_path / "file.parquet"
    writer(path, spark)
    for name in pq.read_schema(path).names:
        found = by_source(path, name)
        assert found == by_index(path, name), name
        assert found in (None, in_data(name)), name


@pytest.mark.parametrize("writer", TRUSTED)
def test_known_writers_are_believed(spark, tmp_path, writer):
    path = tmp_path / "file.parquet"
    writer(path, spark)
    assert by_source(path, "same") == {"same"}
    assert by_source(path, "whole") == {1 << 40}


@pytest.mark.parametrize("writer", [by_polars, by_an_old_arrow, by_an_old_parquet_mr, by_nobody])
def test_other_writers_are_believed_nothing(spark, tmp_path, writer):
    path = tmp_path / "file.parquet"
    writer(path, spark)
    assert {by_source(path, name) for name in pq.read_schema(path).names} == {None}


def test_one_module_reads_statistics_of_footers() -> None:
    modules = (REPOSITORY / "sparkjobs/src/snaploom").rglob("*.py")
    asking = [
        m.name for m in modules if re.search(r"\.(min|max)_raw\b|\.has_min_max\b", m.read_text())
    ]
    assert asking == ["statistics.py"]

"""Conditions on partition columns and data at once, in folders and in tables of a catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import build_index, last, on_and_off

BOTH = "(day = 1 AND x = 3) OR (day = 2 AND x = 15)"
CONDITIONS = {
    BOTH: 2,
    "day = 1 AND x = 3": 1,
    "day + 1 = 2 OR x = 15": 6,
    "NOT (day = 1 OR x <> 15)": 1,
    "(day IS NULL AND x > 15) OR (day = 1 AND x > 90)": 2,
    "day = 9 OR x IN (3, 99)": 3,
}
"""Most files that are read: days 1, 2 and NULL hold x from 0 to 9, and from 10 to 19, a file each.

A partition column inside an expression is known only to Spark.
"""


@pytest.fixture
def days(skipping: SparkSession, location: str, folder: Path) -> str:
    """Three days with two indexed files each."""
    rows = skipping.range(0, 20, 1, 2).selectExpr("id AS x", "explode(array(1, 2, null)) AS day")
    rows.write.partitionBy("day").parquet(str(folder))
    build_index(
        skipping, location, str(folder), ("x",), lambda builder: builder.add_partitions("day")
    )
    return str(folder)


@pytest.fixture
def table(skipping: SparkSession, days: str) -> Iterator[str]:
    """A table whose catalog has other days: what lies below `day=1` is of day 2, and vice versa."""
    skipping.sql(
        f"CREATE TABLE days (x bigint, day int) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{days}'"
    )
    for day, folder in ((1, "day=2"), (2, "day=1"), (None, "day=__HIVE_DEFAULT_PARTITION__")):
        value = "null" if day is None else day
        skipping.sql(f"ALTER TABLE days ADD PARTITION (day = {value}) LOCATION '{days}/{folder}'")
    yield "days"
    skipping.sql("DROP TABLE days")


@pytest.mark.parametrize(("condition", "most"), CONDITIONS.items())
def test_condition_on_both_kinds_of_columns_skips_in_a_folder(
    skipping: SparkSession, days: str, condition: str, most: int
) -> None:
    on, off = on_and_off(skipping, lambda: skipping.read.parquet(days).where(condition))
    assert on == off
    assert last(skipping).kept_files <= most


def test_values_of_the_catalog_decide_in_a_table(skipping: SparkSession, table: str) -> None:
    on, off = on_and_off(skipping, lambda: skipping.table(table).where(BOTH))
    assert on == off == ["Row(x=15, day=2)", "Row(x=3, day=1)"]
    assert (last(skipping).kept_files, last(skipping).files) == (2, 4)


def test_keys_of_a_join_on_a_partition_column_skip(skipping: SparkSession, table: str) -> None:
    query = f"SELECT x, day FROM {table} JOIN (VALUES (2)) AS k(d) ON day = d"
    on, off = on_and_off(skipping, lambda: skipping.sql(query))
    assert on == off
    assert len(on) == 20
    assert (last(skipping).kept_files, last(skipping).files) == (2, 4)


def test_scans_with_other_conditions_share_no_exchange(skipping: SparkSession, table: str) -> None:
    one = f"SELECT x FROM {table} WHERE {BOTH}"
    other = one.replace("x = 15", "x = 14")
    query = f"{one} UNION ALL {other}"
    on, off = on_and_off(skipping, lambda: skipping.sql(query))
    assert on == off == ["Row(x=14)", "Row(x=15)", "Row(x=3)", "Row(x=3)"]

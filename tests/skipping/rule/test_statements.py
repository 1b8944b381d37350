"""Statements that run at once: pruned, and Spark's own checks are as they were."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from support.skipping.skippingrule import KeepNamed, Truthful, write_parts

TARGET = "taken"


@pytest.fixture
def target(spark: SparkSession) -> Iterator[str]:
    yield TARGET
    spark.sql(f"DROP TABLE IF EXISTS {TARGET}")


def test_create_table_as_select_is_pruned(
    spark: SparkSession, decider: KeepNamed, table: str, target: str
) -> None:
    spark.sql(f"CREATE TABLE {target} USING parquet AS SELECT * FROM {table} WHERE id >= 0")
    assert spark.table(target).count() == 10


def test_insert_select_is_pruned(
    spark: SparkSession, decider: KeepNamed, table: str, target: str
) -> None:
    spark.sql(f"CREATE TABLE {target} (id bigint) USING parquet")
    spark.sql(f"INSERT INTO {target} SELECT id FROM {table} WHERE id >= 0")
    assert spark.table(target).count() == 10


def test_write_of_a_frame_is_pruned(
    spark: SparkSession, truthful: Truthful, table: str, folder: str
) -> None:
    spark.table(table).where("id = 17").write.parquet(folder)
    assert [row.id for row in spark.read.parquet(folder).collect()] == [17]
    assert truthful.requests[0].paths


def test_overwriting_what_is_read_is_still_refused(
    spark: SparkSession, truthful: Truthful, table: str
) -> None:
    with pytest.raises(AnalysisException, match="UNSUPPORTED_OVERWRITE"):
        spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE id = 17")
    assert spark.table(table).count() == 40


def test_appending_to_what_is_read_appends_the_right_rows(
    spark: SparkSession, truthful: Truthful, target: str, tmp_path: Path
) -> None:
    path = write_parts(spark, tmp_path / "t")
    spark.sql(f"CREATE TABLE {target} USING parquet LOCATION '{path}'")
    spark.sql(f"INSERT INTO {target} SELECT * FROM {target} WHERE id = 7")
    rows = spark.table(target)
    assert [row.id for row in rows.where("id IN (7, 17)").orderBy("id").collect()] == [7, 7, 17]


def test_refreshed_table_is_listed_again(
    spark: SparkSession, truthful: Truthful, target: str, folder: str
) -> None:
    spark.range(10).write.parquet(folder)
    spark.sql(f"CREATE TABLE {target} USING parquet LOCATION '{folder}'")
    assert spark.table(target).where("id >= 0").count() == 10
    spark.range(20).write.mode("overwrite").parquet(folder)
    spark.sql(f"REFRESH TABLE {target}")
    assert spark.table(target).where("id >= 0").count() == 20

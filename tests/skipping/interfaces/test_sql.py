"""Statements, by a function and in `spark.sql` itself."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake

from snaploom.errors import IndexAlreadyExists, IndexNotFound, IndexNotPossible, StatementInvalid
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.spark.interfaces import enable


@pytest.fixture
def table(spark: SparkSession, lake: Lake) -> Iterator[str]:
    spark.sql(f"CREATE TABLE skipping_sales USING parquet LOCATION '{lake.data}'")
    spark.sql("MSCK REPAIR TABLE skipping_sales")
    enable.accept_statements(spark)
    yield "skipping_sales"
    enable.leave_statements(spark)
    spark.sql("DROP TABLE skipping_sales")


def test_an_index_lives_through_spark_sql(spark: SparkSession, lake: Lake, table: str) -> None:
    spark.sql(f"CREATE SKIPPING INDEX ON {table} (price MIN_MAX, day PARTITION)")
    spark.sql(f"REFRESH SKIPPING INDEX ON {table}")
    assert lake.state().may_skip
    described = spark.sql(f"DESC SKIPPING INDEX ON {table}")
    assert described.columns == ["indexed_col_name", "data_type", "skip_type"]
    assert [tuple(row) for row in described.collect()] == [
        ("price", "double", "MIN_MAX"),
        ("day", "date", "PARTITION"),
    ]
    shown = spark.sql("SHOW FLINT INDEXES IN spark_catalog.default").collect()
    assert [(row["table"], row["status"]) for row in shown] == [(table, "active")]
    assert spark.sql("SHOW FLINT INDEXES IN elsewhere").collect() == []
    extended = spark.sql("SHOW FLINT INDEX EXTENDED IN spark_catalog").collect()
    assert [(row["table"], row["error"]) for row in extended] == [(table, "")]
    spark.sql(f"ALTER SKIPPING INDEX ON {table} WITH (enabled false)")
    assert not lake.state().may_skip
    spark.sql(f"DROP SKIPPING INDEX ON {table}")
    assert lake.state().phase is IndexState.DELETED
    spark.sql(f"VACUUM SKIPPING INDEX ON {table}")
    assert lake.state().definition is None


def test_what_is_not_ours_goes_to_spark_with_its_arguments(spark, lake, table):
    query = f"SELECT count(*) AS n FROM {table} WHERE price < :limit"
    assert spark.sql(query, args={"limit": 5}).collect()[0]["n"] == 5
    assert spark.sql("SELECT {x} AS x", x=3).collect()[0]["x"] == 3


def test_a_misspelt_statement_never_reaches_spark(spark, lake, table):
    with pytest.raises(StatementInvalid, match=r"\^"):
        spark.sql(f"REFRESH SKIPPING INDX ON {table}")


def test_disabling_gives_spark_its_own_sql_back(spark: SparkSession, lake: Lake) -> None:
    enable.accept_statements(spark)
    enable.accept_statements(spark)
    enable.leave_statements(spark)
    assert "sql" not in vars(spark)


def test_creating_twice_is_refused_unless_it_is_asked_for(spark, lake, table):
    spark.sql(f"CREATE SKIPPING INDEX ON {table} (price MIN_MAX)")
    with pytest.raises(IndexAlreadyExists):
        spark.sql(f"CREATE SKIPPING INDEX ON {table} (price MIN_MAX)")
    spark.sql(f"CREATE SKIPPING INDEX IF NOT EXISTS ON {table} (day PARTITION)")
    assert [index.label for index in lake.definition().indexes] == ["MIN_MAX(price)"]


@pytest.mark.parametrize("verb", ["REFRESH", "DESCRIBE", "DROP", "VACUUM", "RECOVER"])
def test_what_was_never_created_is_not_found(spark, lake, table, verb):
    with pytest.raises(IndexNotFound, match="create it"):
        spark.sql(f"{verb} SKIPPING INDEX ON {table}")


def test_all_faults_are_reported_at_once(spark: SparkSession, lake: Lake, table: str) -> None:
    with pytest.raises(IndexNotPossible) as caught:
        spark.sql(
            f"CREATE SKIPPING INDEX ON {table} (prize MIN_MAX, price PARTITION, name VALUE_SET(0))"
        )
    assert [line.partition(":")[0] for line in caught.value.found.splitlines()] == [
        "indexes[0]",
        "indexes[1]",
        "indexes[2]",
    ]
    assert not lake.state().exists

"""What the rule leaves of plans: sizes, EXPLAIN, partitions, buckets and reuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import KeepNamed, plan_text, write_parts


@pytest.fixture
def bucketed(spark: SparkSession) -> Iterator[str]:
    frame = spark.range(0, 40, 1, 1).selectExpr("id", "id % 3 as part")
    frame.write.bucketBy(4, "id").sortBy("id").saveAsTable("bucketed")
    yield "bucketed"
    spark.sql("DROP TABLE bucketed")


@pytest.fixture
def partitioned_table(spark: SparkSession, partitioned: str, tmp_path: Path) -> Iterator[str]:
    """Three partitions in the table's folder, and one that lies elsewhere."""
    elsewhere = write_parts(spark, tmp_path / "elsewhere", columns=("id", "'x' as text"))
    spark.sql(
        "CREATE TABLE many (id bigint, text string, part int) USING parquet "
        f"PARTITIONED BY (part) LOCATION '{partitioned}'"
    )
    spark.sql("MSCK REPAIR TABLE many")
    spark.sql(f"ALTER TABLE many ADD PARTITION (part = 9) LOCATION '{elsewhere}'")
    yield "many"
    spark.sql("DROP TABLE many")


def size_of(frame) -> int:
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_explain_shows_what_is_read(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    text = plan_text(spark.read.parquet(parts).where("id >= 0"))
    assert "FileScan parquet [skipping: 1 of 4 files, " in text
    assert "Location: SkippingFileIndex(1 paths)" in text


def test_size_is_that_of_the_kept_files(spark, decider, parts):
    frame = spark.read.parquet(parts)
    lengths = sorted(file.stat().st_size for file in Path(parts).glob("part-*"))
    assert size_of(frame.where("id >= 0")) in lengths
    assert size_of(frame) == sum(lengths)


def test_statistics_of_the_catalog_give_way_to_the_kept_size(spark, decider, table):
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS")
    whole = size_of(spark.table(table))
    assert size_of(spark.table(table).where("id >= 0")) < whole / 2


def test_cost_based_statistics_stay(spark, decider, table, set_conf):
    set_conf("spark.sql.cbo.enabled", "true")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    frame = spark.table(table).where("id >= 0")
    assert int(frame._jdf.queryExecution().optimizedPlan().stats().rowCount().get()) == 40
    assert frame.count() == 10


def test_kept_size_turns_a_join_into_a_broadcast(spark, truthful, parts, set_conf):
    one_file = max(file.stat().st_size for file in Path(parts).glob("part-*"))
    set_conf("spark.sql.autoBroadcastJoinThreshold", str(one_file + 1))
    set_conf("spark.sql.adaptive.enabled", "false")
    parted = spark.read.parquet(parts)
    few = parted.where("id = 17").selectExpr("part AS p")
    joined = parted.join(few, parted.part == few.p)
    assert "BroadcastHashJoin" in plan_text(joined)
    assert joined.count() == 13


def test_partition_filters_still_prune(spark, decider, partitioned_table):
    decider.piece = "part-0000"
    assert spark.table("many").where("part = 1 AND id >= 0").count() == 13
    assert all("/part=1/" in path for path in decider.requests[-1].paths)


def test_partition_outside_the_table_is_pruned(spark, decider, partitioned_table):
    assert spark.table("many").where("part = 9 AND id >= 0").count() == 10
    header = decider.requests[-1].header
    assert header["location"].endswith("/t")
    assert header["table"] == "spark_catalog.default.many"
    assert header["roots"][0].endswith("/elsewhere")


def test_table_without_partition_filter_is_pruned(spark, decider, partitioned_table):
    assert spark.table("many").where("id >= 0").count() == 10 + 10
    assert len(decider.requests) == 1


def test_dynamic_partition_pruning_still_happens(spark, truthful, partitioned, parts):
    spark.read.parquet(partitioned).createOrReplaceTempView("facts")
    spark.read.parquet(parts).createOrReplaceTempView("keys")
    frame = spark.sql(
        "SELECT * FROM facts JOIN keys ON facts.part = keys.part "
        "WHERE keys.id = 17 AND facts.id < 1000"
    )
    assert len(frame.collect()) == 13
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in text
    assert "ReusedExchange" in text or "SubqueryBroadcast" in text


def test_equal_scans_share_an_exchange(spark, truthful, parts, set_conf):
    set_conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    set_conf("spark.sql.adaptive.enabled", "false")
    counts = "(SELECT part, count(*) AS n FROM t WHERE id = 17 GROUP BY part)"
    spark.read.parquet(parts).createOrReplaceTempView("t")
    frame = spark.sql(f"SELECT * FROM {counts} a JOIN {counts} b ON a.n = b.n")
    assert "ReusedExchange" in plan_text(frame)
    assert frame.count() == 1


def test_different_filters_share_no_exchange(spark, truthful, parts, set_conf):
    set_conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.read.parquet(parts).createOrReplaceTempView("t")
    frame = spark.sql(
        "SELECT a.id, b.id FROM (SELECT * FROM t WHERE id = 17) a "
        "JOIN (SELECT * FROM t WHERE id = 20) b ON a.part = b.part"
    )
    assert [tuple(row) for row in frame.collect()] == [(17, 20)]


def test_bucketed_join_needs_no_shuffle_and_is_right(spark, decider, bucketed, set_conf):
    set_conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    set_conf("spark.sql.adaptive.enabled", "false")
    decider.piece = "_00002"
    kept = {row.id for row in spark.table(bucketed).where("id >= 0").collect()}
    frame = spark.sql("SELECT a.id FROM bucketed a JOIN bucketed b ON a.id = b.id WHERE a.id >= 0")
    assert 0 < len(kept) < 40
    assert {row.id for row in frame.collect()} == kept
    assert "Exchange" not in plan_text(frame).split("Physical Plan")[1]


def test_metadata_columns_are_right_and_unknown(spark, decider, parts):
    frame = spark.read.parquet(parts).where("id >= 0 AND _metadata.file_size > 0")
    row = frame.selectExpr("_metadata.file_name", "input_file_name()").first()
    assert row[0] in row[1]
    assert frame.count() == 10
    assert all(part[-1] != ["col", "_metadata", "struct"] for part in decider.filters)


def test_nested_pruning_sends_the_pruned_schema(spark, decider, folder):
    spark.range(5).selectExpr("named_struct('a', id, 'b', id) s", "id").write.parquet(folder)
    spark.read.parquet(folder).where("s.a = 3").select("s.a").collect()
    nested, _ = decider.requests[-1].header["dataSchema"]["fields"]
    assert [field["name"] for field in nested["type"]["fields"]] == ["a"]
    path = ["GetStructField", {"name": "a"}, ["col", "s", "struct<a:bigint>"]]
    assert ["EqualTo", {}, path, ["lit", 3, "bigint"]] in decider.filters

"""Every way to read files passes the rule."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexinterfaces import SETTINGS, KeepNamed, SetConf, write_parts

from snaploom.skipping.spark.optimizer import requests

Read = Callable[[SparkSession, str], DataFrame]

PATH_READS: dict[str, Read] = {
    "folder": lambda spark, path: spark.read.parquet(path),
    "glob": lambda spark, path: spark.read.parquet(f"{path}/part-*"),
    "several": lambda spark, path: spark.read.parquet(
        *(str(file) for file in Path(path).glob("part-*"))
    ),
    "schema": lambda spark, path: spark.read.schema("id bigint").parquet(path),
}

QUERIES: dict[str, str] = {
    "plain": "SELECT * FROM parts WHERE id >= 0",
    "projection": "SELECT id + 1 FROM (SELECT id, part FROM parts) WHERE id >= 0",
    "alias": "SELECT * FROM (SELECT id AS n FROM parts) WHERE n >= 0",
    "cte": "WITH c AS (SELECT * FROM parts) SELECT * FROM c WHERE id >= 0",
    "in": "SELECT * FROM range(40) r WHERE r.id IN (SELECT id FROM parts WHERE id >= 0)",
    "exists": "SELECT * FROM range(40) r WHERE EXISTS "
    "(SELECT 1 FROM parts p WHERE p.id = r.id AND p.id >= 0)",
    "self join": "SELECT * FROM parts a JOIN parts b ON a.id = b.id WHERE a.id >= 0",
}


@pytest.mark.parametrize("read", PATH_READS.values(), ids=PATH_READS)
def test_reads_by_path_are_pruned(spark, decider, parts, read):
    assert read(spark, parts).where("id >= 0").count() == 10


def test_path_in_sql_is_pruned(spark, decider, parts, set_conf):
    set_conf("spark.sql.runSQLOnFiles", "true")
    assert spark.sql(f"SELECT * FROM parquet.`{parts}` WHERE id >= 0").count() == 10


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_queries_of_a_table_are_pruned(spark, decider, table, query):
    assert len(spark.sql(query).collect()) == 10


def test_scalar_subquery_is_pruned(spark: SparkSession, decider: KeepNamed, table: str) -> None:
    query = "SELECT * FROM range(1) WHERE id < (SELECT count(*) FROM parts WHERE id >= 10)"
    assert spark.sql(query).collect() == []


def test_union_asks_for_each_side(spark: SparkSession, decider: KeepNamed, table: str) -> None:
    rows = spark.sql(
        "SELECT id FROM parts WHERE id < 5 UNION ALL SELECT id FROM parts WHERE id > 5"
    )
    assert rows.count() == 5 + 4


def test_a_query_asks_once_for_a_relation(spark, decider, parts):
    spark.read.parquet(parts).where("id >= 0").collect()
    assert [request.header["mode"] for request in decider.requests] == ["estimate"]


def test_no_filter_asks_nothing(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    assert spark.read.parquet(parts).count() == 40
    assert decider.headers == []


def test_relation_without_concern_is_asked_for_no_files(spark, decider, parts):
    requests.install(spark, decider, SETTINGS, lambda header: False)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40
    assert decider.requests == []


@pytest.mark.parametrize("kind", ["TEMPORARY VIEW", "VIEW"])
def test_views_are_pruned(spark: SparkSession, decider: KeepNamed, table: str, kind: str) -> None:
    spark.sql(f"CREATE {kind} seen AS SELECT id AS n FROM parts")
    assert spark.sql("SELECT * FROM seen WHERE n >= 0").count() == 10
    spark.sql("DROP VIEW seen")


def test_partition_folder_read_on_its_own_is_pruned(spark, decider, partitioned):
    frame = spark.read.parquet(f"{partitioned}/part=1").where("id >= 0")
    assert frame.count() == 3
    assert decider.requests[-1].header["roots"][0].endswith("/t/part=1")


def test_cached_frame_is_read_from_its_cache(spark, decider, parts):
    cached = spark.read.parquet(parts).cache()
    assert cached.count() == 40
    assert spark.read.parquet(parts).where("id >= 0").count() == 40
    cached.unpersist(blocking=True)


def test_filtered_frame_is_cached_pruned(spark, decider, parts):
    cached = spark.read.parquet(parts).where("id >= 0").cache()
    assert cached.count() == 10
    decider.piece = "part-00001"
    assert spark.read.parquet(parts).where("id >= 0").agg({"id": "max"}).first()[0] == 9
    cached.unpersist(blocking=True)


def test_sixteen_queries_on_four_threads_are_right(spark, truthful, parts):
    def ids(wanted: int) -> list[int]:
        return [row.id for row in spark.read.parquet(parts).where(f"id = {wanted}").collect()]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ids, range(0, 32, 2))) == [[i] for i in range(0, 32, 2)]
    assert len(truthful.requests) == 16


@pytest.mark.parametrize(
    ("source", "is_second"),
    [*product(("parquet", "csv", "json", "orc", "text"), (False, True)), ("avro", False)],
)
def test_formats_are_pruned_in_both_generations_of_scans(
    spark: SparkSession,
    decider: KeepNamed,
    tmp_path: Path,
    source: str,
    is_second: bool,
    set_conf: SetConf,
) -> None:
    name = "org.apache.spark.sql.avro.AvroFileFormat" if source == "avro" else source
    column = "cast(id as string) as value"
    path = write_parts(spark, tmp_path / source, source=name, columns=(column,))
    if is_second:
        set_conf("spark.sql.sources.useV1SourceList", "")
    frame = spark.read.format(name).schema("value string").load(path)
    assert frame.where("value >= '0'").count() == 10
    assert decider.requests[-1].header["format"] == source


def test_aggregate_pushed_into_a_scan_is_unchanged(spark, decider, partitioned, set_conf):
    set_conf("spark.sql.sources.useV1SourceList", "")
    set_conf("spark.sql.parquet.aggregatePushdown", "true")
    frame = spark.read.parquet(partitioned).where("part = 1").groupBy().count()
    assert frame.first()[0] == 13


def test_streams_are_unchanged(spark, decider, parts, folder):
    stream = spark.readStream.schema("id bigint").parquet(parts).where("id >= 0")
    query = (
        stream.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .format("parquet")
        .start(f"{folder}/rows")
    )
    query.awaitTermination()
    assert spark.read.parquet(f"{folder}/rows").count() == 40


TARGET = "taken"


@pytest.fixture
def target(spark: SparkSession) -> Iterator[str]:
    yield TARGET
    spark.sql(f"DROP TABLE IF EXISTS {TARGET}")


def test_create_table_as_select_is_pruned(spark, decider, table, target):
    spark.sql(f"CREATE TABLE {target} USING parquet AS SELECT * FROM {table} WHERE id >= 0")
    assert spark.table(target).count() == 10


def test_insert_select_is_pruned(spark, decider, table, target):
    spark.sql(f"CREATE TABLE {target} (id bigint) USING parquet")
    spark.sql(f"INSERT INTO {target} SELECT id FROM {table} WHERE id >= 0")
    assert spark.table(target).count() == 10


def test_write_of_a_frame_is_pruned(spark, truthful, table, folder):
    spark.table(table).where("id = 17").write.parquet(folder)
    assert [row.id for row in spark.read.parquet(folder).collect()] == [17]
    assert truthful.requests[0].paths


def test_overwriting_what_is_read_is_still_refused(spark, truthful, table):
    with pytest.raises(AnalysisException, match="UNSUPPORTED_OVERWRITE"):
        spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE id = 17")
    assert spark.table(table).count() == 40


def test_appending_to_what_is_read_appends_the_right_rows(spark, truthful, target, tmp_path):
    path = write_parts(spark, tmp_path / "t")
    spark.sql(f"CREATE TABLE {target} USING parquet LOCATION '{path}'")
    spark.sql(f"INSERT INTO {target} SELECT * FROM {target} WHERE id = 7")
    rows = spark.table(target)
    assert [row.id for row in rows.where("id IN (7, 17)").orderBy("id").collect()] == [7, 7, 17]


def test_refreshed_table_is_listed_again(spark, truthful, target, folder):
    spark.range(10).write.parquet(folder)
    spark.sql(f"CREATE TABLE {target} USING parquet LOCATION '{folder}'")
    assert spark.table(target).where("id >= 0").count() == 10
    spark.range(20).write.mode("overwrite").parquet(folder)
    spark.sql(f"REFRESH TABLE {target}")
    assert spark.table(target).where("id >= 0").count() == 20

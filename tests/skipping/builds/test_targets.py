"""What can be indexed, what its terms are, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import build, index, names

from snaploom.errors import IndexNotPossible, TargetNotIndexable
from snaploom.output.layout import MARKER
from snaploom.skipping.core.definition import column_term
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetlookup import open_path, open_table


@pytest.fixture(scope="module")
def target(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkTarget:
    """Four files in two partitions."""
    folder = str(tmp_path_factory.mktemp("targets") / "a [b] {c}")
    spark.sql(
        """SELECT id AS Id, struct(id AS x, array(id) AS many) AS S, string(id) AS `a.b`,
        DATE '2020-01-01' AS Day, if(id < 2, 'a/b', NULL) AS p, CAST(id AS char(3)) AS note
        FROM range(0, 4, 1, 4)"""
    ).write.partitionBy("Day", "p").parquet(folder)
    escaped = folder.replace("[", "\\[").replace("{", "\\{")
    return open_path(spark, escaped + "/", "parquet")


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE DATABASE indexable")
    yield "indexable"
    spark.sql("DROP DATABASE indexable CASCADE")


def test_the_uri_has_no_trailing_slash(target: SparkTarget) -> None:
    assert target.target.uri.startswith("file:/")
    assert target.target.uri.endswith("/a [b] {c}")
    assert target.partition_columns == (("Day", "date"), ("p", "string"))


@pytest.mark.parametrize(
    ("name", "expected", "data_type"),
    [
        ("ID", ("Id",), "bigint"),
        ("s.X", ("S", "x"), "bigint"),
        ("`A.b`", ("a.b",), "string"),
        ("day", ("Day",), "date"),
    ],
)
def test_names_are_resolved_as_spark_does(name, expected, data_type, target):
    assert target.column(name) == column_term(expected, data_type)


@pytest.mark.parametrize("name", ["missing", "a.b", "s.y", "S", "s.many", "`open", "id.x"])
def test_what_is_no_column_is_refused(name: str, target: SparkTarget) -> None:
    with pytest.raises(IndexNotPossible) as raised:
        target.column(name)
    assert raised.value.hint


@pytest.mark.parametrize(
    "text",
    ["rand()", "max(id)", "missing + 1", "explode(array(id))", "1", "array(id)", "id +",
     "(SELECT 1)", "id + (SELECT max(Id) FROM range(1) AS t(Id))", "input_file_name()"],
)  # fmt: skip
def test_what_is_no_expression_over_the_row_is_refused(text: str, target: SparkTarget) -> None:
    with pytest.raises(IndexNotPossible):
        target.expression(text)


def test_an_expression_has_one_term_however_it_is_spelt(target: SparkTarget) -> None:
    assert target.expression("ID + 1") == target.expression("Id+1")
    assert target.expression("id") == target.column("id")
    assert target.expression("Id + 1").label == "Id + 1"


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("p = 'a/b'", 2),
        ("p IS NULL", 2),
        ("Day > DATE '2020-01-01'", 0),
        ("day = '2020-01-01' AND _metadata.file_path LIKE '%part-00001%'", 1),
    ],
)
def test_where_chooses_files(where: str, count: int, target: SparkTarget) -> None:
    assert target.list_files(where).num_rows == count


@pytest.mark.parametrize(
    "where", ["id = 1", "rand() > 0.5", "1 = (SELECT 1)", "p =", "p", "count(*) > 1"]
)
def test_where_about_anything_else_is_refused(where: str, target: SparkTarget) -> None:
    with pytest.raises(IndexNotPossible):
        target.list_files(where)


def test_a_table_with_a_partition_elsewhere_is_built(spark, database, tmp_path):
    spark.sql(f"CREATE TABLE {database}.t (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {database}.t VALUES (1, 1), (2, 2)")
    spark.range(30, 40).coalesce(1).write.parquet(str(tmp_path / "elsewhere"))
    spark.sql(f"ALTER TABLE {database}.t ADD PARTITION (p = 3) LOCATION '{tmp_path}/elsewhere'")
    target = open_table(spark, f"{database}.t")
    rows = build(
        target, index(target, "MIN_MAX", "id"), index(target, "PARTITION", "p", index_id="i2")
    )
    assert target.target.table == f"spark_catalog.{database}.t"
    assert {(r["i1.min"], r["i1.max"], r["i2.value"]) for r in rows} == {
        (1, 1, 1), (2, 2, 2), (30, 39, 3),
    }  # fmt: skip


def test_files_added_to_a_table_by_others_are_seen(spark, database, tmp_path):
    spark.range(1).coalesce(1).write.parquet(str(tmp_path / "t"))
    spark.sql(f"CREATE TABLE {database}.t (id BIGINT) USING parquet LOCATION '{tmp_path}/t'")
    target = open_table(spark, f"{database}.t")
    assert target.list_files("").num_rows == 1
    spark.range(1).coalesce(1).write.mode("append").parquet(str(tmp_path / "t"))
    assert len(names(build(target, index(target, "MIN_MAX", "id")))) == 2


def test_a_column_with_a_default_is_scanned(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.t (id BIGINT) USING parquet")
    spark.sql(f"INSERT INTO {database}.t VALUES (1)")
    spark.sql(f"ALTER TABLE {database}.t ADD COLUMN c INT DEFAULT 42")
    target = open_table(spark, f"{database}.t")
    (row,) = build(target, index(target, "MIN_MAX", "c"))
    assert (row["i1.min"], row["i1.max"], row["i1.nulls"]) == (42, 42, 0)


def test_char_and_collated_columns_are_refused(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.t (c CHAR(5), u STRING COLLATE UTF8_LCASE) USING parquet")
    target = open_table(spark, f"{database}.t")
    for name in ("c", "u"):
        with pytest.raises(IndexNotPossible):
            target.column(name)


def test_views_are_refused_with_their_tables(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.t (id BIGINT) USING parquet")
    spark.sql(f"CREATE VIEW {database}.v AS SELECT * FROM {database}.t")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW temporary AS SELECT * FROM {database}.t")
    for name in (f"{database}.v", "temporary"):
        with pytest.raises(TargetNotIndexable) as raised:
            open_table(spark, name)
        assert "view" in raised.value.message
        assert f"{database}.t" in str(raised.value.found)
    spark.catalog.dropTempView("temporary")


def test_what_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    for refused in (
        lambda: open_table(spark, "nowhere"),
        lambda: open_path(spark, str(tmp_path / "nothing"), "parquet"),
        lambda: open_path(spark, str(tmp_path), "no-such-format"),
    ):
        with pytest.raises(TargetNotIndexable):
            refused()


def test_readers_that_cannot_be_relied_on_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.csv(str(tmp_path / "t"))
    with pytest.raises(TargetNotIndexable, match="DROPMALFORMED"):
        open_path(spark, str(tmp_path / "t"), "csv", {"mode": "dropMalformed"})
    with pytest.raises(TargetNotIndexable, match="binaryFile"):
        open_path(spark, str(tmp_path / "t"), "binaryFile")


def test_the_folder_of_an_output_is_refused_with_where_its_data_is(spark, tmp_path):
    spark.range(1).write.parquet(str(tmp_path / "data" / "day=1"))
    spark.range(1).write.parquet(str(tmp_path / "metadata"))
    (tmp_path / MARKER).write_text("{}")
    with pytest.raises(TargetNotIndexable) as refused:
        open_path(spark, str(tmp_path), "parquet")
    assert f"{tmp_path}/data/" in str(refused.value.hint)
    assert "target.outputDataset" in str(refused.value.hint)


def test_several_folders_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b"):
        spark.range(1).write.parquet(str(tmp_path / name))
    with pytest.raises(TargetNotIndexable, match="2 folders"):
        open_path(spark, f"{tmp_path}/*", "parquet")


def test_odd_names_of_tables_are_kept_in_backticks(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.`123` (id BIGINT) USING parquet")
    target = open_table(spark, f"{database}.`123`")
    assert target.target.table == f"spark_catalog.{database}.`123`"
    assert open_table(spark, target.target.table).target == target.target
    assert target.list_files("").num_rows == 0


def test_a_column_that_is_called_view_is_no_view(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).selectExpr("id AS `View (x)`").write.orc(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "orc")
    assert target.column("`View (x)`").data_type == "bigint"


@pytest.mark.parametrize("file_format", ["delta", "iceberg", "jdbc", "rate", "avro"])
def test_what_spark_itself_does_not_read_as_files_is_refused(file_format, spark, tmp_path):
    spark.range(1).write.parquet(str(tmp_path / "t"))
    with pytest.raises(TargetNotIndexable):
        open_path(spark, str(tmp_path / "t"), file_format)


def test_views_of_streams_of_files_and_of_rows_are_refused(spark, tmp_path):
    spark.range(1).write.parquet(str(tmp_path / "t"))
    files = spark.read.parquet(str(tmp_path / "t"))
    stream = spark.readStream.schema(files.schema).parquet(str(tmp_path / "t"))
    for frame in (files, stream, spark.range(1)):
        frame.createOrReplaceTempView("passing")
        with pytest.raises(TargetNotIndexable):
            open_table(spark, "passing")
    spark.catalog.dropTempView("passing")


def test_a_column_of_newer_snapshots_only_names_the_merged_schema(spark, tmp_path):
    spark.sql("SELECT 1 AS id").write.parquet(str(tmp_path / "data" / "t=1"))
    spark.sql("SELECT 1 AS id, 2 AS vip").write.parquet(str(tmp_path / "data" / "t=2"))
    (tmp_path / MARKER).write_text("{}")
    target = open_path(spark, str(tmp_path / "data"), "parquet")
    with pytest.raises(IndexNotPossible) as raised:
        target.column("vop")
    assert f"{tmp_path}/metadata/schema/merged.json" in str(raised.value.hint)
    assert "mergeSchema=true" in str(raised.value.hint)
    merged = open_path(spark, str(tmp_path / "data"), "parquet", {"mergeSchema": "true"})
    assert merged.column("vip") == column_term(("vip",), "int")

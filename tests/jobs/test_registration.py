"""Published snapshots as partitions of a catalog table."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.declared.shop import Shop
from support.weaving.loom import Loom, ids

from snaploom.models.common import now
from snaploom.run.published.content import remove_output
from snaploom.run.runevents import Warned

pytestmark = pytest.mark.spark

TABLE = "registered_wide"


@pytest.fixture
def loom(spark: SparkSession, tmp_path: Path) -> Iterator[Loom]:
    """Two days of orders, to be registered."""
    loom = Loom(tmp_path, folder={"registerTable": {"name": f"default.{TABLE}"}})
    for day in (1, 2):
        loom.write("order", day, ids(*range(day)))
    yield loom
    spark.sql(f"DROP TABLE IF EXISTS {TABLE}")


def rows_by_day(spark: SparkSession) -> list[int]:
    counted = spark.sql(f"SELECT count(*) FROM {TABLE} GROUP BY snapshot_epoch ORDER BY 1")
    return [row[0] for row in counted.collect()]


def test_snapshots_are_partitions_and_deleted_ones_are_none(spark, loom) -> None:
    report = loom.weave(spark).report
    assert rows_by_day(spark) == [1, 2]
    assert (report.registered.partitions, report.registered.sequence) == (2, loom.state().seq)
    loom.write("order", 3, ids(0, 1, 2))
    loom.folder["snapshotAutoDelete"] = {"maxOldSnapshots": 1}
    loom.weave(spark)
    assert rows_by_day(spark) == [2, 3]


def test_run_with_nothing_to_publish_repairs_the_table(spark, loom) -> None:
    loom.weave(spark)
    spark.sql(f"DROP TABLE {TABLE}")
    report = loom.weave(spark).report
    assert (report.snapshots, report.registered.partitions) == ((), 2)
    assert rows_by_day(spark) == [1, 2]


def test_table_has_the_columns_of_all_snapshots(spark, loom) -> None:
    loom.weave(spark)
    loom.write("order", 3, [{"id": 9, "note": "new"}])
    loom.weave(spark)
    found = spark.sql(f"SELECT data.id, data.note FROM {TABLE} ORDER BY data.note DESC NULLS LAST")
    assert [tuple(row) for row in found.take(2)] == [(9, "new"), (0, None)]


@pytest.mark.parametrize("data_format", ["JSONL", "AVRO"])
def test_times_as_text_and_other_formats_are_read_by_the_table(spark, loom, data_format) -> None:
    loom.folder |= {"dataFormat": data_format, "dataCompression": "NONE"}
    loom.folder["snapshotFormat"] = {"hivePartitioned": {"timestampFormat": "ISO8601_DATE_TIME"}}
    assert loom.weave(spark).report.registered.partitions == 2
    assert loom.weave(spark).report.registered.partitions == 2
    found = spark.table(TABLE).select("snapshot_epoch").distinct().orderBy("snapshot_epoch")
    assert [row[0] for row in found.collect()] == ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]


def test_table_of_another_owner_is_unchanged_and_publication_stands(spark, loom) -> None:
    spark.range(1).write.saveAsTable(TABLE)
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "PUBLISHED", 2: "PUBLISHED"}
    assert woven.report.registered is None
    assert any("not made for this output" in event.message for event in woven.events_of(Warned))
    assert spark.table(TABLE).columns == ["id"]


def test_deletion_drops_the_table_that_is_ours_and_then_the_files(spark, loom) -> None:
    loom.weave(spark)
    for is_dropped in (True, False):
        removed = remove_output(loom.bundle().output, now, lambda: None)
        assert (removed.table.is_dropped, removed.table.left) == (is_dropped, "")
        assert not spark.catalog.tableExists(TABLE)
    assert removed.files == 0


@pytest.mark.parametrize("owner", ["", "file:/somewhere/else/"])
def test_deletion_leaves_a_table_that_is_not_ours(spark, loom, owner) -> None:
    loom.weave(spark)
    spark.sql(f"DROP TABLE {TABLE}")
    properties = f"TBLPROPERTIES ('snaploom.folder' = '{owner}')" if owner else ""
    spark.sql(f"CREATE TABLE {TABLE} (id INT) USING parquet {properties}")
    removed = remove_output(loom.bundle().output, now, lambda: None)
    assert removed.table.left == (owner or "a table that Snaploom did not make")
    assert removed.files > 0
    assert spark.table(TABLE).columns == ["id"]


@pytest.fixture
def shop(spark, tmp_path: Path) -> Shop:
    return Shop(tmp_path).with_data()


@pytest.mark.parametrize("command", ["run", "plan"])
def test_iceberg_output_without_its_library_is_refused_before_anything(shop, command) -> None:
    result = getattr(shop.set("wide", "outputFolder.dataFormat", "ICEBERG"), command)()
    assert result.code == 1
    text = result.out + result.err
    assert "Iceberg is not on Spark's class path" in text
    assert "org.apache.iceberg:iceberg-spark-runtime-" in text
    assert "spark.jars.packages" in text
    assert not shop.published.exists()


@pytest.mark.parametrize("data_format", ["iceberg", "delta"])
def test_table_as_a_source_without_its_library_is_refused(shop, data_format) -> None:
    spec = shop.raw("customers")["spec"]["hdfsLike"]
    spec |= {"format": data_format, "sourceUriGlobs": [f"file://{shop.folder}/levels"]}
    spec.pop("sourceUriPrefix")
    result = shop.run()
    text = result.out + result.err
    assert (result.code, "Spark has no library for tables of" in text) == (1, True)
    assert "DataSource/customers spec.hdfsLike.format" in text

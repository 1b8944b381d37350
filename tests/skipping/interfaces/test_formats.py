"""Names of file formats, as users write them in every interface."""

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake

from snaploom import skipping
from snaploom.cli.main import run_command
from snaploom.policy.fileformats import AVRO_CLASS
from snaploom.skipping.spark.interfaces import enable


def by_sql(spark: SparkSession, lake: Lake) -> None:
    enable.sql(spark, f"CREATE SKIPPING INDEX ON avro.`{lake.data}` (id MIN_MAX)")
    enable.sql(spark, f"REFRESH SKIPPING INDEX ON avro.`{lake.data}`")


def by_builder(spark: SparkSession, lake: Lake) -> None:
    skipping.skipping_index(spark).on_path(lake.data, "avro").add_min_max("id").build()


def by_command(spark: SparkSession, lake: Lake) -> None:
    place = (lake.data, "--format", "avro", "--location", lake.base)
    assert run_command(["index", "build", *place, "-i", "id MIN_MAX"]) == 0


def by_resource(spark: SparkSession, lake: Lake) -> None:
    path = lake.declare(
        target={"path": {"uri": lake.data, "format": "avro"}},
        indexes=[{"type": "MIN_MAX", "column": "id"}],
    )
    assert run_command(["index", "apply", "-f", str(path)]) == 0


@pytest.mark.parametrize("declare", [by_sql, by_builder, by_command, by_resource])
def test_avro_is_indexed_and_skipped_by_its_short_name(
    spark: SparkSession, lake: Lake, declare
) -> None:
    files = Lake(lake.folder / "avro")
    spark.conf.set("spark.snaploom.skipping.locations", files.base)
    for number in range(2):
        rows = spark.range(number * 10, number * 10 + 10).coalesce(1)
        rows.write.format(AVRO_CLASS).mode("append").save(files.data)
    declare(spark, files)
    assert files.definition().target.format == "avro"
    skipping.enable(spark, files.base)
    assert spark.read.format(AVRO_CLASS).load(files.data).where("id >= 10").count() == 10
    assert skipping.statistics(spark).dropped_files == 1
    skipping.disable(spark)

"""Metadata stores whose place properties of a table or its database name."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake

from snaploom import skipping
from snaploom.cli.main import run_command
from snaploom.errors import IndexNotFound
from snaploom.plugins.xskipper.names import LOCATION
from snaploom.skipping.spark.optimizer.requests import LOCATIONS
from snaploom.skipping.statements.parser import parse_subject


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"CREATE DATABASE owned LOCATION '{tmp_path}/warehouse'")
    for number in range(3):
        rows = spark.range(number * 10, number * 10 + 10).coalesce(1)
        rows.write.mode("append").saveAsTable("owned.t")
    yield "owned"
    spark.sql("DROP DATABASE owned CASCADE")


def built(spark: SparkSession, base: Path) -> None:
    index = skipping.skipping_index(spark).on_table("owned.t").add_min_max("id")
    index.stored(str(base), "XSKIPPER").build()


def test_a_property_of_a_table_names_the_store_to_import(
    spark: SparkSession, lake: Lake, database: str, tmp_path: Path
) -> None:
    built(spark, tmp_path / "made")
    store = str(tmp_path / "store")
    indexes = skipping.skipping_indexes(spark, str(tmp_path / "made"))
    indexes.export(parse_subject("owned.t"), store)
    spark.sql(f"ALTER TABLE owned.t SET TBLPROPERTIES ('{LOCATION}' = '{store}')")
    assert run_command(["index", "import", "owned.t", "--location", lake.base]) == 0
    skipping.enable(spark, lake.base)
    assert spark.table("owned.t").where("id >= 20").count() == 10
    assert skipping.statistics(spark).dropped_files == 2
    skipping.disable(spark)


def test_a_property_of_a_database_names_the_folder_of_many_stores(
    spark: SparkSession, lake: Lake, database: str, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    built(spark, base)
    spark.conf.unset(LOCATIONS)
    files = skipping.skipping_index(spark).on_table("owned.t")
    with pytest.raises(IndexNotFound):
        files.describe()
    spark.sql(f"ALTER DATABASE owned SET DBPROPERTIES ('{LOCATION}' = '{base}')")
    assert files.describe().rows == 3
    for directory in ((), (str(base),)):
        place = ("--location", str(tmp_path / f"into{len(directory)}"))
        assert run_command(["index", "import", "owned.t", *directory, *place]) == 0


def test_files_have_no_properties(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["index", "import", lake.data, "--location", lake.base]) == 1
    assert "the location of the metadata store is not set" in capsys.readouterr().err

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.weaving.sparksession import compiled

from snaploom.errors import IndexNotFound
from snaploom.models.skippingindex import IndexState
from snaploom.plugins.flint.builder import FULL, FlintSpark


@pytest.fixture(autouse=True)
def plans_compiled(spark: SparkSession) -> Iterator[None]:
    """Spark lists tables by compiled plans only."""
    with compiled(spark):
        yield


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    frame = spark.range(40).selectExpr("id AS code", "id % 2 AS year")
    frame.write.partitionBy("year").mode("overwrite").saveAsTable("alb_logs")
    yield "alb_logs"
    spark.sql("DROP TABLE alb_logs")


def test_the_seeds_example_builds_an_index(spark: SparkSession, table: str, tmp_path: Path) -> None:
    flint = FlintSpark(spark, str(tmp_path / "indexes"))
    building = flint.skipping_index().on_table(table).filter_by("year >= 0").add_partitions("year")
    building.add_value_set("code").create()
    name = "flint_alb_logs_skipping_index"
    assert flint.refresh(name, FULL).state.phase is IndexState.ACTIVE
    described = flint.describe_index("flint_spark_catalog_default_alb_logs_skipping_index")
    assert [one.definition.type for one in described.indexes] == ["PARTITION", "VALUE_SET"]
    assert described.coverage.missing == 0
    assert flint.delete_index(name).phase is IndexState.DELETED
    flint.vacuum_index(name)


def test_other_names_are_not_found(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="flint_absent_skipping_index"):
        FlintSpark(spark, str(tmp_path)).refresh("flint_absent_skipping_index")

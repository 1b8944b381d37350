"""The interface of Python: create, build, refresh, describe, drop."""

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake

from snaploom import skipping
from snaploom.errors import IndexNotFound, IndexNotPossible
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.skipping.spark.optimizer.requests import USAGE
from snaploom.skipping.stores.port import NEVER


def test_an_index_lives_through_the_verbs_of_python(spark: SparkSession, lake: Lake) -> None:
    files = skipping.skipping_index(spark, lake.base).on_path(lake.data)
    assert files.add_min_max("price").build().indexed == 3
    lake.add("2024-01-04", 5)
    described = files.describe()
    assert described.coverage is not None
    assert (described.coverage.indexed, described.coverage.missing) == (3, 1)
    assert files.refresh("INCREMENTAL").indexed == 1
    (listed,) = skipping.skipping_indexes(spark, lake.base).list()
    assert listed.rows == 4
    assert files.drop().phase is IndexState.DELETED
    assert files.vacuum().definition is None


def test_description_shows_when_queries_of_this_session_used_an_index(
    spark: SparkSession, lake: Lake
) -> None:
    files = skipping.skipping_index(spark, lake.base).on_path(lake.data).add_min_max("price")
    files.build()
    skipping.enable(spark, lake.base)
    assert files.describe().last_used == NEVER
    assert spark.read.parquet(lake.data).where("price = 25").count() == 1
    assert files.describe().last_used > NEVER
    skipping.disable(spark)


def test_other_sessions_read_what_this_one_used(spark: SparkSession, lake: Lake) -> None:
    files = skipping.skipping_index(spark, lake.base).on_path(lake.data).add_min_max("price")
    files.build()
    skipping.enable(spark, lake.base)
    assert spark.read.parquet(lake.data).where("price = 25").count() == 1
    skipping.disable(spark)
    recorded = files.usage()
    assert recorded is not None
    assert (recorded.total.served, recorded.total.dropped_files) == (1, 2)
    assert files.describe().last_used == recorded.total.last_used


def test_usage_is_not_written_where_the_session_disables_it(
    spark: SparkSession, lake: Lake
) -> None:
    skipping.skipping_index(spark, lake.base).on_path(lake.data).add_min_max("price").build()
    skipping.enable(spark, lake.base)
    with setting(spark, USAGE, "false"):
        assert spark.read.parquet(lake.data).where("price = 25").count() == 1
    skipping.disable(spark)
    assert not list(lake.folder.rglob("usage"))


def test_verbs_without_files_or_index_are_refused(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(IndexNotPossible, match="which files"):
        skipping.skipping_index(spark, lake.base).refresh()
    with pytest.raises(IndexNotFound):
        skipping.skipping_index(spark, lake.base).on_path(lake.data).drop()

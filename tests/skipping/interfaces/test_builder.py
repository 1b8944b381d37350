"""The interface of Python: create, build, refresh, describe, drop."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from support.declared.shop import CUSTOMERS, ORDERS, SECOND_DAY, Shop, snaploom
from support.skipping.indexinterfaces import INTERFACES, Lake, by_sql

from snaploom import skipping
from snaploom.errors import IndexNotFound, IndexNotPossible
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.skipping.spark.optimizer.requests import USAGE
from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import NEVER, StoredState


def test_an_index_lives_through_the_verbs_of_python(spark: SparkSession, lake: Lake) -> None:
    files = skipping.skipping_index(spark, lake.base).on_path(lake.data)
    assert files.add_min_max("price").build().indexed == 3
    lake.add("2024-01-04", 5)
    described = files.describe()
    assert (described.coverage.indexed, described.coverage.missing) == (3, 1)
    assert files.refresh("INCREMENTAL").indexed == 1
    (listed,) = skipping.skipping_indexes(spark, lake.base).list()
    assert listed.rows == 4
    assert files.drop().phase is IndexState.DELETED
    assert files.vacuum().definition is None


def test_description_shows_when_queries_of_this_session_used_an_index(spark, lake):
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
    assert (recorded.total.served, recorded.total.dropped_files) == (1, 2)
    assert files.describe().last_used == recorded.total.last_used


def test_usage_is_not_written_where_the_session_disables_it(spark, lake):
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


@pytest.mark.parametrize("declare", INTERFACES)
def test_every_interface_makes_the_same_definition(spark, lake, declare):
    other = Lake(lake.folder / "other").fill()
    by_sql(spark, other)
    expected = other.definition()
    declare(spark, lake)
    found = lake.definition()
    assert replace(found, owner="", target=expected.target, properties=()) == replace(
        expected, properties=()
    )
    assert found.target.uri == f"file:{lake.data}"


@pytest.mark.parametrize("declare", INTERFACES[:4])
def test_a_created_index_is_empty_until_it_is_refreshed(spark, lake, declare):
    declare(spark, lake)
    assert lake.state().phase is IndexState.EMPTY
    assert not lake.state().may_skip


NOW = ("--now", "2024-06-01T00:00:00Z")


def declare(folder: Path, target: dict, column: str, **spec: object) -> Path:
    path = folder / "index.yaml"
    document = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "i"},
        "spec": {
            "target": target,
            "store": {"parquet": {"location": str(folder / "indexes")}},
            "indexes": [{"type": "MIN_MAX", "column": column}],
            **spec,
        },
    }
    path.write_text(yaml.safe_dump(document))
    return path


def state_of(folder: Path) -> StoredState:
    (store,) = open_base(str(folder / "indexes")).indexes()
    return store.read()


def rows_of(state: StoredState) -> int:
    return sum(segment.rows for segment in state.segments if not segment.removed)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    made = Shop(tmp_path).with_data()
    made.day("orders", ORDERS, SECOND_DAY)
    made.day("customers", CUSTOMERS, SECOND_DAY)
    return made


def test_an_index_follows_every_publication(shop: Shop, tmp_path: Path) -> None:
    follow = {"refresh": {"trigger": "ON_PUBLISH"}}
    index = declare(tmp_path, {"outputDataset": "wide"}, "data.order_id", **follow)
    model = shop.write()
    for published in (1, 2):
        result = snaploom("run", "wide", "-f", model, index, "--limit", 1, *NOW)
        assert (result.code, "was not refreshed" in result.err) == (0, False), result.err
        assert re.search("SkippingIndex/i: .*refresh", result.err), result.err
        assert rows_of(state_of(tmp_path)) == published
    assert state_of(tmp_path).may_skip


def test_an_index_that_cannot_be_refreshed_fails_no_publication(shop: Shop, tmp_path: Path) -> None:
    follow = {"refresh": {"trigger": "ON_PUBLISH"}}
    index = declare(tmp_path, {"outputDataset": "wide"}, "no_such_column", **follow)
    result = snaploom("run", "wide", "-f", shop.write(), index, *NOW)
    assert result.code == 0, result.err
    assert "SkippingIndex/i was not refreshed" in result.err
    assert not (tmp_path / "indexes").exists()


def test_the_files_of_a_source_are_indexed(shop: Shop, tmp_path: Path) -> None:
    index = declare(tmp_path, {"dataSource": "orders"}, "order_id")
    result = snaploom("index", "apply", "-f", shop.write(), index)
    assert result.code == 0, result.err
    state = state_of(tmp_path)
    assert state.definition.target.uri == f"file:{tmp_path}/orders"
    assert state.definition.owner == "SkippingIndex/i"
    assert rows_of(state) == len(list((tmp_path / "orders").glob("*.parquet")))

"""Indexes of resources over sources and outputs, and indexes that follow publications."""

import re
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from support.declared.shop import CUSTOMERS, ORDERS, SECOND_DAY, Shop, snaploom

from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import StoredState

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
    assert state.definition is not None
    assert state.definition.target.uri == f"file:{tmp_path}/orders"
    assert state.definition.owner == "SkippingIndex/i"
    assert rows_of(state) == len(list((tmp_path / "orders").glob("*.parquet")))

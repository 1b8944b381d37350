import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import last
from support.skipping.indexinterfaces import Lake, command

from snaploom.errors import IndexNotPossible
from snaploom.files.objectstore import STORE_FAILURES
from snaploom.skipping.spark.interfaces.enable import enable
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import PathName


def directory(lake: Lake) -> Path:
    return Path(lake.base) / hashlib.sha256(lake.data.encode()).hexdigest()


def rows(lake: Lake) -> dict[str, dict[str, float]]:
    table = pq.ParquetDataset(directory(lake)).read()
    return dict(
        zip(table["obj_name"].to_pylist(), table["price_minmax_5"].to_pylist(), strict=True)
    )


def declared(spark: SparkSession, lake: Lake) -> IndexBuilder:
    builder = skipping_index(spark).on_path(lake.data).stored(lake.base, "XSKIPPER")
    return builder.add_min_max("price").add_bloom_filter("name", ndv=100)


def test_a_directory_follows_the_index(spark: SparkSession, lake: Lake) -> None:
    declared(spark, lake).create()
    assert rows(lake) == {}
    indexes, subject = SkippingIndexes(spark, lake.base), PathName("parquet", lake.data, ())
    indexes.refresh(subject)
    assert sorted(bounds["min"] for bounds in rows(lake).values()) == [0.0, 10.0, 20.0]
    lake.add("2024-01-03", 7)
    indexes.refresh(subject)
    assert sorted(bounds["min"] for bounds in rows(lake).values()) == [0.0, 10.0, 20.0, 70.0]
    indexes.drop(subject)
    indexes.vacuum(subject)
    assert list(directory(lake).glob("*.parquet")) == []


def test_queries_skip_by_the_native_store(spark: SparkSession, lake: Lake) -> None:
    declared(spark, lake).create()
    SkippingIndexes(spark, lake.base).refresh(PathName("parquet", lake.data, ()))
    enable(spark, lake.base)
    found = spark.read.parquet(lake.data).where("name = 'Name11'")
    assert found.count() == 1
    assert last(spark).kept_files == 1


def test_what_the_directory_cannot_hold_is_refused_with_every_reason(spark, lake):
    declaring = declared(spark, lake).add_expression("VALUE_SET", "lower(name)")
    with pytest.raises(IndexNotPossible) as refused:
        declaring.add("BLOOM_FILTER", "person.age", items="HASHES").create()
    assert "an expression is no column" in str(refused.value)
    assert "hold hashes" in str(refused.value)


def test_a_directory_that_cannot_be_written_is_reported_and_repaired(spark, lake):
    declared(spark, lake).create()
    for part in directory(lake).glob("*"):
        part.unlink()
    directory(lake).rmdir()
    directory(lake).write_text("in the way")
    indexes, subject = SkippingIndexes(spark, lake.base), PathName("parquet", lake.data, ())
    with pytest.raises(STORE_FAILURES):
        indexes.refresh(subject)
    assert lake.state().may_skip
    directory(lake).unlink()
    indexes.refresh(subject)
    assert len(rows(lake)) == 3


def test_the_command_line_declares_the_form(spark: SparkSession, lake: Lake) -> None:
    assert command("build", lake, "--form", "xskipper", "-i", "price MIN_MAX") == 0
    assert len(rows(lake)) == 3
    assert command("drop", lake) == 0
    assert command("vacuum", lake) == 0
    assert list(directory(lake).glob("*.parquet")) == []

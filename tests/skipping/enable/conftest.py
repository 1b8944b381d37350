"""An indexed folder, and a session that skips."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import build_index, write_files

from snaploom.skipping.spark.interfaces.enable import decider_of, disable, enable


@pytest.fixture(scope="session")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("indexes"))


@pytest.fixture(scope="session")
def indexed(spark: SparkSession, location: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = write_files(spark, tmp_path_factory.mktemp("indexed") / "t")
    build_index(spark, location, path, change=lambda builder: builder.add_value_set("odd"))
    return path


@pytest.fixture
def skipping(spark: SparkSession, location: str) -> Iterator[SparkSession]:
    """A session that skips with this location only, and has counted nothing yet."""
    disable(spark)
    enable(spark, location)
    decider_of(spark).counting.reset()
    yield spark
    disable(spark)


@pytest.fixture
def rows(skipping: SparkSession, indexed: str) -> DataFrame:
    return skipping.read.parquet(indexed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "t"

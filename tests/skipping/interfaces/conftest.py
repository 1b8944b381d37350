"""A lake of a few files for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake

from snaploom.skipping.stores.catalog import LOCATIONS


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path).fill()
    spark.conf.set(LOCATIONS, made.base)
    yield made
    spark.conf.unset(LOCATIONS)

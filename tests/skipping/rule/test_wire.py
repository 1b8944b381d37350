"""Texts of every length arrive as they were sent."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.skipping.spark.targets.targetfiles import list_relation


@pytest.mark.parametrize("count", [1, 30, 60, 400])
def test_long_listings_arrive_whole(count: int, spark: SparkSession, tmp_path: Path) -> None:
    names = [f"é \U0001f600 {number:05d} {'x' * (number % 90)}.json" for number in range(count)]
    for number, name in enumerate(names):
        (tmp_path / name).write_text("{}" + " " * number)
    frame = spark.read.schema("a INT").json(str(tmp_path))
    files = list_relation(JavaRule(spark), frame, ()).files.to_pylist()
    found = {each["path"].rsplit("/", 1)[-1]: each["length"] for each in files}
    assert found == {name: 2 + number for number, name in enumerate(names)}

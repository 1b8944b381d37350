"""Points of a plane in files that all hold some of everything."""

import pytest
from pyspark.sql import SparkSession

FILES = 16


@pytest.fixture(scope="session")
def plane(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """16 files of 1,000 rows; `id` ascends, `x`, `y` and `name` are anywhere."""
    folder = tmp_path_factory.mktemp("plane") / "points"
    frame = spark.range(0, 16_000, 1, FILES).selectExpr(
        "id",
        "(id * 7919) % 16000 AS x",
        "CAST((id * 104729) % 16000 AS double) / 10 AS y",
        "format_string('name%05d', (id * 31337) % 16000) AS name",
        "IF(id % 10 = 0, NULL, named_struct('age', CAST(id % 90 AS int))) AS person",
        "map('k', id) AS extra",
    )
    frame.write.parquet(str(folder))
    return str(folder)

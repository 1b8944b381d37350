"""Rows with NULL keys are spread over Spark's tasks where files do not show that there are none."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from snaploom.sources.files.checks import SPREADING, choose_spreading

FULL, HOLES = ["id AS a", "id AS b"], ["id AS a", "nullif(id, 3) AS b"]


@pytest.mark.parametrize(
    ("written", "read", "names", "spread"),
    [
        (FULL, "*", {"a", "b"}, "false"),
        (FULL, "b, a AS other, 1 AS `_snapshot`", {"b"}, "false"),
        (HOLES, "*", {"a"}, "false"),
        (HOLES, "*", {"b"}, "true"),
        (HOLES, "b AS a, a AS b", {"a"}, "true"),
        (FULL, "nullif(a, 3) AS a", {"a"}, "true"),
        (FULL, "*", None, "true"),
    ],
)
def test_rows_are_spread_unless_a_file_shows_no_null(
    spark: SparkSession, tmp_path: Path, written, read, names, spread
) -> None:
    spark.range(0, 9, 1, 1).selectExpr(*written).write.parquet(f"{tmp_path}/a b")
    spark.read.parquet(f"{tmp_path}/a b").createOrReplaceTempView("rows_of_files")
    frame = spark.sql(f"SELECT {read} FROM rows_of_files")
    choose_spreading(spark, [(frame.unionAll(frame), names)])
    assert spark.conf.get(SPREADING) == spread


def test_rows_of_unknown_files_are_spread(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(9).write.parquet(f"{tmp_path}/files")
    spark.range(9).write.csv(f"{tmp_path}/texts")
    files, texts = spark.read.parquet(f"{tmp_path}/files"), spark.read.csv(f"{tmp_path}/texts")
    for frame, name in ((spark.range(9), "id"), (texts, "_c0")):
        choose_spreading(spark, [(files, {"id"}), (frame, {name})])
        assert spark.conf.get(SPREADING) == "true"
    for file in (tmp_path / "files").glob("*.parquet"):
        file.unlink()
    choose_spreading(spark, [(files, {"id"})])
    assert spark.conf.get(SPREADING) == "true"

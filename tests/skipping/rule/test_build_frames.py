"""Facts about a frame that an index build needs."""

import json
from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Request, write_parts

from snaploom.skipping.spark.relations.hadoop import JavaRule


def test_listing_has_every_file_with_its_identity(spark: SparkSession, parts: str) -> None:
    request = Request.parse(JavaRule(spark).listing(spark.read.parquet(parts)._jdf))
    files = {f"file:{file}": file.stat() for file in Path(parts).glob("part-*")}
    assert set(request.paths) == set(files)
    assert request.lengths == [files[path].st_size for path in request.paths]
    assert request.modified == [files[path].st_mtime_ns // 10**6 for path in request.paths]


def test_listing_has_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    columns = ("id", "if(id < 10, null, date'1970-01-02') as day")
    path = write_parts(spark, tmp_path / "t", columns=columns, partition_by=("day",))
    request = Request.parse(JavaRule(spark).listing(spark.read.parquet(path)._jdf))
    for file, (day,) in zip(request.paths, request.header["partitions"], strict=True):
        assert day == (None if "HIVE_DEFAULT" in file else 1)


def test_paths_are_not_encoded(spark: SparkSession, tmp_path: Path) -> None:
    path = write_parts(spark, tmp_path / "a b%20é")
    request = Request.parse(JavaRule(spark).listing(spark.read.parquet(path)._jdf))
    assert all(file.startswith(f"file:{path}/part-") for file in request.paths)


def test_description_names_table_location_and_schema(spark, table, parts):
    (text,) = JavaRule(spark).describe(spark.table(table)._jdf, ["a.b"])
    header = json.loads(text)
    assert header["table"] == "spark_catalog.default.parts"
    assert header["location"] == f"file:{parts}"
    assert header["format"] == "parquet"
    assert [field["name"] for field in header["dataSchema"]["fields"]] == ["id", "text", "part"]
    assert header["settings"] == {"a.b": None}


@pytest.mark.parametrize("sources", ["", "parquet"])
def test_description_is_the_same_for_both_generations(spark, parts, set_conf, sources):
    set_conf("spark.sql.sources.useV1SourceList", sources)
    (header,) = JavaRule(spark).describe(spark.read.parquet(parts)._jdf)
    assert json.loads(header)["roots"] == [f"file:{parts}"]


def test_description_finds_relations_in_subqueries(spark: SparkSession, table: str) -> None:
    query = f"SELECT * FROM range(3) r WHERE EXISTS (SELECT 1 FROM {table} WHERE id = r.id)"
    assert len(JavaRule(spark).describe(spark.sql(query)._jdf)) == 1


def test_listing_of_no_files_is_refused(spark: SparkSession) -> None:
    with pytest.raises(IllegalArgumentException, match="relations of files: 0"):
        JavaRule(spark).listing(spark.range(3)._jdf)

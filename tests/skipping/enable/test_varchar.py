"""VARCHAR columns of tables are strings to an index; CHAR columns, which are padded, have none."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import on_and_off

from snaploom.errors import IndexNotPossible
from snaploom.skipping.spark.interfaces.enable import explain
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

CONDITIONS = ("v = 'v2'", "upper(v) = 'V2'", "v LIKE 'v2%'", "v IN ('v2', 'zz')", "s.x = 'x2'")
FILES = 4


@pytest.fixture(params=["parquet", "orc", "json"])
def source(skipping: SparkSession, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The format of the table `padded_texts`, which has four files of one row."""
    columns = "v VARCHAR(20), c CHAR(5), s STRUCT<x: VARCHAR(3)>"
    skipping.sql(f"CREATE TABLE padded_texts ({columns}) USING {request.param} LOCATION '{folder}'")
    for number in range(FILES):
        row = f"'v{number}', 'c{number}', named_struct('x', 'x{number}')"
        skipping.sql(f"INSERT INTO padded_texts VALUES ({row})")
    yield request.param
    skipping.sql("DROP TABLE padded_texts")


def test_varchar_of_a_table_is_indexed_and_skipped(skipping, location, source):
    builder = skipping_index(skipping, location).on_table("padded_texts").add_min_max("v", "s.x")
    builder.add_expression("VALUE_SET", "upper(v)").build()
    for condition in CONDITIONS:
        frame = skipping.table("padded_texts").where(condition)
        assert explain(frame).relations[0].kept_files == 1, condition
        on, off = on_and_off(skipping, lambda frame=frame: frame.select("*"))
        assert on == off, condition


def test_index_of_the_path_serves_path_and_table(skipping, location, folder, source):
    skipping_index(skipping, location).on_path(str(folder), source).add_min_max("v").build()
    served = [skipping.read.format(source).load(str(folder)), skipping.table("padded_texts")]
    # The schema that JSON files give has its columns in another order than the table's.
    for frame in served[:1] if source == "json" else served:
        assert explain(frame.where("v = 'v2'")).relations[0].kept_files == 1


def test_char_is_refused_with_what_to_do(skipping, location, source):
    with pytest.raises(IndexNotPossible, match=r"VARCHAR or STRING"):
        skipping_index(skipping, location).on_table("padded_texts").add_min_max("c").create()

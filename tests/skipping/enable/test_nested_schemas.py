"""Indexes serve a query whichever fields of a struct it reads, in all formats."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import FILES, on_and_off

from snaploom.policy.fileformats import AVRO_CLASS
from snaploom.skipping.spark.interfaces.enable import explain, setting
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

FORMATS = ("parquet", "orc", "json", "avro")
V1, V2 = "avro,csv,json,kafka,orc,parquet,text", ""
SCHEMA = (
    "id long, st struct<a: long, b: string, c: struct<d: long, e: long>>,"
    " ar array<struct<x: long, y: long>>, mp map<string, struct<x: long, y: long>>"
)
ROWS = (
    "id",
    "struct(id as a, cast(id as string) b, struct(id as d, -id as e) c) st",
    "array(struct(id as x, id as y)) ar",
    "map('k', struct(id as x, id as y)) mp",
)
EXPRESSIONS = ("st.a + st.c.e + id", "lower(ST.B)", "ar[0].x", "element_at(mp, 'k').Y", "ar.y[0]")
CONDITIONS = (
    "id = 25",
    "st.a = 25",
    "st.c.e = -25",
    "st.a + st.c.e + id = 25",
    "lower(st.b) = '25'",
    "AR[0].X = 25",
    "element_at(mp, 'k').y = 25",
    "ar.y[0] = 25 AND st IS NOT NULL",
)
READ = (("*",), ("id",), ("st.b",), ("st.a", "ar.x"), ("st.c", "mp"), ("ar", "st"))


@pytest.fixture(scope="module")
def nested(spark: SparkSession, location: str, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """By format, a path whose five files are indexed by fields and by expressions over them."""
    paths = {}
    for source in FORMATS:
        path = str(tmp_path_factory.mktemp("nested") / source)
        rows = spark.range(0, FILES * 10, 1, FILES).selectExpr(*ROWS)
        rows.write.format(AVRO_CLASS if source == "avro" else source).save(path)
        spark.sql(f"DROP TABLE IF EXISTS nested_{source}")
        if source == "json":
            spark.sql(f"CREATE TABLE nested_json ({SCHEMA}) USING json LOCATION '{path}'")
        builder = skipping_index(spark, location).add_min_max("id", "st.a", "st.c.e")
        for text in EXPRESSIONS:
            builder = builder.add_expression("VALUE_SET", text)
        (
            builder.on_table("nested_json") if source == "json" else builder.on_path(path, source)
        ).build()
        paths[source] = path
    return paths


@pytest.fixture(params=itertools.product((V1, V2), ("true", "false")), ids=str)
def reading(skipping: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Both generations of sources, with nested pruning and without."""
    sources, is_pruned = request.param
    with ExitStack() as stack:
        stack.enter_context(setting(skipping, "spark.sql.sources.useV1SourceList", sources))
        pruning = "spark.sql.optimizer.nestedSchemaPruning.enabled"
        stack.enter_context(setting(skipping, pruning, is_pruned))
        yield


def frame_of(spark: SparkSession, source: str, path: str) -> DataFrame:
    if source == "json":
        return spark.table("nested_json")
    return spark.read.format(AVRO_CLASS if source == "avro" else source).load(path)


@pytest.mark.parametrize("source", FORMATS)
def test_index_is_used_whatever_fields_a_query_reads(skipping, reading, nested, source):
    for condition, columns in itertools.product(CONDITIONS, READ):
        frame = frame_of(skipping, source, nested[source]).where(condition).select(*columns)
        (outcome,) = explain(frame).relations
        assert outcome.kept_files == 1, (condition, columns, outcome)


@pytest.mark.long
@pytest.mark.parametrize("source", FORMATS)
def test_rows_are_the_same_when_fields_are_left_out(skipping, reading, nested, source):
    condition = " OR ".join(f"({each})" for each in CONDITIONS)
    for columns in (("id", "st.b"), ("st.a", "ar.x")):
        query = frame_of(skipping, source, nested[source]).where(condition).select(*columns)
        on, off = on_and_off(skipping, lambda query=query: query.select("*"))
        assert on == off
        assert len(off) == 1


def test_fields_found_by_id_may_be_left_out(skipping, location, folder):
    with_ids = skipping.createDataFrame([], "st struct<a: long, b: long>").schema
    for number, field in enumerate(with_ids["st"].dataType.fields):
        field.metadata = {"parquet.field.id": number}
    rows = skipping.range(0, 50, 1, FILES).selectExpr("struct(id as a, id as b) st")
    skipping.createDataFrame(rows.rdd, with_ids).write.parquet(str(folder))
    with setting(skipping, "spark.sql.parquet.fieldId.read.enabled", "true"):
        skipping_index(skipping, location).on_path(str(folder)).add_min_max("st.a").build()
        frame = skipping.read.schema(with_ids).parquet(str(folder)).where("st.a = 25")
        assert explain(frame.select("st.a")).relations[0].kept_files == 1


def test_orc_that_finds_fields_by_position_is_not_indexed(skipping, nested):
    level = "orc.force.positional.evolution.level"
    frame = skipping.read.option(level, "2").orc(nested["orc"]).where("st.a = 25")
    (outcome,) = explain(frame).relations
    assert "fields of structs go by position" in outcome.reasons[0]
    assert outcome.kept_files == FILES

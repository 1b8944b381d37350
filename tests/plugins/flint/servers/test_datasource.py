"""`format("flint")` against a real OpenSearch."""

import datetime as dt
from collections.abc import Iterator
from functools import reduce
from itertools import chain

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from support.skipping.fakeopensearch import options_of, unused_name

from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.datasource import register
from snaploom.plugins.flint.documents import read_hits
from snaploom.plugins.flint.options import RefreshPolicy
from snaploom.plugins.flint.segments import Action, Write, write_all

pytestmark = pytest.mark.long
SCHEMA = (
    "id int, flag boolean, l bigint, s smallint, b tinyint, d double, f float, text string, "
    "day date, at timestamp, raw binary, inner struct<x int, y string, z array<date>>, "
    "many array<int>"
)


@pytest.fixture(scope="module")
def flint(spark: SparkSession, real_port: int) -> Iterator[SparkSession]:
    settings = {"host": "127.0.0.1", "port": str(real_port), "write.refresh_policy": "IMMEDIATE"}
    for name, value in settings.items():
        spark.conf.set(f"spark.datasource.flint.{name}", value)
    register(spark)
    yield spark
    for name in settings:
        spark.conf.unset(f"spark.datasource.flint.{name}")


@pytest.fixture
def real_client(real_port: int) -> Iterator[OpenSearchClient]:
    with OpenSearchClient(options_of(real_port)) as client:
        yield client


def sample(spark: SparkSession) -> DataFrame:
    utc = dt.UTC
    full = (
        [1, True, 2**53 + 1, -5, 7, 0.1, 1.5, "é\U0001f600", dt.date(2020, 2, 29)],
        [dt.datetime(2020, 1, 1, 1, 2, 3, 456_789, utc), b"\x00\xff", (1, "y", [dt.date(1, 1, 1)])],
        [[3, 1, 2]],
    )
    other = (
        [2, False, -(2**63), 0, -128, -0.0, 2.5, "", dt.date(1969, 12, 31)],
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, utc), b"", (None, "n", None)],
        [[9]],
    )
    empty: list[object] = [3, *[None] * 12]
    rows = [[*chain(*full)], [*chain(*other)], empty]
    return spark.createDataFrame([tuple(row) for row in rows], SCHEMA)


@pytest.fixture(scope="module")
def written(flint: SparkSession) -> str:
    name = unused_name("t")
    sample(flint).write.format("flint").mode("append").save(name)
    return name


def sorted_rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("id").collect()


def test_all_types_come_back_with_the_schema(flint: SparkSession, written: str) -> None:
    read = flint.read.format("flint").schema(SCHEMA).load(written)
    assert sorted_rows(read) == sorted_rows(sample(flint))


def test_the_schema_is_that_of_the_mapping(flint: SparkSession, written: str) -> None:
    read = flint.read.format("flint").load(written)
    expected = {f.name: f.dataType.simpleString() for f in sample(flint).schema.fields}
    expected["many"] = "int"
    expected["inner"] = "struct<x:int,y:string,z:date>"
    assert {f.name: f.dataType.simpleString() for f in read.schema.fields} == expected


CONDITIONS = [
    "id = 1",
    "id <> 1",
    "id in (1, 3, null)",
    "id not in (1, 3)",
    "id > 1 and id <= 2",
    "text = ''",
    "text like 'é%'",
    "text >= 'a'",
    "text is null",
    "day is not null and day < '1970-01-01'",
    "day = '2020-02-29'",
    "at > '1969-12-31 23:59:59.999'",
    "at = '2020-01-01 01:02:03.456789'",
    "at = '2020-01-01 01:02:03.456'",
    "at < '2020-01-01 01:02:03.4568'",
    "d = 0.0",
    "d < 0.0 or d >= 0",
    "d >= 0.0",
    "d <= cast('-0.0' as double)",
    "f = 1.5f",
    "flag",
    "not flag",
    "flag <=> null",
    "inner.x = 1",
    "inner.y is null",
    "l = 9007199254740993",
    "id % 2 = 1",
    "raw is not null",
]


def matching(frame: DataFrame) -> dict[str, list[int]]:
    parts = [frame.where(text).selectExpr(f"{n} AS n", "id") for n, text in enumerate(CONDITIONS)]
    found = [(row.n, row.id) for row in reduce(DataFrame.union, parts).collect()]
    return {t: sorted(i for k, i in found if k == n) for n, t in enumerate(CONDITIONS)}


def test_filters_keep_the_rows_they_should(flint: SparkSession, written: str) -> None:
    read = flint.read.format("flint").schema(SCHEMA).load(written)
    assert matching(read) == matching(sample(flint))


def test_ids_come_from_a_column(flint: SparkSession, real_client: OpenSearchClient) -> None:
    name = unused_name("t")
    frame = flint.createDataFrame([(1, "a"), (2, "b")], "n int, code string")
    for _ in range(2):
        writer = frame.write.format("flint").option("write.id_name", "code").mode("append")
        writer.save(name)
    hits = {hit.document_id: hit.source for hit in read_hits(real_client, name)}
    assert hits == {"a": {"n": 1, "code": "a"}, "b": {"n": 2, "code": "b"}}


def test_overwriting_replaces_everything(flint: SparkSession) -> None:
    name = unused_name("t")
    flint.range(5).write.format("flint").mode("append").save(name)
    flint.range(7, 9).write.format("flint").mode("overwrite").save(name)
    rows = flint.read.format("flint").load(name).orderBy("id").collect()
    assert [row.id for row in rows] == [7, 8]


def test_the_seeds_example_reads(flint: SparkSession, real_client: OpenSearchClient) -> None:
    name = unused_name("t")
    real_client.create_index(name, {"properties": {"aInt": {"type": "integer"}}}, shards=3)
    writes = [Write(Action.INDEX, {"aInt": number}) for number in range(1234)]
    list(write_all(real_client, name, writes, RefreshPolicy.IMMEDIATE))
    frame = (
        flint.read.format("flint").option("read.scroll_size", "50").schema("aInt int").load(name)
    )
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.aInt for row in frame.collect()) == list(range(1234))
    assert frame.where("aInt < 10").count() == 10


def test_several_values_need_an_array(flint: SparkSession, written: str) -> None:
    read = flint.read.format("flint").schema("many int").load(written)
    with pytest.raises(Exception, match="ARRAY<int>"):
        read.collect()


def test_unknown_types_of_fields_are_refused(flint, real_client):
    name = unused_name("t")
    real_client.create_index(name, {"properties": {"small": {"type": "half_float"}}})
    with pytest.raises(Exception, match=r"(?s)small.*half_float"):
        flint.read.format("flint").load(name)


def test_types_without_a_field_are_refused(flint: SparkSession) -> None:
    frame = flint.sql("select cast(1 as decimal(10,2)) as price")
    with pytest.raises(Exception, match=r"(?s)price.*decimal\(10,2\)"):
        frame.write.format("flint").mode("append").save(unused_name("t"))


def test_a_misspelt_option_is_refused(flint: SparkSession) -> None:
    with pytest.raises(Exception, match="hots"):
        flint.read.format("flint").option("hots", "x").load("t001")


def test_a_password_is_in_no_plan(flint, written, capsys):
    reader = flint.read.format("flint").schema("id int").option("auth", "basic")
    frame = reader.options(username="somebody", password="s3cr3t").load(written)
    frame.explain(mode="extended")
    plans = capsys.readouterr().out + frame._jdf.queryExecution().toString()
    assert "s3cr3t" not in plans
    assert frame.count() == 3


def test_text_fields_keep_their_type(flint: SparkSession, real_client: OpenSearchClient) -> None:
    name = unused_name("t")
    frame = flint.createDataFrame([("some words",)], "body string")
    frame.withMetadata("body", {"osType": "text"}).write.format("flint").mode("append").save(name)
    assert real_client.mapping(name)["properties"]["body"] == {"type": "text"}
    read = flint.read.format("flint").load(name)
    assert read.schema["body"].metadata["osType"] == "text"
    assert read.where("body = 'some words'").count() == 1

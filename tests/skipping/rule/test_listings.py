"""Files that did not change are sent to Python once."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import SETTINGS, KeepNamed, write_parts

from snaploom.skipping.spark.optimizer import requests
from snaploom.skipping.spark.optimizer.requests import FORGOTTEN, Request
from snaploom.skipping.spark.relations.hadoop import JavaRule
from snaploom.skipping.spark.targets.targetfiles import list_relation


class Texts:
    """Keeps every file, and what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, text: str) -> str:
        self.requests.append(Request.parse(text))
        return "1" * 4

    @property
    def were_without_files(self) -> list[bool]:
        return [not request.body for request in self.requests]


@pytest.fixture
def own(spark: SparkSession, tmp_path: Path) -> str:
    return write_parts(spark, tmp_path / "t")


@contextmanager
def asking(spark: SparkSession, decider: Callable[[str], str]) -> Iterator[None]:
    requests.install(spark, decider, SETTINGS)
    try:
        yield
    finally:
        requests.uninstall(spark)


def count_each(spark: SparkSession, path: str, *conditions: str) -> None:
    for condition in conditions:
        assert spark.read.schema("id BIGINT").parquet(path).where(condition).count() == 40


def test_second_query_sends_no_files(spark: SparkSession, own: str) -> None:
    texts = Texts()
    with asking(spark, texts):
        count_each(spark, own, "id >= 0", "id >= -1", "id >= -2")
    assert texts.were_without_files == [False, True, True]
    assert len({request.listing_name for request in texts.requests}) == 1


def test_changed_file_sends_the_files_under_another_name(spark: SparkSession, own: str) -> None:
    texts = Texts()
    with asking(spark, texts):
        count_each(spark, own, "id >= 0")
        next(Path(own).glob("part-*")).touch()
        count_each(spark, own, "id >= 0")
    assert texts.were_without_files == [False, False]
    assert len({request.listing_name for request in texts.requests}) == 2


def test_installing_again_sends_the_files_under_another_name(spark: SparkSession, own: str) -> None:
    first, second = Texts(), Texts()
    for texts in (first, second):
        with asking(spark, texts):
            count_each(spark, own, "id >= 0")
    assert second.were_without_files == [False]
    assert first.requests[0].listing_name != second.requests[0].listing_name


def test_forgotten_listing_is_sent_once_more(spark: SparkSession, own: str) -> None:
    asked: list[bool] = []

    def forgetful(text: str) -> str:
        asked.append(not Request.parse(text).body)
        return FORGOTTEN if asked[-1] else "1111"

    failures, _ = requests.errors(spark)
    with asking(spark, forgetful):
        count_each(spark, own, "id >= 0", "id >= -1")
    assert asked == [False, True, False]
    assert requests.errors(spark)[0] == failures


@pytest.mark.parametrize("count", [1, 30, 60, 400])
def test_long_listings_arrive_whole(count: int, spark: SparkSession, tmp_path: Path) -> None:
    names = [f"é \U0001f600 {number:05d} {'x' * (number % 90)}.json" for number in range(count)]
    for number, name in enumerate(names):
        (tmp_path / name).write_text("{}" + " " * number)
    frame = spark.read.schema("a INT").json(str(tmp_path))
    files = list_relation(JavaRule(spark), frame, ()).files.to_pylist()
    found = {each["path"].rsplit("/", 1)[-1]: each["length"] for each in files}
    assert found == {name: 2 + number for number, name in enumerate(names)}


LITERALS = [
    ("true", True, "boolean"),
    ("1Y", 1, "tinyint"),
    ("-2S", -2, "smallint"),
    ("3", 3, "int"),
    ("9223372036854775807L", 9223372036854775807, "bigint"),
    ("float('1.1')", "1.1", "float"),
    ("double('nan')", "NaN", "double"),
    ("double('-0.0')", "-0.0", "double"),
    ("double('-Infinity')", "-Infinity", "double"),
    ("1.50BD", "1.50", "decimal(3,2)"),
    ("1E-9BD", "0.000000001", "decimal(9,9)"),
    ("date'1969-12-31'", -1, "date"),
    ("timestamp'2020-01-01 00:00:00.000001'", 1577836800000001, "timestamp"),
    ("timestamp_ntz'1960-01-01 00:00:00'", -315619200000000, "timestamp_ntz"),
    ("'a\"b\\\\c\u2028 é \U0001f600'", 'a"b\\c\u2028 é \U0001f600', "string"),
    ("cast(X'ff61' as string)", {"hex": "ff61"}, "string"),
    ("X'00ff'", {"hex": "00ff"}, "binary"),
    ("cast(null as int)", None, "int"),
    ("'a' collate UTF8_LCASE", "a", "string collate UTF8_LCASE"),
    ("array(1, null)", [1, None], "array<int>"),
]

COL = ["col", "id", "bigint"]
TEXT = ["col", "text", "string"]

CAST = {
    "timeZoneId": "UTC", "legacyCastToStr": False, "leftBracket": "{", "rightBracket": "}",
}  # fmt: skip
EXPRESSIONS = [
    ("id", COL),
    ("upper(text)", ["Upper", {}, TEXT]),
    ("cast(text as date)", ["Cast", CAST | {"dataType": "date", "evalMode": "ANSI"}]),
    ("try_cast(text as int)", ["Cast", CAST | {"dataType": "int", "evalMode": "TRY"}]),
    ("text LIKE 'a%'", ["StartsWith", {}, TEXT, ["lit", "a", "string"]]),
    ("text LIKE '_a'", ["Like", {"escapeChar": "\\"}, TEXT, ["lit", "_a", "string"]]),
    (
        "id IN (1, 2)",
        [
            "In",
            {"legacyNullInEmptyBehavior": False},
            COL,
            ["lit", 1, "bigint"],
            ["lit", 2, "bigint"],
        ],
    ),
    ("rand()", ["?", "rand()"]),
    ("_metadata.file_path", ["GetStructField", {"name": "file_path"}, ["?", "_metadata"]]),
]


def serialised(spark: SparkSession, path: str, sql: str) -> dict:
    frame = spark.read.parquet(path).selectExpr(sql)
    (column,) = json.loads(JavaRule(spark).serialise(frame._jdf))
    return column


@pytest.mark.parametrize(("sql", "value", "data_type"), LITERALS)
def test_literal_is_in_catalysts_form(spark, parts, sql, value, data_type):
    expected = {"expression": ["lit", value, data_type], "type": data_type}
    assert serialised(spark, parts, sql) == expected


@pytest.mark.parametrize(("sql", "expected"), EXPRESSIONS)
def test_expression_has_all_its_arguments(spark, parts, sql, expected):
    assert serialised(spark, parts, sql)["expression"][: len(expected)] == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cast(text as int)", "try_cast(text as int)"),
        ("cast(text as int)", "cast(text as bigint)"),
        ("text LIKE '_a' ESCAPE '!'", "text LIKE '_a' ESCAPE '?'"),
        ("CASE WHEN id = 1 THEN 2 WHEN id = 3 THEN 4 END", "CASE WHEN id = 1 THEN 2 ELSE 4 END"),
        ("id + 1", "id - 1"),
        ("hash(id)", "xxhash64(id)"),
        ("id", "part"),
    ],
)
def test_different_computations_differ(spark, parts, one, other):
    assert serialised(spark, parts, one) != serialised(spark, parts, other)


def test_char_column_keeps_its_declared_type(spark: SparkSession, folder: str) -> None:
    spark.sql(f"CREATE TABLE padded (c CHAR(5), v VARCHAR(7)) USING parquet LOCATION '{folder}'")
    text = JavaRule(spark).serialise(spark.table("padded").select("c", "v")._jdf)
    spark.sql("DROP TABLE padded")
    assert '["col","c","char(5)"]' in text
    assert '["col","v","string"]' in text


def test_scalar_subquery_is_unknown(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    spark.read.parquet(parts).createOrReplaceTempView("t")
    spark.sql("SELECT * FROM t WHERE id > 0 AND id < (SELECT max(id) FROM range(9))").collect()
    assert ["GreaterThan", {}, COL, ["lit", 0, "bigint"]] in decider.filters
    assert not any(part[0] == "LessThan" for part in decider.filters)


@pytest.mark.parametrize(
    ("items", "values"),
    [
        ([f"{n}L" for n in range(12)], list(range(12))),
        (
            [f"'{chr(97 + n)}é'" for n in range(11)] + ["null"],
            [chr(97 + n) + "é" for n in range(11)],
        ),
    ],
)
def test_long_in_list_is_sent_whole(spark, decider, parts, items, values):
    column = "id" if isinstance(values[0], int) else "text"
    spark.read.parquet(parts).where(f"{column} IN ({', '.join(items)})").collect()
    (sent,) = [part for part in decider.filters if part[0] == "InSet"]
    assert sorted(v for v in sent[1]["values"] if v is not None) == sorted(values)
    assert sent[2][1] == column


def test_python_function_is_unknown(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    spark.udf.register("twice", lambda n: n * 2, "bigint")
    frame = spark.read.parquet(parts).where("twice(id) > 4 AND id > 1")
    frame._jdf.queryExecution().optimizedPlan()
    assert ["GreaterThan", {}, COL, ["lit", 1, "bigint"]] in decider.filters
    assert "twice" not in json.dumps([p for p in decider.filters if p[0] != "?"])

"""Expressions and literals as the rule sends them."""

import json

import pytest
from pyspark.sql import SparkSession
from support.skipping.skippingrule import KeepNamed

from snaploom.skipping.spark.relations.janino import JavaRule

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
def test_literal_is_in_catalysts_form(
    spark: SparkSession, parts: str, sql: str, value: object, data_type: str
) -> None:
    expected = {"expression": ["lit", value, data_type], "type": data_type}
    assert serialised(spark, parts, sql) == expected


@pytest.mark.parametrize(("sql", "expected"), EXPRESSIONS)
def test_expression_has_all_its_arguments(
    spark: SparkSession, parts: str, sql: str, expected: list
) -> None:
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
def test_different_computations_differ(
    spark: SparkSession, parts: str, one: str, other: str
) -> None:
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
def test_long_in_list_is_sent_whole(
    spark: SparkSession, decider: KeepNamed, parts: str, items: list[str], values: list
) -> None:
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

"""Keys whose data has another type than was declared: what the declared type holds, matches.

DuckDB casts the same values to the declared types and finds the rows that are equal.
"""

import json
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from support.weaving.smallmodels import Loom, Woven, relationship, weave_into

from snaploom.engine.keys import holds
from snaploom.engine.schemachecks import check_schemas
from snaploom.engine.subtrees import subtree_signature
from snaploom.models.common import DataType
from snaploom.spark.types import to_spark

pytestmark = pytest.mark.spark

DATES = ["2024-05-01", "1969-12-31", "9999-12-31"]
MOMENTS = [f"{day} 00:00:00" for day in DATES[:2]] + ["2024-05-01 12:00:00"]
NUMBERS = ["1.5", "-1.25", "7", "0"]
WHOLE = ["7", "0", "-128", "100"]
HELD = [
    # type of the files, declared type, values of the files, values of the other side
    ("decimal(5,2)", "decimal(10,4)", NUMBERS, ["1.5000", "-1.2500", "7", "1.5001"]),
    ("decimal(5,2)", "decimal(38,18)", NUMBERS, ["1.5", "0.000000000000000001"]),
    ("int", "decimal(12,2)", WHOLE, ["7.00", "7.01", "-128"]),
    ("bigint", "decimal(38,4)", ["9223372036854775807", "7"], ["9223372036854775807", "7.0001"]),
    ("tinyint", "double", WHOLE, ["7", "7.5", "-128"]),
    ("int", "double", ["2147483647", "7"], ["2147483647", "2147483646.5", "7"]),
    ("decimal(15,0)", "double", ["999999999999999", "7"], ["999999999999999", "7.5"]),
    ("smallint", "float", ["32767", "7"], ["32767", "7.5"]),
    ("float", "double", ["1.5", "0.25"], ["1.5", "0.1"]),
    ("date", "timestamp", DATES, MOMENTS),
    ("date", "timestamp_ntz", DATES, MOMENTS),
]
REFUSED = [
    ("decimal(10,4)", "decimal(5,2)"), ("decimal(10,2)", "decimal(10,4)"), ("double", "int"),
    ("bigint", "double"), ("int", "float"), ("decimal(5,2)", "double"), ("double", "float"),
    ("timestamp", "date"), ("timestamp_ntz", "timestamp"), ("timestamp", "timestamp_ntz"),
    ("int", "string"), ("string", "int"), ("boolean", "int"), ("date", "string"),
    ("bigint", "decimal(10,2)"),
]  # fmt: skip


def type_of(name: str) -> spark_types.DataType:
    return to_spark(DataType.parse(declaration(name)))


def schema(data_type: str) -> spark_types.StructType:
    return spark_types.StructType().add("k", type_of(data_type))


def declaration(data_type: str) -> dict[str, Any]:
    if data_type.startswith("decimal"):
        precision, scale = data_type.removeprefix("decimal(").rstrip(")").split(",")
        return {"decimal": {"precision": int(precision), "scale": int(scale)}}
    names = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte",
             "timestamp_ntz": "timestampNtz"}  # fmt: skip
    return {names.get(data_type, data_type): {}}


def component(data_type: str, **more: Any) -> dict[str, Any]:
    return {"fields": [{"fieldName": "k", "dataType": declaration(data_type)}], **more}


def written(spark: SparkSession, folder: Path, data_type: str, values: list[str]) -> DataFrame:
    """Values in real Parquet files, with their number."""
    rows = ", ".join(f"({number}, '{value}')" for number, value in enumerate(values))
    frame = spark.sql(f"select n, cast(t as {data_type}) k from values {rows} as v(n, t)")
    frame.write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def equal_by_duckdb(declared: str, *sides: tuple[str, list[str]]) -> list[bool]:
    """Whether each value of the first side is one of the second; `sides` have type and values."""
    names = {"timestamp_ntz": "timestamp", "float": "real"}
    wanted = names.get(declared, declared)
    left, right = (
        "select n, (v::{})::{} v from (values {}) s(n, v)".format(
            names.get(own, own),
            wanted,
            ", ".join(f"({number}, '{value}')" for number, value in enumerate(values)),
        )
        for own, values in sides
    )
    found = duckdb.sql(f"select v in (select v from ({right})) from ({left}) order by n").fetchall()
    return [row[0] for row in found]


@pytest.mark.parametrize(("own", "declared", "left", "right"), HELD)
@pytest.mark.parametrize("root_is_narrow", [True, False])
def test_rows_match_as_values_of_the_declared_type_do(
    spark: SparkSession, tmp_path: Path, own: str, declared: str, left: list[str],
    right: list[str], root_is_narrow: bool,
) -> None:  # fmt: skip
    sides = [(own, left), (declared, right)]
    frames = [written(spark, tmp_path / data_type, data_type, v) for data_type, v in sides]
    if not root_is_narrow:
        sides.reverse()
        frames.reverse()
    woven = woven_of(spark, tmp_path, dict(zip("lrg", [*frames, frames[1]], strict=True)), declared)
    expected = equal_by_duckdb(declared, *sides)
    assert any(expected)
    rows = woven.rows("data.n")
    assert [row.r is not None for row in rows] == expected
    assert [row.g is not None for row in rows] == expected, "grouped"
    kept = [woven.schema["data"].dataType["k"].dataType, frames[0].schema["k"].dataType]
    assert kept[0] == kept[1], "data stays as it is"


@pytest.mark.parametrize(("own", "declared", "left", "right"), [HELD[0], HELD[5], HELD[9]])
def test_a_declared_cast_compares_as_text_does(spark, tmp_path, own, declared, left, right):
    sides = [(own, left), (declared, right)]
    frames = [written(spark, tmp_path / data_type, data_type, v) for data_type, v in sides]
    cast = {"castDataType": declaration(declared)}
    woven = woven_of(spark, tmp_path, dict(zip("lr", frames, strict=True)), declared, **cast)
    found = [row.r is not None for row in woven.rows("data.n")]
    assert found == equal_by_duckdb(declared, *sides)


def woven_of(
    spark: SparkSession, folder: Path, frames: dict[str, DataFrame], declared: str, **cast: Any
) -> Woven:
    """`l` woven with the others, `g` grouped; all keys are declared alike, and no field missing."""
    loom = loom_of(dict.fromkeys(frames, declared), **cast)
    schemas = {"" if name == "l" else name: frame.schema for name, frame in frames.items()}
    assert check_schemas(loom.tree, schemas, loom.settings, loom.by_name).stop is None
    return weave_into(folder, loom.weave(frames), spark)


def loom_of(declared: dict[str, str], **cast: Any) -> Loom:
    keys = {name: [component(data_type, **cast)] for name, data_type in declared.items()}
    grouped = {"g": ["k"]} if "g" in declared else {}
    return Loom("l", [name for name in declared if name != "l"], [relationship("key", keys)],
                group_by=grouped)  # fmt: skip


def test_columns_that_are_declared_in_two_ways_have_a_key_for_each(spark, tmp_path):
    """One column of one source, as text of its own type and as the decimal that it is held by."""
    amounts = written(spark, tmp_path / "l", "decimal(5,2)", ["1.5", "2"])
    texts = [spark.sql(f"select '{text}' k") for text in ("1.50", "1.5000")]
    loom = Loom(
        "l",
        ["r", "s"],
        [
            relationship(f"as-{right}", {"l": [component(of)], right: [component("string")]})
            for right, of in (("r", "decimal(5,2)"), ("s", "decimal(10,4)"))
        ],
    )
    frames = dict(zip("lrs", [amounts, *texts], strict=True))
    woven = weave_into(tmp_path, loom.weave(frames), spark)
    found = [(row.r is not None, row.s is not None) for row in woven.rows("data.n")]
    assert found == [(True, True), (False, False)]


def test_a_remembered_subtree_is_not_taken_for_one_with_another_first_cast(spark):
    frame = spark.sql("select cast(1 as decimal(5,2)) k")
    weaves = [
        loom_of({"l": "decimal(5,2)", "r": of}).weave({"l": frame, "r": frame})
        for of in ("decimal(5,2)", "decimal(10,4)")
    ]
    prints = {"": "1", "r": "1"}
    assert len({subtree_signature(one, 1, prints, "plan") for one in weaves}) == 2


@pytest.mark.parametrize(("own", "declared"), REFUSED)
def test_a_key_that_the_declared_type_may_lose_is_an_error_with_a_fix(own, declared):
    assert not holds(to_spark(DataType.parse(declaration(declared))), type_of(own))
    loom = loom_of({"l": declared, "r": declared}, castDataType=declaration(declared))
    schemas = {"": schema(declared), "r": schema(own)}
    stop = check_schemas(loom.tree, schemas, loom.settings, loom.by_name).stop
    error = stop.error()
    assert (error.path, error.found) == ("k", f"type {own}")
    assert f"which has type {own} in DataSource/r" in stop.message
    for text in (stop.message, str(error.hint)):
        flow = json.dumps(declaration(own)).replace('"', "")
        assert f"give r a representation with k of dataType: {flow}, and" in text
        assert "castDataType: {" in text or "a query on one side" in text


def test_the_cast_that_helps_is_named_and_works(spark: SparkSession, tmp_path: Path) -> None:
    """The fix in the message, for decimals of another scale: the rows that match are found."""
    frames = {
        "l": written(spark, tmp_path / "l", "decimal(10,4)", ["1.5", "1.5001"]),
        "r": written(spark, tmp_path / "r", "decimal(12,2)", ["1.5"]),
    }
    loom = loom_of({"l": "decimal(10,4)", "r": "decimal(10,4)"})
    schemas = {"": frames["l"].schema, "r": frames["r"].schema}
    stop = check_schemas(loom.tree, schemas, loom.settings, loom.by_name).stop
    assert "castDataType: {decimal: {precision: 14, scale: 4}}" in stop.helps
    loom = loom_of({"l": "decimal(10,4)", "r": "decimal(12,2)"},
                   castDataType=declaration("decimal(14,4)"))  # fmt: skip
    woven = weave_into(tmp_path, loom.weave(frames), spark)
    assert [row.r is not None for row in woven.rows("data.n")] == [True, False]


@pytest.mark.parametrize(
    ("declared", "own", "query"),
    [
        ("bigint", "int", "xxhash64(k)"),
        ("bigint", "tinyint", "hash(`K`, 1)"),
        ("bigint", "int", "try_add(k, 2147483647)"),
        ("bigint", "int", "k << 40"),
        ("bigint", "int", "k * 1000000000"),
        ("int", "bigint", "hash(k)"),
        ("int", "smallint", "aggregate(array(1), 0, (a, x) -> a + x + k)"),
        ("decimal(10,4)", "decimal(5,2)", "concat('x', k)"),
        ("timestamp", "date", "date_format(k, 'yyyy-MM-dd HH')"),
    ],
)
def test_a_query_reads_a_key_as_the_declared_type(spark, tmp_path, declared, own, query):
    value = "2024-05-01" if own == "date" else "7"
    frames = {
        side: written(spark, tmp_path / side, data_type, [value])
        for side, data_type in (("l", own), ("r", declared))
    }
    woven = woven_of(spark, tmp_path, frames, declared, query=query)
    assert [row.r is not None for row in woven.rows("data.n")] == [True]


def test_a_query_takes_wider_whole_numbers_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """Their texts are equal, and a number that the declared type has not is no error."""
    values = ["7", "9999999999"]
    frames = {side: written(spark, tmp_path / side, "bigint", values) for side in "lr"}
    woven = woven_of(spark, tmp_path, frames, "int", query="cast(k as string)")
    assert [row.r is not None for row in woven.rows("data.n")] == [True, True]


def test_a_query_takes_nothing_that_the_declared_type_may_lose() -> None:
    loom = loom_of({"l": "decimal(5,2)", "r": "decimal(5,2)"}, query="concat('x', k)")
    schemas = {"": schema("decimal(5,2)"), "r": schema("decimal(10,4)")}
    stop = check_schemas(loom.tree, schemas, loom.settings, loom.by_name).stop
    assert "let the query convert it" in stop.message


EXACT = [type_of(name) for name in ("tinyint", "smallint", "int", "bigint")]
BITS = dict(zip(map(type, EXACT), (7, 15, 31, 63), strict=True))
DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda s: spark_types.DecimalType(precision, s))
)


def extremes(of: spark_types.DataType) -> list[Fraction]:
    """The largest and the smallest value, and the one nearest to zero."""
    if isinstance(of, spark_types.DecimalType):
        unit = Fraction(1, 10**of.scale)
        return [unit * (10**of.precision - 1), -unit * (10**of.precision - 1), unit]
    return [Fraction(2 ** BITS[type(of)] - 1), Fraction(-(2 ** BITS[type(of)])), Fraction(1)]


def has(of: spark_types.DataType, value: Fraction) -> bool:
    """Whether a type has a value, by exact arithmetic of Python."""
    if isinstance(of, spark_types.DecimalType):
        scaled = value * 10**of.scale
        return scaled.denominator == 1 and abs(scaled) < 10**of.precision
    if isinstance(of, spark_types.FloatType):
        return Fraction(*struct.unpack("f", struct.pack("f", value))[0].as_integer_ratio()) == value
    if isinstance(of, spark_types.DoubleType):
        return Fraction(float(value)) == value
    bits = BITS[type(of)]
    return value.denominator == 1 and -(2**bits) <= value < 2**bits


@given(st.sampled_from(EXACT) | DECIMALS, st.sampled_from(EXACT) | DECIMALS)
def test_a_type_holds_another_exactly_when_it_has_its_extremes(given_type, wanted):
    has_all = all(has(wanted, value) for value in extremes(given_type))
    if holds(wanted, given_type):
        assert has_all
    elif isinstance(wanted, spark_types.DecimalType) and isinstance(
        given_type, spark_types.DecimalType
    ):
        assert not has_all


@given(st.sampled_from(EXACT) | DECIMALS, st.sampled_from(["float", "double"]), st.data())
def test_a_binary_fraction_that_holds_a_type_has_each_of_its_values(given_type, wanted, data):
    if not holds(type_of(wanted), given_type):
        return
    largest, smallest, unit = extremes(given_type)
    number = data.draw(st.integers(int(smallest / unit), int(largest / unit)))
    assert has(type_of(wanted), number * unit)

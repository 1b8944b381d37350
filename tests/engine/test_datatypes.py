"""Declared types and Spark's types are equivalent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from snaploom.models.common import DataType, SchemaField
from snaploom.spark.types import from_spark, struct_of, to_spark

SIMPLE = [
    "binary", "boolean", "byte", "calendarInterval", "date", "double", "float", "integer", "long",
    "null", "short", "string", "timestamp", "timestampNtz",
]  # fmt: skip

simple = st.sampled_from(SIMPLE).map(lambda tag: {tag: {}})
decimals = st.integers(1, 38).flatmap(
    lambda p: st.integers(0, p).map(lambda s: {"decimal": {"precision": p, "scale": s}})
)


def nested(inner: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    field = st.builds(
        lambda name, t, n, m: {"name": name, "dataType": t, "nullable": n, "metadata": m},
        st.text("abc `.é", min_size=1, max_size=4),
        inner,
        st.booleans(),
        st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    )
    return st.one_of(
        st.builds(
            lambda t, n: {"array": {"elementType": t, "containsNull": n}}, inner, st.booleans()
        ),
        st.builds(
            lambda k, v, n: {"map": {"keyType": k, "valueType": v, "valueContainsNull": n}},
            inner,
            inner,
            st.booleans(),
        ),
        st.lists(field, min_size=1, max_size=3).map(lambda fs: {"struct": {"fields": fs}}),
    )


@given(st.recursive(simple | decimals, nested, max_leaves=6))
def test_a_declared_type_survives_the_way_to_spark_and_back(raw):
    declared = DataType.parse(raw)

    assert from_spark(to_spark(declared)) == declared


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"integer": {}}, "int"),
        ({"decimal": {"precision": 9, "scale": 2}}, "decimal(9,2)"),
        ({"array": {"elementType": {"long": {}}}}, "array<bigint>"),
        ({"map": {"keyType": {"string": {}}, "valueType": {"date": {}}}}, "map<string,date>"),
        (
            {"struct": {"fields": [{"name": "a", "dataType": {"short": {}}}]}},
            "struct<a:smallint>",
        ),
    ],
)
def test_a_declared_type_has_the_name_that_spark_gives_it(raw, text):
    assert to_spark(DataType.parse(raw)).simpleString() == text


@pytest.mark.parametrize(
    "actual",
    [
        spark.VariantType(),
        spark.DayTimeIntervalType(),
        spark.StringType("UTF8_LCASE"),
        spark.ArrayType(spark.VariantType()),
        spark.MapType(spark.StringType(), spark.VariantType()),
        spark.StructType([spark.StructField("a", spark.YearMonthIntervalType())]),
        spark.StructType([]),
    ],
)
def test_a_type_without_a_name_in_declarations_has_no_declaration(actual):
    assert from_spark(actual) is None


def test_declared_fields_become_a_schema_with_their_nullability_and_metadata():
    field = SchemaField.parse(
        {"name": "a b", "dataType": {"long": {}}, "nullable": False, "metadata": {"k": "v"}}
    )

    assert struct_of([field]) == spark.StructType().add(
        "a b", spark.LongType(), nullable=False, metadata={"k": "v"}
    )

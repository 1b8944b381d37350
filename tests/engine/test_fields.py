"""Fields of a schema are found by their path and compared with declared types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from snaploom.models.common import DataType
from snaploom.spark.types import find_field, matches
from snaploom.types.schemas import quote, split_path

SCHEMA = (
    spark.StructType()
    .add("Id", spark.LongType(), metadata={"comment": "key"})
    .add("a.b", spark.DateType())
    .add("od`d", spark.StructType().add("X y", spark.IntegerType()))
    .add(
        "Address", spark.StructType().add("Geo", spark.StructType().add("Lat", spark.DoubleType()))
    )
    .add("list", spark.ArrayType(spark.StructType().add("f", spark.StringType())))
    .add("ÄPFEL", spark.StringType())
)


@pytest.mark.parametrize(
    ("path", "parts", "data_type"),
    [
        ("id", ("Id",), "bigint"),
        ("ADDRESS.geo.LAT", ("Address", "Geo", "Lat"), "double"),
        ("address.geo", ("Address", "Geo"), "struct<Lat:double>"),
        ("`a.b`", ("a.b",), "date"),
        ("`od``d`.`x Y`", ("od`d", "X y"), "int"),
        ("`od``d`.x Y", ("od`d", "X y"), "int"),
        ("äpfel", ("ÄPFEL",), "string"),
    ],
)
def test_a_path_finds_its_field_whatever_its_case(path, parts, data_type):
    found = find_field(SCHEMA, path)

    assert found is not None
    assert (found.parts, found.data_type.simpleString()) == (parts, data_type)


@pytest.mark.parametrize(
    "path",
    ["ids", "a.b", "list.f", "id.x", "address.", ".id", "address..geo", "`id", "`id`x", "", "``"],
)
def test_a_path_that_leads_nowhere_finds_nothing(path):
    assert find_field(SCHEMA, path) is None


def test_a_found_field_knows_its_metadata_and_how_to_be_read():
    found = find_field(SCHEMA, "`od``d`.`x y`")

    assert found is not None
    assert (found.expression, found.path) == ("`od``d`.`X y`", "`od``d`.`X y`")
    assert find_field(SCHEMA, "id").metadata == {"comment": "key"}  # type: ignore[union-attr]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_quoted_names_split_into_themselves(names):
    assert split_path(".".join(quote(name) for name in names)) == tuple(names)


@pytest.mark.parametrize(
    ("raw", "actual", "expected"),
    [
        ({"long": {}}, spark.LongType(), True),
        ({"long": {}}, spark.IntegerType(), False),
        ({"decimal": {"precision": 9, "scale": 2}}, spark.DecimalType(9, 2), True),
        ({"decimal": {"precision": 9, "scale": 2}}, spark.DecimalType(10, 2), False),
        ({"timestamp": {}}, spark.TimestampNTZType(), False),
        ({"string": {}}, spark.StringType("UTF8_LCASE"), False),
        (
            {"array": {"elementType": {"string": {}}, "containsNull": False}},
            spark.ArrayType(spark.StringType(), True),
            True,
        ),
        (
            {"struct": {"fields": [{"name": "A", "dataType": {"date": {}}, "nullable": False}]}},
            spark.StructType().add("a", spark.DateType(), metadata={"k": "v"}),
            True,
        ),
        (
            {"struct": {"fields": [{"name": "a", "dataType": {"date": {}}}]}},
            spark.StructType().add("a", spark.DateType()).add("b", spark.DateType()),
            False,
        ),
    ],
)
def test_types_match_whatever_their_nullability_metadata_and_case(raw, actual, expected):
    assert matches(DataType.parse(raw), actual) is expected

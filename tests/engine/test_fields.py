"""Fields of a schema are found by their path and compared with declared types."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from snaploom.engine.schemachecks import schema_faults
from snaploom.models.common import DataType, SchemaField
from snaploom.models.outputdataset import DataFormat
from snaploom.sources.tables.columns import has_type, iceberg_schema, renamed
from snaploom.spark.types import find_field, from_spark, matches, struct_of, to_spark
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

    assert (found.parts, found.data_type.simpleString()) == (parts, data_type)


@pytest.mark.parametrize(
    "path",
    ["ids", "a.b", "list.f", "id.x", "address.", ".id", "address..geo", "`id", "`id`x", "", "``"],
)
def test_a_path_that_leads_nowhere_finds_nothing(path):
    assert find_field(SCHEMA, path) is None


def test_a_found_field_knows_its_metadata_and_how_to_be_read():
    found = find_field(SCHEMA, "`od``d`.`x y`")

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


def struct(**fields: spark.DataType) -> spark.StructType:
    return spark.StructType([spark.StructField(name, kind) for name, kind in fields.items()])


NESTED = struct(
    data=struct(a=spark.ByteType(), b=spark.DecimalType(9, 2)),
    tags=spark.ArrayType(struct(t=spark.StringType())),
    m=spark.MapType(spark.StringType(), struct(at=spark.TimestampType())),
)


def test_every_level_has_ids_of_its_own_and_may_be_null() -> None:
    text = json.dumps(iceberg_schema(NESTED))
    ids = [int(found) for found in re.findall(r'"(?:element-|key-|value-)?id": (\d+)', text)]
    assert sorted(ids) == list(range(1, 11))
    assert "true" not in text
    kinds = ("int", "decimal(9, 2)", "timestamptz")
    assert [text.count(f'"{kind}"') for kind in kinds] == [1, 1, 1]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (struct(data=struct(a=spark.LongType()), n=spark.LongType()), []),
        (struct(DATA=struct(A=spark.ByteType())), ["DATA (was data)", "DATA.A (was a)"]),
        (struct(tags=spark.ArrayType(struct(T=spark.StringType()))), ["tags.element.T (was t)"]),
        (
            struct(m=spark.MapType(spark.StringType(), struct(AT=spark.TimestampType()))),
            ["m.value.AT (was at)"],
        ),
    ],
)
def test_names_in_other_letters_are_found_at_every_level(schema, found):
    assert renamed(schema, iceberg_schema(NESTED)) == found


@pytest.mark.parametrize("kind", [spark.DayTimeIntervalType(), spark.YearMonthIntervalType()])
def test_types_that_iceberg_does_not_have_are_refused(kind: spark.DataType) -> None:
    schema = struct(a=struct(b=kind))
    (fault,) = schema_faults(schema, DataFormat.ICEBERG)
    assert (fault.path, "Iceberg does not have" in fault.message) == ("a.b", True)
    assert schema_faults(schema, DataFormat.PARQUET) == ()


@pytest.mark.parametrize(
    ("schema", "path", "message"),
    [
        (struct(a=struct(b=spark.TimestampNTZType())), "a.b", "table features"),
        (struct(**{"a b": spark.LongType()}), "`a b`", "Delta does not allow"),
    ],
)
def test_columns_that_delta_does_not_have_are_refused(schema, path, message):
    (fault,) = schema_faults(schema, DataFormat.DELTA)
    assert (fault.path, message in fault.message) == (path, True)
    assert schema_faults(schema, DataFormat.ICEBERG) == ()


def test_ids_of_another_table_are_refused() -> None:
    field = spark.StructField("a", spark.LongType(), metadata={"parquet.field.id": 7})
    schema = spark.StructType([spark.StructField("data", spark.StructType([field]))])
    (fault,) = schema_faults(schema, DataFormat.ICEBERG)
    assert (fault.path, "for another column" in fault.message) == ("data.a", True)
    assert schema_faults(schema, DataFormat.PARQUET) == ()


def test_types_of_parquet_outputs_are_types_of_iceberg() -> None:
    kinds = (
        spark.BooleanType, spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType,
        spark.FloatType, spark.DoubleType, spark.StringType, spark.BinaryType, spark.DateType,
        spark.TimestampType, spark.TimestampNTZType,
    )  # fmt: skip
    assert all(has_type(kind()) for kind in kinds)
    assert has_type(spark.DecimalType(38, 18))

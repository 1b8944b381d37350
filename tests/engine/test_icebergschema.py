"""Columns as Iceberg declares them, and names that it would take for others."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql import types as spark

from snaploom.engine.schemachecks import schema_faults
from snaploom.models.outputdataset import DataFormat
from snaploom.sources.tables.iceberg import has_type, iceberg_schema, renamed


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
def test_names_in_other_letters_are_found_at_every_level(
    schema: spark.StructType, found: list[str]
) -> None:
    assert renamed(schema, iceberg_schema(NESTED)) == found


@pytest.mark.parametrize("kind", [spark.DayTimeIntervalType(), spark.YearMonthIntervalType()])
def test_types_that_iceberg_does_not_have_are_refused(kind: spark.DataType) -> None:
    schema = struct(a=struct(b=kind))
    (fault,) = schema_faults(schema, DataFormat.ICEBERG)
    assert (fault.path, "Iceberg does not have" in fault.message) == ("a.b", True)
    assert schema_faults(schema, DataFormat.PARQUET) == ()


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

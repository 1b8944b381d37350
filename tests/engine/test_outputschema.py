"""What is refused before writing, by path; no Spark session is needed."""

import pytest
from pyspark.sql import types as spark

from snaploom.engine.schemachecks import refuse_unwritable, schema_faults
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.outputdataset import DataFormat

PARQUET, AVRO, JSONL = DataFormat.PARQUET, DataFormat.AVRO, DataFormat.JSONL


def nested(inner: spark.StructType) -> spark.StructType:
    return spark.StructType().add("data", spark.StructType().add("list", spark.ArrayType(inner)))


@pytest.mark.parametrize(
    ("inner", "data_format", "paths"),
    [
        (spark.StructType().add("a", "integer").add("A", "integer"), PARQUET, ["data.list.A"]),
        (spark.StructType().add("a", "integer").add("ä", "integer"), PARQUET, []),
        (spark.StructType().add("v", spark.NullType()), PARQUET, ["data.list.v"]),
        (spark.StructType().add("i", spark.CalendarIntervalType()), PARQUET, ["data.list.i"]),
        (spark.StructType(), PARQUET, ["data.list"]),
        (spark.StructType().add("a.b", "integer"), PARQUET, []),
        (
            spark.StructType().add("a.b", "integer").add("é", "integer"),
            AVRO,
            ["data.list.`a.b`", "data.list.é"],
        ),
        (
            spark.StructType().add("m", spark.MapType(spark.IntegerType(), spark.StringType())),
            PARQUET,
            [],
        ),
        (
            spark.StructType().add("m", spark.MapType(spark.IntegerType(), spark.StringType())),
            AVRO,
            ["data.list.m"],
        ),
        (
            spark.StructType().add("m", spark.MapType(spark.IntegerType(), spark.StringType())),
            JSONL,
            ["data.list.m"],
        ),
        (
            spark.StructType().add("m", spark.MapType(spark.StringType(), spark.IntegerType())),
            JSONL,
            [],
        ),
    ],
)
def test_schema_faults_are_found_by_path(inner, data_format, paths):
    assert [fault.path for fault in schema_faults(nested(inner), data_format)] == paths


def test_refusal_names_every_fault() -> None:
    schema = nested(
        spark.StructType().add("a", "integer").add("A", "integer").add("v", spark.NullType())
    )
    with pytest.raises(SourceSchemaInvalid, match=r"same as a but for case.*data\.list\.v"):
        refuse_unwritable(schema, PARQUET)

"""What declarations may cast is what Spark casts."""

from itertools import product

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from snaploom.models.common import DataType
from snaploom.spark.types import to_spark
from snaploom.types.merge import can_cast

pytestmark = pytest.mark.spark

SIMPLE = [
    "binary", "boolean", "byte", "calendarInterval", "date", "double", "float", "integer", "long",
    "short", "string", "timestamp", "timestampNtz",
]  # fmt: skip
TYPES = [DataType.parse({tag: {}}) for tag in SIMPLE] + [
    DataType.parse(raw)
    for raw in (
        {"decimal": {"precision": 9, "scale": 2}},
        {"array": {"elementType": {"long": {}}}},
        {"array": {"elementType": {"date": {}}}},
        {"map": {"keyType": {"string": {}}, "valueType": {"long": {}}}},
        {"struct": {"fields": [{"name": "a", "dataType": {"long": {}}}]}},
        {"struct": {"fields": [{"name": n, "dataType": {"long": {}}} for n in "ab"]}},
    )
]
CONTAINERS = {"array", "map", "struct"}


def test_casts_are_those_that_spark_has(spark):
    wrong = []
    for given, wanted in product(TYPES, TYPES):
        value = spark.range(1).select(sf.lit(None).cast(to_spark(given)).alias("v"))
        try:
            value.select(sf.col("v").try_cast(to_spark(wanted))).schema  # noqa: B018
            is_possible = True
        except AnalysisException:
            is_possible = False
        # Of parts of containers Spark knows more than a declaration has to.
        is_simple = not {DataType.variant_of(given), DataType.variant_of(wanted)} & CONTAINERS
        is_accepted = can_cast(given, wanted)
        if (is_accepted is not is_possible) if is_simple else (is_possible and not is_accepted):
            wrong.append((to_spark(given).simpleString(), to_spark(wanted).simpleString()))
    assert wrong == []

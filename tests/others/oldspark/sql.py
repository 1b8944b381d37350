"""The gate for SQL on the oldest Spark: the same list of functions, the same trees."""

import pytest
from pyspark.sql import SparkSession
from support.hostile.tpchqueries import QUERIES, SCHEMAS, spark_functions

from snaploom.errors import SourceSchemaInvalid
from snaploom.policy.sqlfunctions import FUNCTIONS
from snaploom.spark.gate import SqlPlace, checked_expression, checked_query

PLACE = SqlPlace("Kind/name", "spec.field", SourceSchemaInvalid, "legal SQL")


def test_every_function_of_this_spark_is_judged(spark: SparkSession) -> None:
    classes = {one.name: one.class_name for one in spark_functions(spark)}
    others = {
        name: class_name
        for name, class_name in classes.items()
        if name not in FUNCTIONS or class_name not in FUNCTIONS[name].classes
    }
    assert others == {}
    assert len(classes) > 500


def test_all_queries_of_tpc_h_are_legal(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame([], schema) for name, schema in SCHEMAS.items()}
    columns = [len(checked_query(spark, query, frames, PLACE).columns) for query in QUERIES]
    assert columns[:4] == [10, 8, 4, 2]


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'getenv', 'HOME')",
        "1 + (select max(id) from secret)",
        "from_xml('<a/>', 'b INT', map('rowValidationXSDPath', 'x'))",
        "identifier('reflect')('java.lang.System', 'getenv', 'HOME')",
        "'${env:HOME}'",
    ],
)
def test_what_is_hostile_is_refused(spark: SparkSession, text: str) -> None:
    with pytest.raises(SourceSchemaInvalid):
        checked_expression(spark, text, PLACE)

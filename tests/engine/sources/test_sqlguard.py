"""Spark's own plans alone, without validation's parser, let no hostile query through."""

import pytest
from pyspark.errors import ParseException
from support.virtualsources import HOSTILE

from snaploom.engine.sources.sqlguard import beyond_parsed, beyond_resolved

pytestmark = pytest.mark.spark


def refusal(spark, query):
    """What Spark's parser finds in a query, or that it is none."""
    try:
        return beyond_parsed(spark, query, ["src"])
    except ParseException as error:
        return (error.getCondition(),)


@pytest.mark.parametrize("query", HOSTILE)
def test_what_is_hostile_is_refused_before_it_is_resolved(spark, query):
    assert refusal(spark, query)


@pytest.mark.parametrize(
    "query",
    [
        "select a.id, b.id from src a left join src b on a.id = b.id + 1 order by 1 limit 3",
        "with x as (select id from src), y as (select * from x) select max(id) from y having 1 = 1",
        "select id, row_number() over w r from src window w as (partition by id % 2 order by id)",
        "select id, x from src lateral view explode(array(1, 2)) t as x union select 1, 2",
        "select * from src pivot (count(*) for id in (1, 2)) intersect select 1, 2",
        "select * from (values (1)) v(x), lateral (select id from src where id = x)",
        "select distinct if(id in (select id from src), upper('a'), null) from src distribute by 1",
        "select x.* from src, lateral explode(array(id)) x offset 1",
    ],
)
def test_what_a_query_may_do_is_let_through_both_times(spark, query):
    source = spark.range(4)
    assert beyond_parsed(spark, query, ["src"]) == ()
    resolved = spark.sql(f"with src as (select * from {{s}}) select * from ({query})", s=source)
    assert beyond_resolved(resolved, [source]) == ()


def test_a_table_that_is_only_found_when_resolving_is_refused(spark):
    spark.createDataFrame([(1,)], "a int").createOrReplaceTempView("secret")
    try:
        source = spark.range(4)
        query = "select * from {s} where id in (select a from secret)"
        assert beyond_resolved(spark.sql(query, s=source), [source]) == ("LogicalRDD",)
    finally:
        spark.catalog.dropTempView("secret")


def test_a_function_that_somebody_made_is_refused(spark):
    spark.udf.register("stranger", lambda: 1)
    try:
        assert beyond_parsed(spark, "select stranger() from src", ["src"]) == ("stranger()",)
    finally:
        spark.sql("drop temporary function stranger")

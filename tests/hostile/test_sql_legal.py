"""Legal texts stay legal: what the documentation of Spark, TPC-H and people write goes through."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.hostile.tpchqueries import QUERIES, SCHEMAS, Documented, spark_functions

from snaploom.errors import SourceSchemaInvalid
from snaploom.loading.load import load
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.policy.sql import facts_of
from snaploom.policy.sqlfunctions import FUNCTIONS, Determinism, determinism_of, refusal_of
from snaploom.policy.sqltext import SqlForm, SqlText, SqlVerdict, judge
from snaploom.spark.gate import SqlPlace, check_resolved, checked_expression, checked_query
from snaploom.spark.trees import AGGREGATES
from snaploom.validate.validator import validate

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLACE = SqlPlace("Kind/name", "spec.field", SourceSchemaInvalid, "legal SQL")
NOT_IN_THIS_SPARK = {
    "from_avro": "needs spark-avro, which Spark does not bring",
    "schema_of_avro": "needs spark-avro",
    "to_avro": "needs spark-avro",
    "current_timestamp": "nanoseconds are off unless a setting turns them on",
    "localtimestamp": "nanoseconds are off unless a setting turns them on",
    "now": "nanoseconds are off unless a setting turns them on",
    "unix_nanos": "nanoseconds are off unless a setting turns them on",
}
"""Functions with examples that Spark itself does not resolve as it is, and why."""


@pytest.fixture(scope="module")
def documented(spark: SparkSession) -> list[Documented]:
    return spark_functions(spark)


def test_every_function_of_this_spark_is_judged(documented: list[Documented]) -> None:
    found = {one.name: one.class_name for one in documented}
    assert sorted(found.keys() - FUNCTIONS.keys()) == []
    others = {
        one.name: one.class_name
        for one in documented
        if one.class_name not in FUNCTIONS[one.name].classes
    }
    assert others == {}


def test_no_function_is_judged_that_no_spark_has(documented: list[Documented]) -> None:
    """The newest Spark has every function that the older ones have."""
    assert sorted(FUNCTIONS.keys() - {one.name for one in documented}) == []


def test_spark_s_own_examples_of_every_allowed_function_are_legal(spark, documented):
    spark.conf.set("spark.sql.timeType.enabled", "true")
    frames = {"src": spark.range(1)}
    examples = {
        example: one.name
        for one in documented
        if not FUNCTIONS[one.name].refused
        for example in one.examples
        if not example.upper().startswith("SET ")
    }
    refused, unresolved = [], set()
    try:
        for example, name in examples.items():
            try:
                checked_query(spark, example, frames, PLACE)
            except SourceSchemaInvalid as error:
                refused.append(f"{name}: {example}: {error.message}")
            except (PySparkException, Py4JError):
                unresolved.add(name)
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")
    assert (refused, sorted(unresolved - NOT_IN_THIS_SPARK.keys())) == ([], [])
    assert len(examples) > 1000


def test_spark_s_own_examples_of_every_refused_function_are_refused(spark, documented):
    frames = {"src": spark.range(1)}
    examples = [e for one in documented if FUNCTIONS[one.name].refused for e in one.examples]
    for example in examples:
        with pytest.raises(SourceSchemaInvalid, match="this SQL may not have"):
            checked_query(spark, example, frames, PLACE)
    assert len(examples) > 20


def test_all_queries_of_tpc_h_are_legal(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame([], schema) for name, schema in SCHEMAS.items()}
    columns = [len(checked_query(spark, query, frames, PLACE).columns) for query in QUERIES]
    assert len(columns) == 22
    assert columns[:4] == [10, 8, 4, 2]


def examples_sql() -> list[SqlText]:
    """Every text of SQL of the examples, as validation has it judged."""
    found: dict[SqlText, SqlVerdict] = {}

    def judged(text: SqlText) -> SqlVerdict:
        return found.setdefault(text, judge(text))

    for folder in ("customer", "flights", "tpch"):
        validate(load([EXAMPLES / folder]).resources, judge_text=judged)
    return list(found)


def test_all_sql_of_the_examples_is_legal(spark: SparkSession) -> None:
    texts = examples_sql()
    for text in texts:
        facts = facts_of(text)
        schema = ", ".join(f"`{path.split('.')[-1]}` string" for path in facts.columns)
        source = spark.createDataFrame([], schema)
        if text.form is SqlForm.QUERY:
            checked_query(spark, text.text, dict.fromkeys(facts.tables, source), PLACE)
        else:
            made = source.select(checked_expression(spark, text.text, PLACE, AGGREGATES).column)
            check_resolved(made, [source], PLACE, AGGREGATES)
    assert len(texts) >= 2


@pytest.mark.parametrize(
    "text",
    [
        "struct(" * 15 + "a" + ")" * 15,
        "named_struct('x', " * 15 + "a" + ")" * 15,
        "coalesce(" * 30 + "a" + ")" * 30,
        " + ".join(["a"] * 400),
        " || ".join(["string(a)"] * 400),
        "a IN (" + ", ".join(map(str, range(1000))) + ")",
        "case when a = 1 then 'one' when a between 2 and 3 then 'few' else string(a) end",
        "a /* one */ + -- two\n 1",
        "`a` + CAST('1' AS INT) + try_cast(\"2\" as int) + a::int",
        "transform(array(a), (x, i) -> x + i)[0]",
        "from_json('{}', 'b INT', map('mode', 'FAILFAST', 'timestampFormat', 'yyyy'))",
        "date_trunc('month', timestamp'2020-01-01 00:00:00') - interval 1 day",
        "trim(both 'x' from extract(year from current_date) || r'\\d')",
        "mask('a', lowerChar => 'q')",
        "'größe {x} {{y}} $ ? :name'",
        "count(*) filter (where a > 1) > 0 and sum(a) is not null",
        "count(distinct a) = count(a) and max_by(a, b) > 1",
        "listagg(b, ',') within group (order by a desc) = 'x'",
    ],
)
def test_what_people_write_is_legal(spark: SparkSession, text: str) -> None:
    source = spark.createDataFrame([], "a int, b string")
    made = source.select(checked_expression(spark, text, PLACE, AGGREGATES).column)
    check_resolved(made, [source], PLACE, AGGREGATES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("upper", "ROW"), ("RAND", "RANDOM"), ("now", "SESSION"), ("collect_list", "ORDER"),
     ("sum", "ROW"), ("system.builtin.uuid", "RANDOM"), ("builtin.lower", "ROW")],
)  # fmt: skip
def test_it_is_known_what_results_of_functions_depend_on(name: str, expected: str) -> None:
    assert determinism_of(name) is Determinism(expected)
    assert refusal_of(name, NO_ALLOWANCES) == ""


def test_a_function_that_is_the_clock_without_arguments_depends_on_the_session() -> None:
    assert determinism_of("unix_timestamp") is Determinism.ROW
    assert determinism_of("unix_timestamp", has_arguments=False) is Determinism.SESSION


def test_spark_and_the_list_agree_on_chance(spark: SparkSession) -> None:
    """What Spark calls not deterministic is so here; here, more is."""
    source = spark.createDataFrame([], "a int, b string")
    calls = ("rand()", "randn()", "uuid()", "shuffle(array(a))", "input_file_name()",
             "monotonically_increasing_id()", "spark_partition_id()", "uniform(1, 2)",
             "randstr(3)", "upper(b)", "abs(a)")  # fmt: skip
    for call in calls:
        made = source.select(checked_expression(spark, call, PLACE).column)
        plan = made._jdf.queryExecution().analyzed()
        name = call.partition("(")[0]
        assert plan.deterministic() or determinism_of(name) is Determinism.RANDOM

"""SQL that gives other rows when it is computed again is refused before Spark and in the job."""

import json

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from support.declared.declarations import parsed
from support.hostile.tpchqueries import COLUMN, DATABASE, OTHERS, SQL_FIELDS

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.findings import Finding
from snaploom.policy.sqlfunctions import CHANGES_ROWS, FUNCTIONS, Kind
from snaploom.spark.gate import (
    ALLOW_SETTING,
    SqlPlace,
    check_resolved,
    checked_expression,
    checked_query,
)
from snaploom.validate.validator import validate

PLACE = SqlPlace("Kind/n", "spec.f", SourceSchemaInvalid, "SQL", varying=CHANGES_ROWS)
CHANCE = {
    "uuid": "uuid()", "rand": "rand()", "seed": "rand(7)", "random": "random()",
    "shuffle": "shuffle(array(1, 2))[0]", "file": "input_file_name()",
    "number": "monotonically_increasing_id()", "partition": "spark_partition_id()",
    "schema": "system.builtin.uuid()", "backticks": "`uuid`()",
    "lambda": "transform(array(1), x -> rand())[0]", "text": "randstr(3)",
}  # fmt: skip
CLOCK = {
    "now": "now()", "case": "Now ( )", "timestamp": "current_timestamp()", "date": "current_date()",
    "bare date": "CURRENT_DATE", "bare timestamp": "current_timestamp", "epoch": "unix_timestamp()",
    "user": "current_user()", "local": "localtimestamp()", "curdate": "curdate()",
    "typed": "DATE 'now'", "typed zone": "TIMESTAMP 'today Europe/Paris'",
    "cast": "cast('yesterday' AS date)", "short cast": "' Tomorrow '::timestamp",
    "function": "to_date('now')", "session": "current_timezone()", "version": "version()",
}  # fmt: skip
STABLE = ("unix_timestamp('2020-01-01')", "DATE 'epoch'", "'now'", "DATE '2020-01-01'")
BY_COMPARISON = "a = 'today'", "a < concat('n', 'ow')", "a IN ('now', '2020-01-01')"
BY_COMPUTED_TEXT = (
    "to_timestamp(concat('no', 'w'))", "to_date(reverse('won'))", "date(lower('NOW'))",
    "CAST(concat('tod', 'ay') AS timestamp)", "try_cast(substr('xnow', 2) AS date)",
    "to_timestamp_ntz(concat('no', 'w'))", "to_timestamp_ltz(concat('no', 'w'))",
    "try_to_timestamp(concat('no', 'w'))", "timestamp(element_at(array('now'), 1))",
    "CAST(left('nowx', 3) AS date)", "to_timestamp(nvl('now', 'x'))",
    "date_add(nvl('today', 'x'), 1)", "date_trunc('hour', right('xnow', 3))",
    "nvl2('a', 'now', 'x') > a", "dayname(btrim('xtodayx', 'x'))",
    "CAST(decode(unbase64('bm93'), 'utf-8') AS timestamp)",
    "date_format(ifnull(right('xnow', 3), 'x'), 'y')",
    "CAST(try_element_at(array(left('nowx', 3)), 1) AS timestamp)",
)  # fmt: skip
"""Only Spark knows these texts: `validate` accepts them, the job does not."""
ROW_FIELDS = tuple(field for field in SQL_FIELDS if field not in (DATABASE, "check", "index where"))


def findings(field: str, part: str) -> list[Finding]:
    resource, path = SQL_FIELDS[field]
    found = validate([*parsed([resource(part)]), *parsed(list(OTHERS))])
    return [one for one in found if one.path == path and one.code in ("SL156", "SL157", "SL147")]


@pytest.mark.parametrize("part", [*CHANCE.values(), *CLOCK.values()], ids=[*CHANCE, *CLOCK])
@pytest.mark.parametrize("field", ROW_FIELDS)
def test_what_varies_is_refused_wherever_rows_are_made(field: str, part: str) -> None:
    (found, *_) = findings(field, f"concat({part}, {COLUMN})")
    assert (found.code, found.is_error) == ("SL156", True)
    assert all([found.found, found.hint, found.resource])


@pytest.mark.parametrize("field", ["check", "index where"])
def test_a_check_and_a_choice_of_files_may_read_the_clock_and_nothing_random(field: str) -> None:
    assert [one.code for one in findings(field, f"rand() > {COLUMN}")] == ["SL156"]
    assert findings(field, f"{COLUMN} > CURRENT_DATE") == []


@pytest.mark.parametrize("part", STABLE)
def test_what_is_the_same_each_time_is_accepted(part: str) -> None:
    assert findings("simpleVirtual dataQuery", part) == []
    assert findings("relationship query", f"concat({COLUMN}, {part})") == []


def test_columns_called_as_a_function_is_are_columns() -> None:
    field = "complexVirtual dataQuery"
    for part in ("c0.current_date", "`current_date`", "user", "col AS current_date, 1"):
        assert findings(field, part) == []


@pytest.mark.parametrize(
    ("query", "shown"),
    [("first(col)", "first()"), ("collect_list(col)", "collect_list()"),
     ("array_join(collect_set(col), ',')", "collect_set()")],
)  # fmt: skip
def test_a_query_that_depends_on_the_order_of_rows_is_warned_of(query: str, shown: str) -> None:
    (found,) = findings("simpleVirtual dataQuery", query)
    assert (found.code, found.is_error, found.found) == ("SL157", False, shown)


@pytest.mark.parametrize(
    "part",
    ["sort_array(collect_list(col))", "size(collect_set(col))", "max(col)",
     "first(col) OVER (PARTITION BY b ORDER BY c)", "listagg(col) WITHIN GROUP (ORDER BY col)"],
)  # fmt: skip
def test_a_result_that_no_order_changes_is_no_warning(part: str) -> None:
    assert findings("complexVirtual dataQuery", part) == []


def test_limit_without_order_is_warned_of_and_a_sample_refused() -> None:
    queries = {"SELECT 1 LIMIT 3": "SL157", "SELECT 1 ORDER BY 1 LIMIT 3": None}
    for query, code in queries.items():
        inner = f"(SELECT count(*) FROM ({query}))"
        assert [one.code for one in findings("complexVirtual dataQuery", inner)] == [
            one for one in [code] if one
        ]
    sampled = "1 FROM c0 TABLESAMPLE (5 PERCENT) REPEATABLE (3) UNION ALL SELECT 2"
    assert [one.code for one in findings("complexVirtual dataQuery", sampled)] == ["SL156"]


@pytest.mark.parametrize(
    "condition",
    ["col < 'now'", "col < date 'today'", "col = user", "col < CURRENT_DATE", "rownum < col"],
)
def test_conditions_of_parts_read_by_themselves_have_no_clock(condition: str) -> None:
    (found,) = findings(DATABASE, condition)
    assert found.code == "SL147"


@pytest.mark.spark
def test_the_job_refuses_what_varies_by_itself(spark: SparkSession) -> None:
    source = spark.createDataFrame([], "a timestamp, b string")
    passed = [part for part in [*CHANCE.values(), *CLOCK.values()] if is_accepted(source, part)]
    assert passed == []
    computed = [part for part in BY_COMPARISON + BY_COMPUTED_TEXT if is_accepted(source, part)]
    assert computed == []
    assert [part for part in STABLE if not is_accepted(source, part)] == []


@pytest.mark.spark
def test_the_job_visits_each_part_of_nested_replacements_once(spark: SparkSession) -> None:
    source = spark.createDataFrame([], "a timestamp, b string")
    nested = "to_timestamp(" * 30 + "{}" + ")" * 30
    assert is_accepted(source, nested.format("a"))
    assert not is_accepted(source, nested.format("concat('no', 'w')"))


@pytest.mark.spark
def test_the_job_refuses_every_function_that_the_list_marks_as_varying(spark: SparkSession) -> None:
    source = spark.createDataFrame([], "a timestamp, b string")
    names = [
        one.name
        for one in FUNCTIONS.values()
        if one.kind is Kind.VALUE and one.determinism in CHANGES_ROWS and not one.refused
    ]
    assert len(names) > 20
    for name in names:
        with pytest.raises(SourceSchemaInvalid, match=r"computed again"):
            checked_expression(spark, f"{name}()", PLACE)
    assert is_accepted(source, "unix_timestamp(a)")


@pytest.mark.spark
def test_the_job_knows_columns_from_functions_without_brackets(spark: SparkSession) -> None:
    named = spark.createDataFrame([], "user string, current_date date")
    other = spark.createDataFrame([], "a int")
    for word in ("user", "current_date"):
        assert is_accepted(named, word)
        assert not is_accepted(other, word)


@pytest.mark.spark
def test_the_job_judges_queries_and_names_what_to_do(spark: SparkSession) -> None:
    frames = {"c": spark.createDataFrame([], "d date, k string")}
    for query in ("SELECT k FROM c WHERE d < current_date - 7", "SELECT uuid() FROM c GROUP BY k",
                  "SELECT k FROM c WHERE d = 'today'",
                  "SELECT * FROM c TABLESAMPLE (5 PERCENT)"):  # fmt: skip
        with pytest.raises(SourceSchemaInvalid, match="gives other rows") as refusal:
            checked_query(spark, query, frames, PLACE)
        assert refusal.value.hint
        assert refusal.value.found
    assert checked_query(spark, "SELECT max(d), k FROM c GROUP BY k", frames, PLACE).columns


@pytest.mark.spark
def test_a_user_s_function_is_judged_by_its_own_determinism(spark: SparkSession) -> None:
    source = spark.createDataFrame([], "b string")
    kept = spark.conf.get(ALLOW_SETTING, None)
    spark.udf.register("steady", lambda value: value)
    spark.udf.register("chancy", udf(lambda value: value).asNondeterministic())
    spark.conf.set(ALLOW_SETTING, json.dumps({"functions": ["steady", "chancy"]}))
    try:
        assert is_accepted(source, "steady(b)")
        assert not is_accepted(source, "chancy(b)")
    finally:
        spark.conf.set(ALLOW_SETTING, kept) if kept else spark.conf.unset(ALLOW_SETTING)
        for name in ("steady", "chancy"):
            spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def is_accepted(source: DataFrame, text: str) -> bool:
    try:
        made = source.select(checked_expression(source.sparkSession, text, PLACE).column)
        check_resolved(made, [source], PLACE)
    except SourceSchemaInvalid as error:
        if "computed again" not in error.message:
            raise
        return False
    return True

"""Windows: aggregates before each row's own time, against plain Python and DuckDB."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from support.weaving.smallmodels import Loom, Woven, same_key, weave_into

from snaploom.engine.fold import NUMBER
from snaploom.engine.rowcounts import Weaving
from snaploom.engine.schemachecks import check_schemas
from snaploom.models.report import JoinMeasure

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1)
MICROSECOND = timedelta(microseconds=1)
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "LAST_K",
             "APPROX_COUNT_DISTINCT")  # fmt: skip
OVER: dict[str, int | None] = {"": None, "PT0.000001S": 1, "PT0.000003S": 3, "PT0.000007S": 7}
"""Lengths, and the microseconds that they have."""
EVERY = [
    {"name": f"{function}_{n}".lower(), "function": function, "field": "value",
     **({"over": over} if over else {}), **({"k": 2} if function == "LAST_K" else {})}
    for function in FUNCTIONS for n, over in enumerate(OVER)
] + [{"name": "rows", "function": "COUNT", "over": "PT0.000003S"}]  # fmt: skip


def loom(*aggregates: dict[str, Any], **rule: Any) -> Loom:
    windows = {"parentField": "at", "childField": "paid", "aggregates": list(aggregates), **rule}
    other = {"dataSource": "payment", "windows": windows}
    return Loom("loan", [other], [same_key("key", "loan payment")])


def aggregate(function: str, over: str = "", **more: Any) -> dict[str, Any]:
    given = {"field": "value", **({"over": over} if over else {}), **more}
    return {"name": function.lower(), "function": function, **given}


def frames(
    spark: SparkSession,
    loans: Sequence[Any],
    payments: Sequence[Any],
    time: str = "timestamp_ntz",
    value: str = "bigint",
) -> dict[str, DataFrame]:
    """Loans of (key, time), and payments of (key, time, value)."""
    return {
        "loan": spark.createDataFrame(
            [(n, *row) for n, row in enumerate(loans)], f"n int, key int, at {time}"
        ),
        "payment": spark.createDataFrame(payments, f"key int, paid {time}, value {value}"),
    }


def values(woven: Woven) -> list[Row]:
    rows = woven.frame.selectExpr("data.n", "payment.data").orderBy("n").collect()
    return [row["data"] for row in rows]


def count(woven: Woven) -> JoinMeasure:
    (measure,) = woven.counts.joins
    return measure


# The rule in plain Python: every row of the key is looked at.


def windowed(
    key: int | None, at: int | None, paid: Sequence[Any], over: int | None, inclusive: bool
) -> list[tuple[int, int | None]]:
    """Times and values in the window, in order."""
    if key is None or at is None:
        return []
    found = [(t, v) for k, t, v in paid if k == key and t is not None]
    if inclusive:
        found = [(t, v) for t, v in found if t <= at and (over is None or t > at - over)]
    else:
        found = [(t, v) for t, v in found if t < at and (over is None or t >= at - over)]
    return found


def expected_of(function: str, rows: Sequence[tuple[int, int | None]]) -> Any:
    there = sorted((t, v) for t, v in rows if v is not None)
    found = [v for _, v in there]
    match function:
        case "COUNT":
            return len(found)
        case "APPROX_COUNT_DISTINCT":
            return len(set(found))
        case _ if not found:
            return None
        case "SUM":
            return sum(found)
        case "AVG":
            return sum(found) / len(found)
        case "MIN" | "MAX":
            return min(found) if function == "MIN" else max(found)
        case "FIRST":
            return found[0]
        case "LAST":
            return found[-1]
    return found[::-1][:2]


STEPS = st.integers(-9, 9)
KEYS = st.none() | st.integers(0, 1)
VALUES = st.none() | st.integers(-3, 3)


def times(rows: Sequence[Any]) -> list[Any]:
    return [
        (key, None if at is None else START + at * MICROSECOND, *rest) for key, at, *rest in rows
    ]


@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    loans=st.lists(st.tuples(KEYS, st.none() | STEPS), max_size=8),
    payments=st.lists(st.tuples(KEYS, st.none() | STEPS, VALUES), max_size=14),
    aggregates=st.lists(
        st.sampled_from(EVERY), min_size=1, max_size=4, unique_by=lambda one: one["name"]
    ),
    inclusive=st.booleans(),
)
def test_windows_are_those_that_plain_python_finds(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    loans: list[Any],
    payments: list[Any],
    aggregates: list[dict[str, Any]],
    inclusive: bool,
) -> None:
    made = frames(spark, times(loans), times(payments))
    weave = loom(*aggregates, inclusive=inclusive).weave(made)
    woven = weave_into(tmp_path_factory.mktemp("woven"), weave, spark)
    found = values(woven)
    for n, (key, at) in enumerate(loans):
        for one in aggregates:
            rows = windowed(key, at, payments, OVER[one.get("over", "")], inclusive)
            wanted = len(rows) if one["name"] == "rows" else expected_of(one["function"], rows)
            assert found[n][one["name"]] == wanted, (n, one)
    measure = count(woven)
    assert (measure.in_, measure.out) == (len(loans), len(loans))
    overs = [OVER[one.get("over", "")] for one in aggregates]
    longest = None if None in overs else max(over for over in overs if over is not None)
    met = [windowed(key, at, payments, longest, inclusive) for key, at in loans]
    assert measure.matched == sum(map(bool, met))
    assert measure.null_keys == sum(key is None for key, _ in loans)
    assert measure.null_times == sum(key is not None and at is None for key, at in loans)


@settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    loans=st.lists(st.tuples(KEYS, st.none() | st.integers(0, 10**13)), max_size=12),
    payments=st.lists(st.tuples(KEYS, st.none() | st.integers(0, 10**13), VALUES), max_size=30),
)
def test_windows_are_those_of_duckdb_s_range_join(spark, tmp_path_factory, loans, payments):
    """Days and weeks, over some months."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE loan (n INT, key INT, decided TIMESTAMP)")
        database.execute("CREATE TABLE payment (key INT, paid TIMESTAMP, value INT)")
        for n, row in enumerate(times(loans)):
            database.execute("INSERT INTO loan VALUES (?, ?, ?)", [n, *row])
        for row in times(payments):
            database.execute("INSERT INTO payment VALUES (?, ?, ?)", row)
        found = database.execute(
            "SELECT count(p.value), sum(p.value), min(p.value), "
            "count(p.value) FILTER (paid >= decided - INTERVAL 1 DAY) "
            "FROM loan l LEFT JOIN payment p "
            "ON l.key = p.key AND paid < decided AND paid >= decided - INTERVAL 30 DAY "
            "GROUP BY n ORDER BY n"
        ).fetchall()
    month = [aggregate(each, "30d") for each in ("COUNT", "SUM", "MIN")]
    weave = loom(*month, {**aggregate("COUNT", "1d"), "name": "day"}).weave(
        frames(spark, times(loans), times(payments))
    )
    woven = weave_into(tmp_path_factory.mktemp("woven"), weave, spark)
    assert [tuple(row) for row in values(woven)] == found


INSTANTS = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 4, 10)]
DAYS: dict[str, list[Any]] = {
    "timestamp": INSTANTS,
    "timestamp_ntz": [one.replace(tzinfo=None) for one in INSTANTS],
    "date": [one.date() for one in INSTANTS],
}


@pytest.mark.parametrize("type_", DAYS)
@pytest.mark.parametrize(("inclusive", "counts"), [(False, [0, 1, 0]), (True, [1, 1, 1])])
def test_every_kind_of_time_has_windows(spark, tmp_path, type_, inclusive, counts):
    """A week of dates is seven of them, with the row's own date or without it."""
    days = DAYS[type_]
    made = frames(spark, [(1, day) for day in days], [(1, day, 1) for day in days], type_)
    weave = loom(aggregate("COUNT", "P3D"), inclusive=inclusive).weave(made)
    assert [row["count"] for row in values(weave_into(tmp_path, weave, spark))] == counts


@pytest.mark.parametrize(("zone", "found"), [("America/New_York", [0, 1]), ("UTC", [1, 1])])
def test_day_begins_in_the_stated_zone(spark, tmp_path, zone, found):
    hours = [(1, datetime(2024, 1, 1, hour, tzinfo=UTC)) for hour in (4, 6)]
    made = frames(spark, hours, [], "timestamp")
    made["payment"] = spark.createDataFrame([(1, date(2024, 1, 1))], "key int, paid date")
    rows = {"name": "rows", "function": "COUNT"}
    woven = weave_into(tmp_path, loom(rows, timeZone=zone).weave(made), spark)
    assert [row["rows"] for row in values(woven)] == found


TYPES = {
    "tinyint": ("bigint", "double"), "bigint": ("bigint", "double"), "float": ("double", "double"),
    "decimal(10,2)": ("decimal(20,2)", "decimal(14,6)"),
    "decimal(38,18)": ("decimal(38,18)", "decimal(38,22)"),
}  # fmt: skip


@pytest.mark.parametrize("type_", TYPES)
def test_types_are_those_of_spark_s_own_functions(spark, tmp_path, type_):
    given = [Decimal("1.25"), Decimal("2.50")] if "decimal" in type_ else [1, 2]
    given = [float(one) for one in given] if type_ == "float" else given
    made = frames(spark, [(1, 9)], [], "int", type_)
    made["loan"] = made["loan"].selectExpr("n", "key", "timestamp_micros(at) AS at")
    made["payment"] = spark.createDataFrame(
        [(1, at, value) for at, value in zip((3, 7), given, strict=True)],
        f"key int, paid int, value {type_}",
    ).selectExpr("key", "timestamp_micros(paid) AS paid", "value")
    every = [{**one, "over": "PT0.000006S"} for one in map(aggregate, ("SUM", "AVG", "MIN"))]
    woven = weave_into(tmp_path, loom(*every, aggregate("LAST_K", k=3)).weave(made), spark)
    types = dict(woven.frame.select("payment.data.*").dtypes)
    assert types == dict(zip(("sum", "avg", "min", "last_k"),
        (*TYPES[type_], type_, f"array<{type_}>"), strict=True))  # fmt: skip
    own = made["payment"].agg(sf.sum("value"), sf.avg("value")).dtypes
    assert [dtype for _, dtype in own] == list(TYPES[type_])
    (row,) = values(woven)
    assert (row["sum"], row["avg"]) == (sum(given), sum(given) / 2)


@pytest.mark.parametrize(
    ("type_", "value"), [("bigint", 2**62), ("decimal(38,0)", Decimal(10) ** 37 * 6)]
)
def test_sum_beyond_its_type_fails(spark, tmp_path, type_, value):
    paid = [(1, START + n * MICROSECOND, value) for n in range(3)]
    made = frames(spark, [(1, START + 3 * MICROSECOND)], paid, "timestamp_ntz", type_)
    with pytest.raises(Exception, match=r"OVERFLOW|OUT_OF_RANGE"):
        weave_into(tmp_path, loom(aggregate("SUM", "PT0.000004S")).weave(made), spark)


def test_decimals_of_all_digits_keep_their_last_one(spark: SparkSession, tmp_path: Path) -> None:
    small = Decimal(1).scaleb(-18)
    paid = [(1, START + n * MICROSECOND, small) for n in (3, 7)]
    made = frames(spark, [(1, START + 9 * MICROSECOND)], paid, "timestamp_ntz", "decimal(38,18)")
    woven = weave_into(tmp_path, loom(aggregate("SUM", "PT0.000006S")).weave(made), spark)
    assert [row["sum"] for row in values(woven)] == [2 * small]


def test_nan_is_a_value_and_negative_zero_is_zero(spark: SparkSession, tmp_path: Path) -> None:
    nan = float("nan")
    paid = [(1, START, nan), (1, START, 5.0), (2, START, -0.0), (2, START, 0.0)]
    loans = [(key, START + MICROSECOND) for key in (1, 2)]
    made = frames(spark, loans, paid, "timestamp_ntz", "double")
    names = ("SUM", "MAX", "MIN", "LAST", "APPROX_COUNT_DISTINCT")
    weave = loom(*(aggregate(name) for name in names)).weave(made)
    first, second = values(weave_into(tmp_path, weave, spark))
    assert [math.isnan(first[name]) for name in ("sum", "max", "min", "last")] == [
        True, True, False, True]  # fmt: skip
    assert [math.copysign(1, second[name]) for name in ("max", "min", "last")] == [1, 1, 1]
    assert (first.approx_count_distinct, second.approx_count_distinct) == (2, 1)


def test_texts_and_flags_have_windows_and_any_column_is_counted(spark, tmp_path):
    made = frames(spark, [(1, START + MICROSECOND)], [])
    made["payment"] = spark.createDataFrame(
        [(1, START, ("a", True), {"k": 1}), (1, START, ("b", False), None)],
        "key int, paid timestamp_ntz, `of us` struct<text string, flag boolean>, "
        "map map<string,int>",
    )
    text = [{"name": f.lower(), "function": f, "field": "`of us`.TEXT"} for f in ("FIRST", "LAST")]
    flag = {"name": "flag", "function": "MAX", "field": "`of us`.flag", "over": "1d"}
    maps = {"name": "maps", "function": "COUNT", "field": "map", "over": "1d"}
    weave = loom(*text, flag, maps).weave(made)
    assert [tuple(row) for row in values(weave_into(tmp_path, weave, spark))] == [
        ("a", "b", True, 1)]  # fmt: skip


def test_times_at_both_ends_of_the_calendar_have_windows(spark, tmp_path):
    ends = [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]
    made = {
        "loan": spark.createDataFrame(
            [(n, 1, at) for n, at in enumerate(ends)], "n int, key int, at bigint"
        ),
        "payment": spark.createDataFrame(
            [(1, at, 1) for at in ends], "key int, paid bigint, value int"
        ),
    }
    made["loan"] = made["loan"].withColumn("at", sf.timestamp_micros("at"))
    made["payment"] = made["payment"].withColumn("paid", sf.timestamp_micros("paid"))
    counts = [aggregate("COUNT", over) for over in ("PT0.000001S", "999999999999w")]
    named = [{**one, "name": name} for one, name in zip(counts, ("near", "far"), strict=True)]
    found = [tuple(row) for row in values(weave_into(tmp_path, loom(*named).weave(made), spark))]
    assert found == [(0, 0), (1, 1), (0, 0), (1, 1)]


def test_elements_of_an_array_have_windows_of_their_own(spark, tmp_path):
    """Visits of a patient, each with what was measured before it."""
    visits = {"dataSource": "visit", "transformations": {"groupBy": {"fieldNames": ["patient"]}}}
    rule = {"parentField": "at", "childField": "at", "aggregates": [
        {"name": "n", "function": "COUNT", "over": "2d"},
        {"name": "least", "function": "MIN", "field": "value", "over": "9d"}]}  # fmt: skip
    model = Loom(
        "patient",
        [visits, {"dataSource": "measured", "windows": rule}],
        [same_key("patient", "patient visit"), same_key("ward", "visit measured")],
    )
    day = [date(2024, 1, n) for n in range(1, 10)]
    made = {
        "patient": spark.createDataFrame([(1,), (2,)], "patient int"),
        "visit": spark.createDataFrame(
            [(1, 7, day[1]), (1, 7, day[4]), (1, 8, day[4])], "patient int, ward int, at date"
        ),
        "measured": spark.createDataFrame(
            [(7, day[0], 5), (7, day[3], 9)], "ward int, at date, value int"
        ),
    }
    woven = weave_into(tmp_path, model.weave(made), spark)
    first, second = woven.rows("data.patient")
    assert [tuple(e.measured.data) for e in first.visit] == [(1, 5), (1, 5), (0, None)]
    assert second.visit is None
    assert [(j.child, j.in_, j.out, j.matched) for j in woven.counts.joins] == [
        ("visit", 2, 2, 1), ("measured", 3, 3, 2)]  # fmt: skip


WRONG: dict[str, tuple[str, str, str, str]] = {
    "text as a time": ("string", "bigint", "paid", "neither a time nor a number"),
    "number as a time": ("int", "bigint", "paid", "a time is not compared with a number"),
    "no zone": ("date", "bigint", "paid", "give timeZone"),
    "sum of texts": ("timestamp", "string", "value", "SUM needs numbers"),
    "sum of arrays": ("timestamp", "array<int>", "value", "SUM needs numbers"),
    "no digit": ("timestamp", "decimal(38,38)", "value", "has no digit"),
}


@pytest.mark.parametrize("case", WRONG)
def test_types_that_have_no_windows_are_a_missing_field(spark: SparkSession, case: str) -> None:
    time, value, field, words = WRONG[case]
    model, made = loom(aggregate("SUM")), frames(spark, [], [], "timestamp")
    made["payment"] = made["payment"].selectExpr(
        "key", f"CAST(NULL AS {time}) AS paid", f"CAST(NULL AS {value}) AS value"
    )
    schemas = {"": made["loan"].schema, "payment": made["payment"].schema}
    outcome = check_schemas(model.tree, schemas, model.settings, model.by_name)
    assert (outcome.stop.side.source, outcome.stop.field) == ("payment", field)
    assert words in str(outcome.stop.error())


@pytest.mark.parametrize(
    ("source", "column"), [("loan", "at"), ("payment", "paid"), ("payment", "value")]
)
def test_absent_column_of_either_side_is_a_missing_field(spark, source, column):
    model, made = loom(aggregate("MAX")), frames(spark, [], [], "date")
    made[source] = made[source].drop(column)
    schemas = {"": made["loan"].schema, "payment": made["payment"].schema}
    outcome = check_schemas(model.tree, schemas, model.settings, model.by_name)
    assert (outcome.stop.side.source, outcome.stop.field) == (source, column)


def test_snapshots_woven_together_are_counted_each(spark: SparkSession, tmp_path: Path) -> None:
    day = timedelta(days=1)
    loans = [(1, START + day), (1, None), (1, START + 3 * day), (2, START)]
    made = frames(spark, loans, [(1, START, 5)])
    made["loan"] = made["loan"].withColumn(NUMBER, (sf.col("n") >= 2).cast("int"))
    weaving = Weaving(replace(loom(aggregate("SUM", "1d")).weave(made), snapshots=2))
    spark.sparkContext.setJobGroup("together", "test")
    weaving.frame.write.parquet(f"{tmp_path}/rows")
    found = weaving.settle(spark, "together", lambda: len(loans))
    measures = [counts.joins[0] for counts in found]
    assert [(j.in_, j.matched, j.null_times) for j in measures] == [(2, 1, 1), (2, 0, 0)]


def test_outcomes_are_counted_where_other_counts_are_taken_late(spark, tmp_path):
    """Under an accelerator: nothing in files distinguishes a window without rows."""
    for source, frame in frames(spark, [(1, START), (2, START)], [(1, START, 7)]).items():
        frame.write.parquet(f"{tmp_path}/{source}")
    made = {source: spark.read.parquet(f"{tmp_path}/{source}") for source in ("loan", "payment")}
    weave = loom(aggregate("COUNT", "1d"), inclusive=True).weave(made)
    measure = count(weave_into(tmp_path, weave, spark, counts_late=True))
    assert (measure.in_, measure.out, measure.matched) == (2, 2, 1)


def test_one_shuffle_serves_all_lengths_and_no_window_holds_its_rows(spark: SparkSession) -> None:
    """Frames begin with their partition: those that do not keep and repeat all rows inside."""
    every = [aggregate("SUM", f"{days}d") for days in (1, 7, 30)] + [aggregate("LAST", "7d")]
    named = [{**one, "name": f"n{n}"} for n, one in enumerate(every)]
    frame = Weaving(loom(*named).weave(frames(spark, [(1, START)], [(1, START, 1)]))).frame
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning") == 1
    assert plan.count("Window [") == 1 + 2 * 3
    assert plan.count("specifiedwindowframe(") == plan.count(
        "specifiedwindowframe(RowFrame, unboundedpreceding$(), currentrow$())"
    )

"""As-of joins: the row that holds at each row's own time, against plain Python and DuckDB."""

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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.weaving.smallmodels import Loom, Woven, same_key, weave_into

from snaploom.engine.fold import NUMBER
from snaploom.engine.rowcounts import Weaving
from snaploom.engine.schemachecks import check_schemas
from snaploom.engine.unmatched import (
    SECONDS_FOR_NEWEST,
    TimeAllowance,
    unmatched_rows,
    unmatched_warnings,
)
from snaploom.errors import RowsMultiplied
from snaploom.models.report import JoinMeasure

pytestmark = [pytest.mark.spark, pytest.mark.long]

START = datetime(2024, 1, 1)
MICROSECOND = timedelta(microseconds=1)


def loom(**as_of: Any) -> Loom:
    rule = {"parentField": "at", "childField": "since", **as_of}
    other = {"dataSource": "rate", "asOf": rule}
    return Loom("order", [other], [same_key("key", "order rate")])


def frames(
    spark: SparkSession, orders: Sequence[Any], rates: Sequence[Any], type_: str = "timestamp_ntz"
) -> dict[str, DataFrame]:
    """Orders of (key, time), and rates of (key, time, until, version, value)."""
    return {
        "order": spark.createDataFrame(
            [(n, *row) for n, row in enumerate(orders)], f"n int, key int, at {type_}"
        ),
        "rate": spark.createDataFrame(
            [(*row, *[None] * (4 - len(row)), n) for n, row in enumerate(rates)],
            f"key int, since {type_}, until {type_}, version int, value int",
        ),
    }


def values(woven: Woven) -> list[int | None]:
    rows = woven.frame.selectExpr("data.n", "rate.data.value").orderBy("n").collect()
    return [row.value for row in rows]


def count(woven: Woven) -> JoinMeasure:
    (measure,) = woven.counts.joins
    return measure


# The rule in plain Python: every row of the key is looked at.

Time = Any
Rate = tuple[int | None, Time, Time, int | None]


def matched(
    key: int | None, at: Time, rates: Sequence[Rate], direction: str, strict: bool, newest: bool
) -> int | str | None:
    """Number of the rate that holds at a time; None for none, "tie" for several."""
    if key is None or at is None:
        return None

    def best(backward: bool) -> tuple[Time, list[int]] | None:
        sides = [
            (r[1], n)
            for n, r in enumerate(rates)
            if r[0] == key and r[1] is not None
            and ((r[1] < at if backward else r[1] > at) or (not strict and r[1] == at))
        ]  # fmt: skip
        if not sides:
            return None
        time = (max if backward else min)(time for time, _ in sides)
        return time, [n for t, n in sides if t == time]

    found = [best(backward) for backward in (True, False) if direction in (
        "NEAREST", "BACKWARD" if backward else "FORWARD")]  # fmt: skip
    there = [one for one in found if one is not None]
    if not there:
        return None
    _, rows = min(there, key=lambda one: abs(at - one[0]))  # of two equal ones the first
    if newest:
        ranks = [(-1 if rates[n][3] is None else rates[n][3] or 0) for n in rows]
        rows = [n for n, rank in zip(rows, ranks, strict=True) if rank == max(ranks)]
    return rows[0] if len(rows) == 1 else "tie"


STEPS = st.integers(0, 6)
TIMES = st.none() | STEPS.map(lambda n: START + n * MICROSECOND)
KEYS = st.none() | st.integers(0, 2)
VERSIONS = st.none() | st.integers(0, 2)


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    orders=st.lists(st.tuples(KEYS, TIMES), max_size=10),
    rates=st.lists(st.tuples(KEYS, TIMES, st.none(), VERSIONS), max_size=8),
    direction=st.sampled_from(["BACKWARD", "FORWARD", "NEAREST"]),
    strict=st.booleans(),
    newest=st.booleans(),
)
def test_rows_are_those_that_plain_python_finds(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    orders: list[Any],
    rates: list[Any],
    direction: str,
    strict: bool,
    newest: bool,
) -> None:
    rule = {"ties": {"newestBy": "version"}} if newest else {}
    expected = [matched(*order, rates, direction, strict, newest) for order in orders]
    weave = loom(direction=direction, strict=strict, **rule).weave(frames(spark, orders, rates))
    folder = tmp_path_factory.mktemp("woven")
    if "tie" in expected:
        with pytest.raises(RowsMultiplied, match="several rows of `rate` hold at one time"):
            weave_into(folder, weave, spark)
        return
    woven = weave_into(folder, weave, spark)
    assert values(woven) == expected
    measure = count(woven)
    assert (measure.in_, measure.out) == (len(orders), len(orders))
    assert measure.matched == sum(one is not None for one in expected)
    assert measure.null_keys == sum(key is None for key, _ in orders)
    assert measure.null_times == sum(key is not None and at is None for key, at in orders)


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    orders=st.lists(st.tuples(KEYS, TIMES), max_size=12),
    rates=st.lists(st.tuples(KEYS, TIMES), max_size=8, unique=True),
    direction=st.sampled_from(["BACKWARD", "FORWARD"]),
    strict=st.booleans(),
)
def test_rows_are_those_of_duckdb_s_asof_join(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    orders: list[Any],
    rates: list[Any],
    direction: str,
    strict: bool,
) -> None:
    sign = (">" if direction == "BACKWARD" else "<") + "=" * (not strict)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE orders (n INT, key INT, ordered TIMESTAMP)")
        database.execute("CREATE TABLE rates (value INT, key INT, since TIMESTAMP)")
        for table, rows in (("orders", orders), ("rates", rates)):
            for n, row in enumerate(rows):
                database.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", [n, *row])
        found = database.execute(
            "SELECT value FROM orders o ASOF LEFT JOIN rates r "
            f"ON o.key = r.key AND o.ordered {sign} r.since ORDER BY n"
        ).fetchall()
    woven = weave_into(
        tmp_path_factory.mktemp("woven"),
        loom(direction=direction, strict=strict).weave(frames(spark, orders, rates)),
        spark,
    )
    assert values(woven) == [value for (value,) in found]


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    orders=st.lists(STEPS, min_size=1, max_size=6),
    rates=st.lists(st.tuples(STEPS, st.none() | STEPS), max_size=5),
)
def test_intervals_hold_up_to_their_end_and_fail_where_they_overlap(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    orders: list[int],
    rates: list[tuple[int, int | None]],
) -> None:
    holding = [(a, 99 if b is None else b, n) for n, (a, b) in enumerate(rates)]
    holding = [one for one in holding if one[0] < one[1]]
    expected = [[n for a, b, n in holding if a <= at < b] for at in orders]
    rows = [(1, since, until) for since, until in rates]
    made = frames(spark, [(1, at) for at in orders], rows, "int")
    weave = loom(childUntilField="until").weave(made)
    folder = tmp_path_factory.mktemp("woven")
    if any(len(one) > 1 for one in expected):
        with pytest.raises(RowsMultiplied, match="intervals up to until that do not overlap"):
            weave_into(folder, weave, spark)
    elif all(a[1] <= b[0] for a, b in zip(sorted(holding), sorted(holding)[1:], strict=False)):
        assert values(weave_into(folder, weave, spark)) == [
            one[0] if one else None for one in expected
        ]


def test_tie_is_named_by_key_and_time_and_only_where_a_row_meets_it(spark, tmp_path):
    later = START + timedelta(hours=1)
    rates = [(1, START), (1, START), (2, later), (2, later), (3, START)]
    orders = [(1, later), (1, later), (2, START), (3, later)]
    with pytest.raises(RowsMultiplied) as error:
        weave_into(tmp_path / "met", loom().weave(frames(spark, orders, rates)), spark)
    assert error.value.found == "key = 1, since = 2024-01-01 00:00:00 (met by 2 rows)"
    assert "ties: {newestBy: COLUMN}" in str(error.value)
    woven = weave_into(tmp_path / "not", loom().weave(frames(spark, orders[2:], rates)), spark)
    assert values(woven) == [None, 4]


ORDER = {"timestamp_ntz": [START, START + timedelta(days=3), START + timedelta(days=9)],
         "timestamp": [datetime(2024, 1, n, tzinfo=UTC) for n in (1, 4, 10)],
         "date": [date(2024, 1, n) for n in (1, 4, 10)],
         "bigint": [2**60, 2**60 + 3, 2**60 + 9], "double": [1.5, 4.5, 10.5],
         "decimal(20,2)": [Decimal("1.50"), Decimal("4.50"), Decimal("10.50")]}  # fmt: skip


@pytest.mark.parametrize("type_", ORDER)
def test_every_kind_of_time_is_compared_and_bounded_by_the_tolerance(spark, tmp_path, type_):
    first, second, third = ORDER[type_]
    is_time = type_ in ("timestamp_ntz", "timestamp", "date")
    bound: dict[str, Any] = {"tolerance": "P3D"} if is_time else {"numberTolerance": 3}
    made = frames(spark, [(1, first), (1, second), (1, third), (1, None)], [(1, first)], type_)
    woven = weave_into(tmp_path, loom(**bound).weave(made), spark)
    assert values(woven) == [0, 0, None, None]
    measure = count(woven)
    assert (measure.matched, measure.null_times, measure.beyond_tolerance) == (2, 1, 1)
    assert measure.unmatched == 1


def test_nan_is_no_time_and_negative_zero_is_zero(spark: SparkSession, tmp_path: Path) -> None:
    nan = float("nan")
    made = frames(spark, [(1, nan), (1, -0.0), (1, 5.0)], [(1, nan), (1, 0.0)], "double")
    woven = weave_into(tmp_path, loom().weave(made), spark)
    assert values(woven) == [None, 1, 1]
    assert count(woven).null_times == 1


@pytest.mark.parametrize(
    ("zone", "found"), [("America/New_York", [None, 0]), ("UTC", [0, 0]), ("Asia/Tokyo", [0, 0])]
)
def test_day_begins_in_the_stated_zone(spark, tmp_path, zone, found):
    hours = [(1, datetime(2024, 1, 1, hour, tzinfo=UTC)) for hour in (4, 5)]
    made = frames(spark, hours, [], "timestamp")
    made["rate"] = spark.createDataFrame(
        [(1, date(2024, 1, 1), 0)], "key int, since date, value int"
    )
    assert values(weave_into(tmp_path, loom(timeZone=zone).weave(made), spark)) == found


def test_children_above_and_below_an_as_of_child_are_joined(spark, tmp_path):
    """Lines of an order, each with the price of its own time, and the list that the price is of."""
    lines = {"dataSource": "line", "transformations": {"groupBy": {"fieldNames": ["order"]}}}
    price = {"dataSource": "price", "asOf": {"parentField": "at", "childField": "since"}}
    model = Loom(
        "order",
        [lines, price, "list"],
        [
            same_key("order", "order line"),
            same_key("item", "line price"),
            same_key("list", "price list"),
        ],
    )
    made = {
        "order": spark.createDataFrame([(1,), (2,)], "order int"),
        "line": spark.createDataFrame(
            [(1, 7, 10), (1, 7, 20), (1, 8, 5)], "order int, item int, at int"
        ),
        "price": spark.createDataFrame(
            [(7, 10, 1), (7, 15, 2), (8, 9, 1)], "item int, since int, list int"
        ),
        "list": spark.createDataFrame([(1, "a"), (2, "b")], "list int, name string"),
    }
    woven = weave_into(tmp_path, model.weave(made), spark)
    first, second = woven.rows("data.order")
    assert [(e.data.at, e.price and e.price.list.data.name) for e in first.line] == [
        (10, "a"), (20, "b"), (5, None)]  # fmt: skip
    assert second.line is None
    assert [(j.child, j.in_, j.matched, j.null_times) for j in woven.counts.joins] == [
        ("line", 2, 1, None), ("price", 3, 2, 0), ("list", 3, 3, None)]  # fmt: skip


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "text": ({}, "string", "neither a time nor a number"),
    "number": ({}, "int", "a time is not compared with a number"),
    "zone": ({}, "date", "give timeZone"),
    "tolerance": ({"numberTolerance": 1}, "timestamp", "give tolerance"),
}


@pytest.mark.parametrize("case", WRONG)
def test_times_that_do_not_compare_are_a_missing_field(spark: SparkSession, case: str) -> None:
    rule, type_, words = WRONG[case]
    model = loom(**rule)
    made = frames(spark, [], [], "timestamp")
    made["rate"] = made["rate"].selectExpr("key", f"CAST(NULL AS {type_}) AS since")
    schemas = {"": made["order"].schema, "rate": made["rate"].schema}
    outcome = check_schemas(model.tree, schemas, model.settings, model.by_name)
    assert (outcome.stop.side.source, outcome.stop.field) == ("rate", "since")
    assert words in str(outcome.stop.error())


def test_absent_column_of_either_side_is_a_missing_field(spark: SparkSession) -> None:
    model = loom(childUntilField="until")
    made = frames(spark, [], [], "date")
    for source, column in (("order", "at"), ("rate", "since"), ("rate", "until")):
        lacking = {**made, source: made[source].drop(column)}
        schemas = {"": lacking["order"].schema, "rate": lacking["rate"].schema}
        outcome = check_schemas(model.tree, schemas, model.settings, model.by_name)
        assert (outcome.stop.side.source, outcome.stop.field) == (source, column)


def test_snapshots_woven_together_are_counted_each(spark: SparkSession, tmp_path: Path) -> None:
    orders = [(1, START), (1, None), (1, START + timedelta(days=2)), (2, START)]
    made = frames(spark, orders, [(1, START)])
    made["order"] = made["order"].withColumn(NUMBER, (sf.col("n") >= 2).cast("int"))
    one = loom(tolerance="1d").weave(made)
    weaving = Weaving(replace(one, snapshots=2))
    spark.sparkContext.setJobGroup("together", "test")
    weaving.frame.write.parquet(f"{tmp_path}/rows")
    found = weaving.settle(spark, "together", lambda: len(orders))
    measures = [counts.joins[0] for counts in found]
    assert [(j.in_, j.matched, j.null_times, j.beyond_tolerance) for j in measures] == [
        (2, 1, 1, 0), (2, 0, 0, 1)]  # fmt: skip


def test_rows_without_a_match_are_distinguished_by_key_and_time(spark, tmp_path):
    model = Loom(
        "order",
        [{"dataSource": "rate", "asOf": {"parentField": "at", "childField": "since"}}],
        [same_key("key", "order rate", "string")],
    )
    orders = [("a", 5), ("a", 1), ("a", None), ("A", 5), ("x", 5), (None, 5)]
    made = {
        "order": spark.createDataFrame(orders, "key string, at int"),
        "rate": spark.createDataFrame([("a", 3), ("a", 4), ("x", None)], "key string, since int"),
    }
    weave = model.weave(made)
    joins = weave_into(tmp_path, weave, spark).counts.joins
    allowance = TimeAllowance(spent=SECONDS_FOR_NEWEST - 300)
    (found,) = unmatched_rows(weave, joins, frozenset(), allowance)
    assert (found.rows, found.other_times, found.keys) == (3, 1, ("A", "x"))
    assert [(miss.rows, miss.ambiguous) for miss in found.near_misses] == [(1, 0)]
    (warning,) = unmatched_warnings(weave, joins, [found])
    assert "1 would find their key, if not their time, in capitals" in warning

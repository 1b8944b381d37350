"""Rows of two frames compared by key: counts, columns and samples agree with plain Python."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from snaploom.confidential import remember_secret
from snaploom.engine.rowcomparison import compare_rows
from snaploom.plan.differences import RowChange, RowChanges

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCHEMA = (
    "data struct<id: int, f: double, t: string, m: map<string, int>>, "
    "child struct<n: int, inner: struct<x: int>>, items array<struct<f: double, m: map<int, int>>>"
)
LEAVES = ("data.f", "data.t", "data.m", "child", "child.n", "child.inner", "child.inner.x", "items")
Values = Mapping[str, Any]

floats = st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, None])
ints = st.sampled_from([None, 1, 2])
maps = st.one_of(st.none(), st.dictionaries(st.sampled_from("ab"), ints))
children = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"n": ints, "inner": st.one_of(st.none(), st.fixed_dictionaries({"x": ints}))}
    ),
)
items = st.one_of(
    st.none(),
    st.lists(
        st.fixed_dictionaries(
            {"f": floats, "m": st.one_of(st.none(), st.dictionaries(st.integers(0, 1), ints))}
        ),
        max_size=2,
    ),
)
values = st.fixed_dictionaries(
    {
        "data": st.fixed_dictionaries(
            {"f": floats, "t": st.sampled_from(["", "a", None]), "m": maps}
        ),
        "child": children,
        "items": items,
    }
)
tables = st.dictionaries(st.integers(0, 40), values, max_size=40)


def plain(value: Any) -> Any:
    """A value that is equal where SQL's null-safe equality holds; maps have no order."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def at(row: Values, path: str) -> Any:
    """What a leaf is; a struct counts by whether it is there."""
    found: Any = row
    for name in path.split("."):
        found = None if found is None else found[name]
    return found is None if path in ("child", "child.inner") else plain(found)


def expected(before: Mapping[int, Values], after: Mapping[int, Values]) -> tuple[Any, ...]:
    both = before.keys() & after.keys()
    columns = {
        path: sum(at(before[key], path) != at(after[key], path) for key in both) for path in LEAVES
    }
    changed = sum(any(at(before[k], p) != at(after[k], p) for p in LEAVES) for k in both)
    counts = (len(after.keys() - both), len(before.keys() - both), changed, len(both) - changed)
    return (*counts, {path: rows for path, rows in columns.items() if rows})


def frame(spark: SparkSession, table: Mapping[int, Values]) -> Any:
    rows = [{**row, "data": {"id": key, **row["data"]}} for key, row in table.items()]
    return spark.createDataFrame(rows, SCHEMA)


def compared(spark: SparkSession, before: Any, after: Any, samples: int = 0) -> RowChanges:
    return compare_rows(frame(spark, before), frame(spark, after), ["id"], samples)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables, tables)
def test_counts_are_those_of_plain_python(spark: SparkSession, before: Any, after: Any) -> None:
    found = compared(spark, before, after)
    columns = {one.path: one.rows for one in found.columns}
    counts = found.added, found.removed, found.changed, found.unchanged
    assert (*counts, columns) == expected(before, after)


KEYED = "data struct<a: int, b: string, v: double>"
parts = st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, "", "x"]), floats)
many = st.lists(parts, max_size=12)


def expected_of_many(before: list[Any], after: list[Any]) -> tuple[int, ...]:
    """By key: equal rows pair off, then what is left pairs off in any order."""
    sides = [Counter((a, b, plain(v)) for a, b, v in side) for side in (before, after)]
    equal = sides[0] & sides[1]
    lefts = [Counter() for _ in sides]
    for side, left in zip(sides, lefts, strict=True):
        for (a, b, _), rows in (side - equal).items():
            left[a, b] += rows
    changed = lefts[0] & lefts[1]
    added, removed = ((lefts[n] - changed).total() for n in (1, 0))
    return added, removed, changed.total(), equal.total()


def counts_of_many(spark: SparkSession, before: list[Any], after: list[Any]) -> tuple[int, ...]:
    frames = [spark.createDataFrame([(one,) for one in side], KEYED) for side in (before, after)]
    found = compare_rows(*frames, ["a", "b"], 3)
    assert len(found.samples) == sum(
        min(3, rows) for rows in (found.added, found.removed, found.changed)
    )
    assert sum(one.rows for one in found.columns) == found.changed
    return found.added, found.removed, found.changed, found.unchanged


def test_key_with_a_null_part_is_one_changed_row(spark: SparkSession) -> None:
    before, after = [(1, None, 1.5), (None, "x", 2.0)], [(None, "x", 2.0), (1, None, 2.5)]
    assert counts_of_many(spark, before, after) == (0, 0, 1, 1)


def test_row_that_stands_twice_is_one_added_row(spark: SparkSession) -> None:
    row, other = (1, "x", 1.5), (2, "x", 1.5)
    assert counts_of_many(spark, [row, other], [row, row, other]) == (1, 0, 0, 2)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(many, many)
def test_rows_with_any_keys_are_paired_as_in_plain_python(spark, before, after):
    assert counts_of_many(spark, before, after) == expected_of_many(before, after)


def row(text: str | None, number: int | None = None) -> Values:
    return {"data": {"f": 1.5, "t": text, "m": {"a": number}}, "child": None, "items": None}


def test_samples_are_the_first_of_each_kind_and_cut(spark: SparkSession) -> None:
    before = {n: row("a") for n in range(10)}
    after = {n: row("b" * 500 if n == 4 else None, n) for n in range(4, 14)}
    found = compared(spark, before, after, samples=2)
    shown = [(one.change, dict(one.key)["id"]) for one in found.samples]
    assert shown == [
        (RowChange.ADDED, "10"), (RowChange.ADDED, "11"), (RowChange.CHANGED, "4"),
        (RowChange.CHANGED, "5"), (RowChange.REMOVED, "0"), (RowChange.REMOVED, "1"),
    ]  # fmt: skip
    long, short = ({v.path: (v.before, v.after) for v in found.samples[n].values} for n in (2, 3))
    assert long["data.t"] == ("a", "b" * 200 + " ...")
    assert short == {"data.t": ("a", None), "data.m": ('{"a":null}', '{"a":5}')}
    assert compared(spark, before, after).samples == ()


def test_credentials_in_data_are_not_shown(spark: SparkSession) -> None:
    remember_secret("correct-horse")
    found = compared(spark, {1: row("a")}, {1: row("key=correct-horse")}, samples=1)
    (value,) = found.samples[0].values
    assert (value.before, value.after) == ("a", "key=***")


@pytest.mark.slow
def test_width_of_a_row_bounds_no_comparison_but_a_sample(spark: SparkSession) -> None:
    names = [f"c{number}" for number in range(100)]
    wide = spark.range(3).selectExpr(
        f"struct(id, {', '.join(f'id as {name}' for name in names)}) as data"
    )
    other = wide.selectExpr(
        f"struct(data.id, {', '.join(f'data.{name} + 1 as {name}' for name in names)}) as data"
    )
    found = compare_rows(wide, other, ["id"], 1)
    assert (found.changed, len(found.columns)) == (3, 100)
    (sample,) = found.samples
    assert (len(sample.values), sample.omitted) == (20, 80)

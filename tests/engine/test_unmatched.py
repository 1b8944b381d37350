"""Rows without a match: near misses as plain Python counts them, within their time."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from support.weaving.smallmodels import Loom, key_field, relationship, weave_into

from snaploom.engine import unmatched
from snaploom.engine.fold import Weave
from snaploom.engine.unmatched import (
    SECONDS_FOR_NEWEST,
    TimeAllowance,
    unmatched_rows,
    unmatched_warnings,
)
from snaploom.models.datarelationship import KeySpellings, NearMiss, UnmatchedRows
from snaploom.models.report import JoinMeasure
from snaploom.types.merge import CANDIDATES, needed_steps, normalized

pytestmark = pytest.mark.spark

SPELLINGS = st.sampled_from(
    [
        "a",
        "A",
        " a",
        "A ",
        "a-",
        "1",
        "01",
        "1.0",
        "1.00 ",
        "e\u0301",
        "\u00e9",
        "\u00c9",
        "b",
        "",
        "x",
    ]
)


def looked_at(
    spark: SparkSession,
    folder: Path,
    left: list[Any],
    right: list[Any],
    kinds: tuple[str, str] = ("string", "string"),
    seconds: float = 300.0,
    **changes: Any,
) -> tuple[Weave, tuple[JoinMeasure, ...], tuple[UnmatchedRows, ...]]:
    sides = {"l": (left, kinds[0]), "r": (right, kinds[1])}
    frames = {
        name: spark.createDataFrame([(one,) for one in keys], f"k {kind}")
        for name, (keys, kind) in sides.items()
    }
    keys = {name: [key_field("k", kind, **changes)] for name, (_, kind) in sides.items()}
    weave = Loom("l", ["r"], [relationship("key", keys)]).weave(frames)
    joins = weave_into(folder, weave, spark).counts.joins
    found = unmatched_rows(
        weave, joins, frozenset(), TimeAllowance(spent=SECONDS_FOR_NEWEST - seconds)
    )
    return weave, joins, found


@pytest.mark.parametrize("few_rows", [0, 100])
@settings(max_examples=5, suppress_health_check=list(HealthCheck), deadline=None)
@given(left=st.lists(st.none() | SPELLINGS, max_size=12), right=st.sets(SPELLINGS, max_size=6))
def test_near_misses_are_those_that_plain_python_counts(
    spark, tmp_path_factory, few_rows, left, right
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unmatched, "FEW_ROWS", few_rows)
        _, _, found = looked_at(
            spark, tmp_path_factory.mktemp("rows"), left or ["q"], sorted(right)
        )
    rows = [text for text in left or ["q"] if text is not None and text not in right]
    assert [one.rows for one in found] == ([len(rows)] if rows else [])
    counted = {}

    def count(steps):
        partners = Counter(normalized(text, steps) for text in right)
        matched = [partners[normalized(text, steps)] for text in rows if normalized(text, steps)]
        if any(matched):
            counted[steps] = (sum(map(bool, matched)), sum(number > 1 for number in matched))
        return sum(map(bool, matched))

    for steps in CANDIDATES:
        count(steps)
    best = max((rows for steps, (rows, _) in counted.items() if len(steps) == 1), default=0)
    expected = {s: c for s, c in counted.items() if len(s) == 1}
    if counted.get(CANDIDATES[-1], (0, 0))[0] > best:
        needed = needed_steps(CANDIDATES[-1], lambda lists: [*map(count, lists)])
        expected[needed] = counted[needed]
    misses = {m.normalize: m for one in found for m in one.near_misses}
    assert {s: (m.rows, m.ambiguous) for s, m in misses.items()} == expected
    for steps, miss in misses.items():
        assert 1 <= len(miss.keys) <= 3
        for pair in miss.keys:
            assert normalized(pair.left, steps) == normalized(pair.right, steps)
            assert pair.left in rows
            assert pair.right in right


def test_one_row_that_matches_does_not_silence_the_others(spark, tmp_path):
    left = ["a", *("b\u00a0" for _ in range(3)), "c", None]
    weave, joins, found = looked_at(spark, tmp_path, left, ["a", "b"])
    (warning,) = unmatched_warnings(weave, joins, found)
    assert warning == (
        "`r`: 4 rows have no match by DataRelationship/key; 3 would match with blanks cut, such as "
        "'b\\xa0' for 'b': normalize: [TRIM] in joinKey[0] of l and r"
    )
    assert found[0].keys == ("b\u00a0", "c")
    assert list(unmatched_warnings(weave, joins, found, frozenset("r"))) == []


def test_keys_that_match_nothing_are_advised_with_figures(spark, tmp_path):
    weave, joins, found = looked_at(
        spark, tmp_path, ["001", "2.0", "2.0"], [1, 2], ("string", "integer")
    )
    (warning,) = unmatched_warnings(weave, joins, found)
    assert "none of 3 rows" in warning
    assert "3 would match as whole numbers" in warning
    assert "normalize: [INTEGER] in joinKey[0] of l and r" in warning


def test_only_steps_that_are_needed_are_proposed(spark, tmp_path):
    left = ["A1 ", "b2 ", "c3"]
    weave, joins, (found,) = looked_at(spark, tmp_path, left, ["a1", "B2", "c3"])
    assert [(miss.normalize, miss.rows) for miss in found.near_misses] == [
        (("TRIM", "UPPER"), 2),
    ]  # fmt: skip
    (warning,) = unmatched_warnings(weave, joins, [found])
    assert "2 would match with blanks cut, in capitals, such as" in warning


def test_a_normalisation_that_would_multiply_rows_has_their_number(spark, tmp_path):
    weave, joins, found = looked_at(spark, tmp_path, ["x", "Ab", "Ab"], ["x", "AB", "ab"])
    assert found[0].near_misses[0].ambiguous == 2
    (warning,) = unmatched_warnings(weave, joins, found)
    assert "2 would match in capitals (2 of them several rows, which is refused)" in warning


def test_numbers_of_one_type_have_no_near_misses(spark: SparkSession, tmp_path: Path) -> None:
    _, _, found = looked_at(spark, tmp_path, [1, 2, 2], [1], ("integer", "integer"))
    assert found == (UnmatchedRows(child="r", rows=2, keys=("2",)),)


def test_keys_that_are_normalised_have_near_misses_of_other_steps(spark, tmp_path):
    left, right = ["a ", "B-"], ["A", "b"]
    _, _, (found,) = looked_at(spark, tmp_path, left, right, normalize=["TRIM", "UPPER"])
    assert [(miss.normalize, miss.rows) for miss in found.near_misses] == [(("REMOVE_DASHES",), 1)]
    assert found.near_misses[0].keys == (KeySpellings(left="B-", right="b"),)


def test_a_query_without_time_is_ended_with_a_reason(spark, tmp_path, monkeypatch):
    weave, joins, _ = looked_at(spark, tmp_path, ["a "], ["a"])
    none_left = TimeAllowance(spent=SECONDS_FOR_NEWEST)
    (found,) = unmatched_rows(weave, joins, frozenset(), none_left)
    assert (found.rows, found.near_misses) == (1, ())
    assert found.not_counted == "too little is left of 5% of the run's time"
    slow = spark.sql(
        "select k, java_method('java.lang.Thread', 'sleep', 60000L) as s from (select 'a' k)"
    )
    monkeypatch.setattr(unmatched, "_query", lambda *_: slow.selectExpr("s"))
    little = TimeAllowance(spent=SECONDS_FOR_NEWEST - 0.5)
    (found,) = unmatched_rows(weave, joins, frozenset(), little)
    assert "they take more than 0.5 s" in found.not_counted
    assert little.too_few["r"] >= 0.5


def test_a_query_that_did_not_end_is_tried_again_with_twice_the_time(spark, tmp_path):
    weave, joins, _ = looked_at(spark, tmp_path, ["a "], ["a"])

    def near_misses(spent: float, *, is_newest: bool = False) -> int:
        allowance = TimeAllowance(spent=-spent - SECONDS_FOR_NEWEST, too_few={"r": 20.0})
        found = unmatched_rows(weave, joins, frozenset(), allowance, is_newest=is_newest)
        return len(found[0].near_misses)

    assert (near_misses(39.0), near_misses(41.0)) == (0, 1)
    assert near_misses(19.0, is_newest=True) == 1


def test_older_snapshots_leave_time_for_the_newest() -> None:
    started = TimeAllowance().started
    assert TimeAllowance(spent=9.0).left(is_newest=True) == SECONDS_FOR_NEWEST - 9.0
    assert TimeAllowance(started=started - 100.0).left(is_newest=False) < 0.0
    long = TimeAllowance(started=started - 1000.0, spent=20.0)
    assert 19.9 < long.left(is_newest=False) < 21.0
    assert 29.9 < long.left(is_newest=True) < 31.0


def test_a_source_that_has_changed_since_is_not_counted(spark, tmp_path):
    weave, joins, _ = looked_at(spark, tmp_path, ["a "], ["a"])
    other = [one.model_copy(update={"in_": 3}) for one in joins]
    (found,) = unmatched_rows(weave, other, frozenset(), TimeAllowance(spent=-60.0))
    assert found.not_counted == "the sources have other rows by now than were woven"
    assert NearMiss not in map(type, found.near_misses)

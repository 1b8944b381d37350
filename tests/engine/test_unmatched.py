"""A join that matched nothing is warned of where both sides have keys, with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.weaving.smallmodels import Loom, key_field, relationship, weave_into

from snaploom.engine import expectations
from snaploom.engine.expectations import unmatched_warnings

pytestmark = pytest.mark.spark


def warnings_of(
    spark: SparkSession,
    folder: Path,
    left: tuple[str, str],
    right: tuple[str, str],
    **changes: Any,
) -> tuple[list[bool], list[str]]:
    """Which rows matched, and the warnings; a side is a list of values of SQL, and its type."""
    frames = {
        name: spark.sql(f"select * from values {values} as t(k)")
        for name, (values, _) in (("l", left), ("r", right))
    }
    keys = [key_field("k", **changes) for _ in range(2)]
    for component, (_, type_) in zip(keys, (left, right), strict=True):
        name, _, digits = type_.partition(" ")
        shape = dict(zip(("precision", "scale"), map(int, digits.split()), strict=False))
        component["fields"][0]["dataType"] = {name: shape}
    loom = Loom("l", ["r"], [relationship("key", {"l": [keys[0]], "r": [keys[1]]})])
    weave = loom.weave(frames)
    woven = weave_into(folder, weave, spark)
    rows = [row.r is not None for row in woven.rows("data.k")]
    assert list(unmatched_warnings(weave, woven.counts.joins, frozenset("r"))) == []
    return rows, list(unmatched_warnings(weave, woven.counts.joins))


@pytest.mark.parametrize(
    ("left", "right", "changes", "texts"),
    [
        (("(1), (2)", "integer"), ("(1.0D)", "double"), {},
         ["'1' and", "has '1.0'", "castDataType: {double: {}}", "none of 2 rows"]),
        (("(1.00BD)", "decimal 3 2"), ("(1.0BD)", "decimal 2 1"), {},
         ["'1.00'", "'1.0'", "{decimal: {precision: 3, scale: 2}}"]),
        (("('a  ')", "string"), ("('a')", "string"), {}, ["'a  '", "trim(...)"]),
        (("('a')", "string"), ("('A')", "string"), {}, ["'a'", "'A'", "in one way"]),
        (("('x1')", "string"), ("(1)", "integer"), {"castDataType": {"integer": {}}},
         ["'x1' (compared as NULL)", "cannot be cast"]),
    ],
)  # fmt: skip
def test_keys_that_never_match_are_a_warning_with_a_fix(
    spark: SparkSession,
    tmp_path: Path,
    left: tuple[str, str],
    right: tuple[str, str],
    changes: dict[str, Any],
    texts: list[str],
) -> None:
    rows, warnings = warnings_of(spark, tmp_path, left, right, **changes)
    assert not any(rows)
    (warning,) = warnings
    for text in (*texts, "DataRelationship/key", "DataSource/l", "warnNoMatch"):
        assert text in warning


def test_no_warning_where_a_side_has_no_keys_or_a_row_matched(
    spark: SparkSession, tmp_path: Path
) -> None:
    sides = [
        ("(cast(null as int))", "(1)"),
        ("(1)", "(cast(null as int))"),
        ("(1), (2)", "(2)"),
    ]
    for number, (left, right) in enumerate(sides):
        folder = tmp_path / str(number)
        _, warnings = warnings_of(spark, folder, (left, "integer"), (right, "integer"))
        assert warnings == []


@pytest.mark.parametrize("kind", ["double", "float"])
def test_floating_point_keys_of_one_type_are_compared_by_value(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    values = f"(cast('-0.0' as {kind})), (cast('NaN' as {kind})), (cast('1.5' as {kind}))"
    other = f"(cast('0.0' as {kind})), (cast('NaN' as {kind})), (cast('1.5' as {kind}))"
    rows, warnings = warnings_of(spark, tmp_path, (values, kind), (other, kind))
    assert rows == [True, True, True]
    assert warnings == []


def test_of_many_joins_without_a_match_the_others_are_named_without_a_look(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "SAMPLED_JOINS", 0)
    _, warnings = warnings_of(spark, tmp_path, ("(1)", "integer"), ("(2)", "integer"))
    assert warnings == ["no row found a match in `r` either; their keys were not looked at"]

"""Shares of rows that must find a match are compared with what was counted."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import output, parsed

from snaploom.engine.expectations import low_match_warnings
from snaploom.errors import CheckFailed
from snaploom.models.report import JoinMeasure


def joined(**expected):
    others = [
        {"dataSource": name, "fieldName": name, "matchedRows": settings}
        for name, settings in expected.items()
    ]
    (declared,) = parsed([output(**{"dataModel.otherDataSources": others})])
    return declared


def measure(name, rows, matched):
    return JoinMeasure(child=name, in_=rows, out=rows, matched=matched, null_keys=0)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100))
def test_a_lower_share_warns_and_an_equal_one_does_not(rows, matched, percent) -> None:
    matched = min(rows, matched)
    declared = joined(a={"atLeast": percent / 100, "mode": "WARN"})
    warnings = low_match_warnings(declared, [measure("a", rows, matched)])
    assert bool(warnings) == (matched < Fraction(percent, 100) * rows)


def test_all_sources_that_fail_are_named_at_once() -> None:
    declared = joined(
        a={"atLeast": 1}, b={"atLeast": 0.5}, c={"atLeast": 0.9}, d={"atLeast": 1, "mode": "WARN"}
    )
    counted = [measure(name, 10, 5) for name in "abcd"]
    with pytest.raises(CheckFailed, match="fewer rows found a match") as caught:
        low_match_warnings(declared, counted)
    found = str(caught.value.found)
    assert ("`a`: 5 of 10 rows" in found, "`b`" in found, "`c`" in found) == (True, False, True)
    assert caught.value.path == "spec.dataModel.otherDataSources[0].matchedRows"


def test_a_source_that_a_snapshot_does_without_is_not_measured() -> None:
    assert low_match_warnings(joined(a={"atLeast": 1}), []) == ()

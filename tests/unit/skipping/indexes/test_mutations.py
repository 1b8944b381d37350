"""The soundness property can fail: one rule of each index is broken, and it finds a lost row."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, settings
from support.skipping.skippingcases import cases, loses_rows

from snaploom.skipping.core import predicates
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.predicates import Not, Operator
from snaploom.skipping.indexes import base, bloomfilter, minmax, valueset
from snaploom.skipping.indexes import columns as distinct
from snaploom.skipping.indexes.columns import compare, holds

SETTINGS = settings(
    max_examples=2000,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_bounds_that_exclude_the_literal_do_not_serve_not_equal(monkeypatch):
    right = minmax._compared

    def wrong(kept, operator, key):
        if operator is not Operator.NE:
            return right(kept, operator, key)
        return compare(kept.low, Operator.GT, key) | compare(kept.high, Operator.LT, key)

    monkeypatch.setattr(minmax, "_compared", wrong)
    assert _finds_a_lost_row("MIN_MAX", ("int",))


@pytest.mark.slow
def test_bounds_without_nan_lose_rows(monkeypatch):
    monkeypatch.setattr("snaploom.skipping.indexes.minmax.np.max", np.fmax.reduce)
    assert _finds_a_lost_row("MIN_MAX", ("double",))


@pytest.mark.slow
def test_partial_sets_lose_rows(monkeypatch):
    monkeypatch.setattr(distinct.DistinctValues, "values", _first_values)
    assert _finds_a_lost_row("VALUE_SET", ("int",), (("limit", "1"),))


@pytest.mark.slow
def test_two_zeros_in_a_set_lose_rows(monkeypatch):
    monkeypatch.setattr("snaploom.skipping.core.valueorder.ordered", np.copy)
    assert _finds_a_lost_row("VALUE_SET", ("double",))


def test_hashes_of_another_type_lose_rows(monkeypatch):
    monkeypatch.setattr(bloomfilter, "xxhash64", lambda values, _: xxhash64(values, "bigint"))
    assert _finds_a_lost_row("BLOOM_FILTER", ("int",))


@pytest.mark.slow
def test_first_of_several_partition_values_loses_rows(monkeypatch):
    monkeypatch.setattr(distinct.DistinctValues, "values", _first_values)
    assert _finds_a_lost_row("PARTITION", ("int",))


@pytest.mark.slow
def test_cut_prefixes_that_are_taken_for_whole_texts_lose_rows(monkeypatch):
    monkeypatch.setattr(valueset, "_open_ended", lambda keys, _, leaf: holds(leaf, keys, "string"))
    assert _finds_a_lost_row("PREFIX", ("string",), (("length", "2"),))


def test_box_with_its_sides_swapped_loses_rows(monkeypatch):
    right = minmax.GeoBox.may_match
    swapped = (("west", "east"), ("south", "north"))

    def wrong(self, definition, files, leaf):
        return right(replace(self, sides=swapped), definition, files, leaf)

    monkeypatch.setattr(minmax.GeoBox, "may_match", wrong)
    assert _finds_a_lost_row("GEO_BOX", ("int",))


@pytest.mark.slow
def test_n_grams_that_are_forgotten_lose_rows(monkeypatch):
    monkeypatch.setattr(bloomfilter.TokensBuilder, "add", lambda self, columns: None)
    assert _finds_a_lost_row("TOKENS", ("string",), (("n", "2"),))


def test_wrong_opposites_lose_rows(monkeypatch):
    monkeypatch.setattr(predicates, "_OPPOSITES", {each: each for each in Operator})
    negated = cases("MIN_MAX", ("boolean",)).map(
        lambda case: replace(case, predicate=Not(case.predicate))
    )
    assert _finds(negated)


def test_uncovered_side_of_or_that_is_not_true_loses_rows(monkeypatch):
    right = base._Evaluator._leaf

    def wrong(self, leaf):
        keep, report = right(self, leaf)
        return (keep if report.served_by else ~keep), report

    monkeypatch.setattr(base._Evaluator, "_leaf", wrong)
    assert _finds_a_lost_row("MIN_MAX", ("int",))


def test_counts_that_forget_nulls_lose_rows(monkeypatch):
    monkeypatch.setattr(base, "nulls_column", base.values_column)
    assert _finds_a_lost_row("MIN_MAX", ("int",))


def _first_values(self):
    self._settle()
    return self._found[: self._limit]


def _finds_a_lost_row(type_name, data_types, parameters=()):
    return _finds(cases(type_name, data_types, parameters))


def _finds(drawn):
    return find(drawn, loses_rows, settings=SETTINGS, random=random.Random(0)) is not None

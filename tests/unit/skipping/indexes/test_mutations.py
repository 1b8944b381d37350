"""The soundness property can fail: one rule of each index is broken, and it finds a lost row."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.skippingcases import (
    NUMBERS,
    TEXTS,
    TYPES,
    built,
    cases,
    fed,
    loses_rows,
    values,
)

from snaploom.skipping import evaluation
from snaploom.skipping.core import predicates
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.predicates import Not, Operator
from snaploom.skipping.core.terms import column_term
from snaploom.skipping.indexes import bloomfilter, geobox, minmax, prefix, tokens
from snaploom.skipping.indexes import columns as distinct
from snaploom.skipping.indexes.base import index_type
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
    monkeypatch.setattr(distinct, "ordered", np.copy)
    assert _finds_a_lost_row("VALUE_SET", ("double",))


def test_hashes_of_another_type_lose_rows(monkeypatch):
    monkeypatch.setattr(bloomfilter, "xxhash64", lambda value, _: xxhash64(value, "bigint"))
    assert _finds_a_lost_row("BLOOM_FILTER", ("int",))


@pytest.mark.slow
def test_first_of_several_partition_values_loses_rows(monkeypatch):
    monkeypatch.setattr(distinct.DistinctValues, "values", _first_values)
    assert _finds_a_lost_row("PARTITION", ("int",))


@pytest.mark.slow
def test_cut_prefixes_that_are_taken_for_whole_texts_lose_rows(monkeypatch):
    monkeypatch.setattr(prefix, "_open_ended", lambda keys, _, leaf: holds(leaf, keys, "string"))
    assert _finds_a_lost_row("PREFIX", ("string",), (("length", "2"),))


def test_box_with_its_sides_swapped_loses_rows(monkeypatch):
    index_type = geobox.GeoBox.may_match
    swapped = (("west", "east"), ("south", "north"))

    def wrong(self, definition, files, leaf):
        with monkeypatch.context() as patch:
            patch.setattr(geobox, "SIDES", swapped)
            return index_type(self, definition, files, leaf)

    monkeypatch.setattr(geobox.GeoBox, "may_match", wrong)
    assert _finds_a_lost_row("GEO_BOX", ("int",))


@pytest.mark.slow
def test_n_grams_that_are_forgotten_lose_rows(monkeypatch):
    monkeypatch.setattr(tokens.TokensBuilder, "add", lambda self, columns: None)
    assert _finds_a_lost_row("TOKENS", ("string",), (("n", "2"),))


def test_wrong_opposites_lose_rows(monkeypatch):
    monkeypatch.setattr(predicates, "_OPPOSITES", {each: each for each in Operator})
    negated = cases("MIN_MAX", ("boolean",)).map(
        lambda case: replace(case, predicate=Not(case.predicate))
    )
    assert _finds(negated)


def test_uncovered_side_of_or_that_is_not_true_loses_rows(monkeypatch):
    right = evaluation._Evaluator._leaf

    def wrong(self, leaf):
        keep, report = right(self, leaf)
        return (keep if report.served_by else ~keep), report

    monkeypatch.setattr(evaluation._Evaluator, "_leaf", wrong)
    assert _finds_a_lost_row("MIN_MAX", ("int",))


def test_counts_that_forget_nulls_lose_rows(monkeypatch):
    monkeypatch.setattr(evaluation, "nulls_column", evaluation.values_column)
    assert _finds_a_lost_row("MIN_MAX", ("int",))


def _first_values(self):
    self._settle()
    return self._found[: self._limit]


def _finds_a_lost_row(type_name, data_types, parameters=()):
    return _finds(cases(type_name, data_types, parameters))


def _finds(drawn):
    return find(drawn, loses_rows, settings=SETTINGS, random=random.Random(0)) is not None


# Builders that saw parts of a file, merged, know what one builder of the whole file knows.


INDEXES = [
    ("MIN_MAX", TYPES, ()),
    ("VALUE_SET", TYPES, (("limit", "2"),)),
    ("BLOOM_FILTER", TYPES, (("ndv", "3"),)),
    ("PARTITION", TYPES, ()),
    ("PREFIX", TEXTS, (("length", "2"), ("limit", "2"))),
    ("GEO_BOX", NUMBERS, ()),
    ("TOKENS", TEXTS, ()),
]


@pytest.mark.parametrize(("type_name", "data_types", "parameters"), INDEXES)
def test_merged_partials_are_the_single_pass(type_name, data_types, parameters):
    @settings(max_examples=examples(60), deadline=None, database=None)
    @given(st.data())
    def holds(data):
        data_type = data.draw(st.sampled_from(data_types))
        index = _index(type_name, data_type, parameters)
        cell = st.none() | values(data_type)
        rows = data.draw(st.lists(st.tuples(cell, cell), max_size=8))
        cut = data.draw(st.integers(0, len(rows)))
        merged = index_type(type_name).builder(index)
        for part in (rows[:cut], rows[cut:], []):
            builder = index_type(type_name).builder(index)
            builder.add(fed(index, _columns(index, part)))
            merged.merge(builder.partial())
        expected = built(index, _columns(index, rows))
        assert _comparable(merged.finish()) == _comparable(expected)

    holds()


def _index(type_name, data_type, parameters):
    terms = (column_term(("a",), data_type), column_term(("b",), data_type))
    return IndexDefinition("i1", type_name, terms[: 1 + (type_name == "GEO_BOX")], parameters)


def _columns(index, rows):
    return [[row[at] for row in rows] for at in range(len(index.terms))]


def _comparable(row):
    """A row in which order of members does not count, and NaN is NaN."""
    return {
        name: sorted(map(repr, value)) if isinstance(value, list) else repr(value)
        for name, value in row.items()
    }

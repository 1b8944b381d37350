"""Ranks against Python's own order of values."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from snaploom.skipping.core.definition import arrow_type
from snaploom.skipping.core.valueorder import boundaries_of

BITS = 6

CASES = [
    ("bigint", some.integers(-(2**63), 2**63 - 1)),
    ("boolean", some.booleans()),
    ("double", some.floats(allow_nan=False)),
    ("string", some.text(max_size=12).map(str.encode)),
    ("decimal(25,2)", some.integers(-(10**20), 10**20).map(lambda n: Decimal(n) / 100)),
]


@pytest.mark.parametrize(("data_type", "values"), CASES, ids=[case[0] for case in CASES])
@settings(deadline=None)
@given(data=some.data())
def test_ranks_keep_the_order_of_values(data_type: str, values: some.SearchStrategy, data):
    sample = data.draw(some.lists(values, min_size=1, max_size=200))
    rows = data.draw(some.lists(values, min_size=2, max_size=20))
    kept_as = arrow_type(data_type)
    boundaries = boundaries_of(pa.array(sample, kept_as), data_type, BITS)
    found = boundaries.ranks(pa.array(sorted(rows), kept_as))
    assert found.tolist() == sorted(found.tolist())
    assert 1 <= found.min() <= found.max() < 2**BITS


def test_nulls_come_before_all_values():
    boundaries = boundaries_of(pa.array([1, 2, 3, None]), "bigint", BITS)
    assert boundaries.ranks(pa.array([None, -5, 2])).tolist()[0] == 0
    assert (boundaries.ranks(pa.array([-5, 2])) > 0).all()


def test_a_column_without_values_has_one_rank_for_all():
    boundaries = boundaries_of(pa.array([None], pa.int64()), "bigint", BITS)
    assert boundaries.ranks(pa.array([7, 8])).tolist() == [1, 1]


def test_few_distinct_values_are_spread_over_all_ranks():
    sample = pa.array([b"a"] * 50 + [b"b"] * 50 + [b"c"] * 50, pa.large_binary())
    found = boundaries_of(sample, "string", BITS).ranks(pa.array([b"a", b"b", b"c"], sample.type))
    assert np.diff(found).min() >= 2**BITS // 4

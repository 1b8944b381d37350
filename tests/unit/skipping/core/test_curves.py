"""Ranks of values, and curves that make one number of several."""

from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from snaploom.skipping.core.definition import arrow_type
from snaploom.skipping.core.valueorder import Curve, boundaries_of, hilbert, position, z_order

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


def cells(dimensions: int, bits: int) -> np.ndarray:
    return np.array(list(product(range(2**bits), repeat=dimensions)), dtype=np.int64)


@pytest.mark.parametrize("curve", list(Curve))
@pytest.mark.parametrize(("dimensions", "bits"), [(1, 6), (2, 1), (2, 5), (3, 3), (4, 2)])
def test_every_cell_has_a_position_of_its_own(curve: Curve, dimensions: int, bits: int):
    found = position(curve, list(cells(dimensions, bits).T), bits)
    assert sorted(found.tolist()) == list(range(2 ** (dimensions * bits)))


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 4), (2, 6), (3, 1), (3, 4), (4, 3)])
def test_neighbours_on_the_hilbert_curve_are_neighbouring_cells(dimensions: int, bits: int):
    grid = cells(dimensions, bits)
    walk = grid[np.argsort(hilbert(list(grid.T), bits))]
    assert np.abs(np.diff(walk, axis=0)).sum(axis=1).tolist() == [1] * (len(grid) - 1)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_hilbert_fills_a_quarter_before_it_leaves_it(dimensions: int):
    grid = cells(dimensions, 3)
    halves = (grid >> 2)[np.argsort(hilbert(list(grid.T), 3))]
    changes = (np.diff(halves, axis=0) != 0).any(axis=1).sum()
    assert changes == 2**dimensions - 1


@settings(deadline=None)
@given(some.lists(some.integers(0, 2**10 - 1), min_size=1, max_size=6))
def test_z_order_interleaves_bits(ranks: list[int]):
    texts = [f"{rank:010b}" for rank in ranks]
    expected = int("".join("".join(column) for column in zip(*texts, strict=True)), 2)
    (found,) = z_order([np.array([rank]) for rank in ranks], 10)
    assert found == expected


def test_more_bits_than_an_integer_has_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        position(Curve.ZORDER, [np.zeros(1, dtype=np.int64)] * 7, 10)

"""Curves against what defines them: bijections, and for Hilbert's no jumps."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from snaploom.skipping.core.valueorder import Curve, hilbert, position, z_order


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

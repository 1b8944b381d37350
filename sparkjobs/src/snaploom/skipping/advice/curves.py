"""Space-filling curves: one number for several ranks, so that near numbers mean near ranks.

Rows sorted by such a number lie in files that are narrow in every column at once, where an
ordinary sort is narrow in its first column only. The Hilbert curve never jumps (neighbouring
numbers are neighbouring cells); the Z-order curve does, and is cheaper to compute.

The Hilbert curve is found by the method of J. Skilling, "Programming the Hilbert curve" (2004):
undo the rotations of each level from the coarsest bit down, then decode Gray's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from snaploom.skipping.core.valueorder import Int64s

MOST_BITS = 63
"""Bits of a position on a curve: it is a positive 64-bit integer."""


class Curve(StrEnum):
    """Order of rows by several columns."""

    LINEAR = "LINEAR"
    """By the first column, then by the second, as ORDER BY does."""
    ZORDER = "ZORDER"
    """Along the Z-order (Morton) curve."""
    HILBERT = "HILBERT"
    """Along the Hilbert curve."""


def position(curve: Curve, ranks: Sequence[Int64s], bits: int) -> Int64s:
    """Position of each row on a curve, from ranks of a number of bits, one array per column.

    Raises:
        ValueError: there are too many columns for so many bits, or none.
    """
    if not ranks or bits * len(ranks) > MOST_BITS:
        raise ValueError(f"{len(ranks)} columns of {bits} bits do not fit {MOST_BITS} bits")
    if curve is Curve.LINEAR:
        found = np.zeros_like(ranks[0])
        for each in ranks:
            found = (found << bits) | each
        return found
    return z_order(ranks, bits) if curve is Curve.ZORDER else hilbert(ranks, bits)


def z_order(ranks: Sequence[Int64s], bits: int) -> Int64s:
    """Position on the Z-order curve: interleaved bits of all ranks, the first column's first."""
    found = np.zeros_like(ranks[0])
    for bit in range(bits):
        for column, each in enumerate(ranks):
            place = bit * len(ranks) + len(ranks) - 1 - column
            found |= ((each >> bit) & 1) << place
    return found


def hilbert(ranks: Sequence[Int64s], bits: int) -> Int64s:
    """Position on the Hilbert curve; arguments as for `position`."""
    axes = [each.copy() for each in ranks]
    for level in range(bits - 1, 0, -1):
        _undo_rotation(axes, level)
    for column in range(1, len(axes)):
        axes[column] ^= axes[column - 1]
    flips = np.zeros_like(axes[0])
    for level in range(bits - 1, 0, -1):
        flips ^= np.where(axes[-1] & (1 << level), (1 << level) - 1, 0)
    return z_order([each ^ flips for each in axes], bits)


def _undo_rotation(axes: list[Int64s], level: int) -> None:
    finer = (1 << level) - 1
    for column, each in enumerate(axes):
        is_upper = (each & (1 << level)) != 0
        exchanged = np.where(is_upper, 0, (axes[0] ^ each) & finer)
        axes[0] ^= np.where(is_upper, finer, exchanged)
        axes[column] ^= exchanged

"""Proofs by bounds: all values of a file lie between a least and a greatest one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Comparison, In, Leaf, Operator, Residue, StartsWith
from snaploom.skipping.core.terms import Value
from snaploom.skipping.core.valueorder import Keys, is_text, key_of, ranks, sorted_keys
from snaploom.skipping.indexes.columns import (
    as_mask,
    compare,
    kept_keys,
    kept_known,
    past,
    successor,
)

_UPWARD = {Operator.EQ: Operator.LE, Operator.LE: Operator.LE, Operator.LT: Operator.LT}
"""Condition on the least value for some value to satisfy an operator."""
_DOWNWARD = {Operator.EQ: Operator.GE, Operator.GE: Operator.GE, Operator.GT: Operator.GT}
"""Condition on the greatest value."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of all files; either may be unknown for a file."""

    low: Keys
    """Keys of the least values."""
    high: Keys
    """Keys of the greatest values."""
    low_unknown: Mask
    high_unknown: Mask
    data_type: str
    """Spark's type of the values."""


def kept_bounds(
    files: FileTable, index_id: str, low_field: str, high_field: str, data_type: str
) -> Bounds:
    """The bounds that an index keeps in two fields."""
    return files.derived(
        f"{index_id} bounds {low_field} {high_field}",
        lambda: Bounds(
            kept_keys(files, index_id, low_field, data_type),
            kept_keys(files, index_id, high_field, data_type),
            ~kept_known(files, index_id, low_field),
            ~kept_known(files, index_id, high_field),
            data_type,
        ),
    )


def may_hold_between(bounds: Bounds, leaf: Leaf) -> Mask | None:
    """For each file, whether its bounds may make a leaf TRUE; None if they prove nothing.

    Raises:
        ValueError: a literal is none of the bounds' type.
    """
    match leaf:
        case Comparison(_, operator, value):
            return _compared(bounds, operator, key_of(value, bounds.data_type))
        case In(_, values, False):
            return _some_within(bounds, values)
        case In(_, values, True):
            return ~_all_among(bounds, values)
        case Residue() if isinstance(bounds.low, np.ndarray):
            return _some_residue(bounds, leaf)
        case StartsWith(_, prefix, False) if is_text(bounds.data_type):
            return _some_prefixed(bounds, prefix)
        case StartsWith(_, prefix, True) if is_text(bounds.data_type):
            # What lies between two texts with the prefix has it too.
            return ~(
                _known(bounds) & _prefixed(bounds.low, prefix) & _prefixed(bounds.high, prefix)
            )
        case _:
            return None


def _compared(bounds: Bounds, operator: Operator, key: int | bytes) -> Mask:
    if operator is Operator.NE:
        # Only a file whose every value is the literal has none that differs (rule S1).
        is_single = compare(bounds.low, Operator.EQ, key) & compare(bounds.high, Operator.EQ, key)
        return ~(is_single & _known(bounds))
    enough = np.ones(len(bounds.low), dtype=np.bool_)
    if operator in _UPWARD:
        enough &= compare(bounds.low, _UPWARD[operator], key) | bounds.low_unknown
    if operator in _DOWNWARD:
        enough &= compare(bounds.high, _DOWNWARD[operator], key) | bounds.high_unknown
    return enough


def _some_residue(bounds: Bounds, leaf: Residue) -> Mask:
    low, high = np.asarray(bounds.low), np.asarray(bounds.high)
    low = low if leaf.low is None else np.maximum(low, np.int64(leaf.low))
    high = high if leaf.high is None else np.minimum(high, np.int64(leaf.high))
    behind = past(low, leaf)
    ahead = np.where(behind < leaf.count, 0, leaf.modulus - behind).astype(np.uint64)
    # Two keys may be further apart than 63 bits hold; 64 without a sign are enough.
    room = high.view(np.uint64) - low.view(np.uint64)
    return np.asarray(((low <= high) & (ahead <= room)) | ~_known(bounds), dtype=np.bool_)


def _known(bounds: Bounds) -> Mask:
    return ~(bounds.low_unknown | bounds.high_unknown)


def _some_within(bounds: Bounds, values: Sequence[Value]) -> Mask:
    # The gap test: some literal lies between the bounds, not only the literals' envelope (rule S9).
    literals = sorted_keys(values, bounds.data_type)
    below = ranks(literals, bounds.low, "left")
    upto = ranks(literals, bounds.high, "right")
    below[bounds.low_unknown] = 0
    upto[bounds.high_unknown] = len(literals)
    return np.asarray(below < upto, dtype=np.bool_)


def _all_among(bounds: Bounds, values: Sequence[Value]) -> Mask:
    # Proved where the literals between the bounds are all the keys that there are between them.
    literals = sorted_keys(values, bounds.data_type)
    if isinstance(bounds.low, np.ndarray) and isinstance(bounds.high, np.ndarray):
        count = ranks(literals, bounds.high, "right") - ranks(literals, bounds.low, "left")
        # The difference may wrap around; the count is small, so equality is exact all the same.
        return np.asarray((count >= 1) & (bounds.high - bounds.low == count - 1) & _known(bounds))
    single = as_mask(pc.equal(bounds.low, bounds.high))
    among = ranks(literals, bounds.high, "right") > ranks(literals, bounds.low, "left")
    return single & among & _known(bounds)


def _some_prefixed(bounds: Bounds, prefix: bytes) -> Mask:
    high_enough = compare(bounds.high, Operator.GE, prefix) | bounds.high_unknown
    beyond = successor(prefix)
    if beyond is None:
        return high_enough
    return high_enough & (compare(bounds.low, Operator.LT, beyond) | bounds.low_unknown)


def _prefixed(keys: Keys, prefix: bytes) -> Mask:
    return as_mask(pc.starts_with(keys, pattern=prefix))

"""Common parts of index types: kept columns as keys, and leaves decided on them.

Everything here is exact for the values that it is given; what a type concludes for a file is the
type's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.filetable import FileTable, Mask, field_column
from snaploom.skipping.core.predicates import (
    Comparison,
    Contains,
    EndsWith,
    In,
    Leaf,
    Operator,
    Residue,
    StartsWith,
)
from snaploom.skipping.core.terms import Value
from snaploom.skipping.core.valueorder import Int64s, Keys, is_text, key_of, keys_of, sorted_keys

_NUMPY: dict[Operator, Callable[[Int64s, np.int64], Mask]] = {
    Operator.EQ: np.equal,
    Operator.NE: np.not_equal,
    Operator.LT: np.less,
    Operator.LE: np.less_equal,
    Operator.GT: np.greater,
    Operator.GE: np.greater_equal,
}

_ARROW: dict[Operator, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}


def kept_keys(files: FileTable, index_id: str, field: str, data_type: str) -> Keys:
    """Keys of a kept field of all files."""
    column = field_column(index_id, field)
    return files.derived(f"{column} keys", lambda: keys_of(files.column(column), data_type))


def kept_known(files: FileTable, index_id: str, field: str) -> Mask:
    """For each file, whether a field is known."""
    column = field_column(index_id, field)
    return files.derived(f"{column} known", lambda: as_mask(files.column(column).is_valid()))


def as_mask(values: pa.Array) -> Mask:
    """Arrow's truth values as numpy's; NULL is False."""
    if values.null_count:
        values = pc.fill_null(values, False)
    mask: Mask = values.to_numpy(zero_copy_only=False)
    return mask


def compare(keys: Keys, operator: Operator, key: int | bytes) -> Mask:
    """For each key, whether `key op literal` holds."""
    if isinstance(keys, np.ndarray):
        return _NUMPY[operator](keys, np.int64(cast(int, key)))
    return as_mask(_ARROW[operator](keys, pa.scalar(key, pa.large_binary())))


def holds(leaf: Leaf, keys: Keys, data_type: str) -> Mask | None:
    """For each value (its key), whether a leaf is TRUE; None for a leaf that concerns no values.

    Raises:
        ValueError: a literal is none of that type.
    """
    match leaf:
        case Comparison(_, operator, value):
            return compare(keys, operator, key_of(value, data_type))
        case In(_, values, is_negated):
            found = _is_in(keys, values, data_type)
            return ~found if is_negated else found
        case Residue() if isinstance(keys, np.ndarray):
            return _is_residue(keys, leaf)
        case StartsWith(_, prefix, is_negated) if is_text(data_type):
            found = as_mask(pc.starts_with(keys, pattern=prefix))
            return ~found if is_negated else found
        case EndsWith(_, suffix) if is_text(data_type):
            return as_mask(pc.ends_with(keys, pattern=suffix))
        case Contains(_, piece) if is_text(data_type):
            return as_mask(pc.match_substring(keys, pattern=piece))
        case _:
            return None


def successor(prefix: bytes) -> bytes | None:
    """The least text greater than every text with a prefix; None if none exists."""
    shortened = prefix.rstrip(b"\xff")
    return shortened[:-1] + bytes([shortened[-1] + 1]) if shortened else None


def past(keys: Int64s, leaf: Residue) -> Int64s:
    """Distance of each key from the last start of the leaf's residues."""
    distance: Int64s = np.mod(np.mod(keys, leaf.modulus) - leaf.first, leaf.modulus)
    return distance


def _is_residue(keys: Int64s, leaf: Residue) -> Mask:
    found = past(keys, leaf) < leaf.count
    if leaf.low is not None:
        found &= keys >= leaf.low
    if leaf.high is not None:
        found &= keys <= leaf.high
    return found


def _is_in(keys: Keys, values: Sequence[Value], data_type: str) -> Mask:
    literals = sorted_keys(values, data_type)
    if isinstance(keys, np.ndarray):
        return np.isin(keys, literals)
    return as_mask(pc.is_in(keys, value_set=pa.array(literals, pa.large_binary())))

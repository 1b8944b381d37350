"""MIN_MAX, the least and the greatest value of each file, and GEO_BOX, the box of its points.

Every proof uses only that all values lie between the bounds, so bounds may be wider than the
values: that is how long texts are kept. Either bound may be absent: nothing is known on that side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.definition import IndexDefinition, Value, arrow_type
from snaploom.skipping.core.filetable import FileTable, Mask
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
from snaploom.skipping.core.valueorder import Keys, is_text, key_of, ordered, ranks, sorted_keys
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields, pack, unpack
from snaploom.skipping.indexes.columns import (
    as_mask,
    check_parameters,
    check_terms,
    compare,
    kept_keys,
    kept_known,
    only_where,
    past,
    successor,
    without_values,
)

LONGEST_BOUND = 1024
"""Bytes of the longest text or binary that is kept whole as a bound."""


Sides = tuple[tuple[str, str], ...]
"""For each term, the fields of its least and of its greatest value."""


class BoundsBuilder:
    """The least and the greatest value of each term in one file, in Spark's order."""

    def __init__(self, definition: IndexDefinition, sides: Sides) -> None:
        self._sides = sides
        self._types = [term.data_type for term in definition.terms]
        self._bounds = [pa.array([], arrow_type(data_type)) for data_type in self._types]

    def add(self, columns: Sequence[pa.Array]) -> None:
        self._bounds = [
            bounds_of(pa.concat_arrays([before, bounds_of(values)]))
            for before, values in zip(self._bounds, columns, strict=True)
        ]

    def merge(self, other: bytes) -> None:
        self.add(unpack(other))

    def partial(self) -> bytes:
        return pack(self._bounds)

    def finish(self) -> Mapping[str, object]:
        row: dict[str, object] = {}
        for sides, bounds, data_type in zip(self._sides, self._bounds, self._types, strict=True):
            kept = kept_bound_values(bounds.to_pylist(), data_type) if len(bounds) else (None, None)
            row.update(zip(sides, kept, strict=True))
        return row


@dataclass(frozen=True)
class Bounded:
    """Common part of index types that keep bounds."""

    name: str
    sides: Sides

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        terms = zip(self.sides, definition.terms, strict=True)
        return {side: arrow_type(term.data_type) for sides, term in terms for side in sides}

    def feed(self, definition: IndexDefinition) -> Feed:
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> BoundsBuilder:
        return BoundsBuilder(definition, self.sides)

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """The footer's bounds, where it proves those of all terms, or that there is no value."""
        terms = zip(columns, definition.terms, strict=True)
        found = [footer_bounds(column, term.data_type) for column, term in terms]
        proved: Mask = np.logical_and.reduce([each.files for each in found])
        fields: dict[str, pa.Array] = {}
        for (low, high), each in zip(self.sides, found, strict=True):
            fields |= {low: only_where(proved, each.low), high: only_where(proved, each.high)}
        return ProvedFields(proved, fields)

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether some value between the bounds of its term makes the leaf TRUE."""
        low, high = self.sides[definition.terms.index(leaf.term)]
        bounds = kept_bounds(files, definition.index_id, low, high, leaf.term.data_type)
        return may_hold_between(bounds, leaf)


class MinMax(Bounded):
    """The least and the greatest value of each file."""

    def check(self, definition: IndexDefinition) -> None:
        check_terms(definition)
        check_parameters(definition, ())

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        if isinstance(leaf, Contains | EndsWith):
            return "bounds prove nothing about the middle or the end of a text: TOKENS does"
        return "bounds prove nothing about this condition"


class GeoBox(Bounded):
    """The box of latitudes and longitudes in which each file's points lie."""

    def check(self, definition: IndexDefinition) -> None:
        check_terms(definition, count=2, types=("float", "double", "decimal", "int", "bigint"))
        check_parameters(definition, ())

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        return "a box proves nothing about this condition"


MIN_MAX = MinMax("MIN_MAX", (("min", "max"),))
GEO_BOX = GeoBox("GEO_BOX", (("south", "north"), ("west", "east")))


def bounds_of(values: pa.Array) -> pa.Array:
    """The least and the greatest of values in Spark's order; empty where all are NULL."""
    values = values.drop_null()
    if not len(values):
        return values
    if not pa.types.is_floating(values.type):
        extremes = pc.min_max(values)
        return pa.array([extremes["min"], extremes["max"]], values.type)
    # NaN is the greatest value, so it is the least one only where there is no other.
    numbers = ordered(values.to_numpy(zero_copy_only=False))
    return pa.array(np.array([np.fmin.reduce(numbers), np.max(numbers)]), values.type)


def kept_bound_values(bounds: Sequence[Value], data_type: str) -> tuple[Value | None, Value | None]:
    """Bounds as they are kept: a long least value is cut, a long greatest one left out."""
    minimum, maximum = bounds
    if isinstance(minimum, bytes) and len(minimum) > LONGEST_BOUND:
        minimum = minimum[: _cut(minimum, data_type)]
    if isinstance(maximum, bytes) and len(maximum) > LONGEST_BOUND:
        return minimum, None
    return minimum, maximum


@dataclass(frozen=True)
class FooterBounds:
    """Bounds of many files as they are kept, from footers."""

    files: Mask
    """For each file, whether the footer proves them, or that there is no value."""
    low: pa.Array
    """One entry a file, null where no bound is kept."""
    high: pa.Array


def footer_bounds(column: FooterColumn, data_type: str) -> FooterBounds:
    """Bounds of a term as footers prove them: both of a file, or none."""
    is_empty = without_values(column)
    both = ~is_empty & as_mask(pc.and_(column.minimum.is_valid(), column.maximum.is_valid()))
    both &= as_mask(column.values.is_valid())
    low, high = only_where(both, column.minimum), only_where(both, column.maximum)
    if is_text(data_type):
        low, high = _short_bounds(low, high, data_type)
    elif pa.types.is_floating(low.type):
        low, high = _ordered_bounds(low, high, both)
    return FooterBounds(is_empty | both, low, high)


def _short_bounds(low: pa.Array, high: pa.Array, data_type: str) -> tuple[pa.Array, pa.Array]:
    sizes = pc.max_element_wise(pc.binary_length(low), pc.binary_length(high))
    is_long = pc.fill_null(pc.greater(sizes, LONGEST_BOUND), False)
    if not as_mask(is_long).any():
        return low, high
    pairs = zip(low.filter(is_long).to_pylist(), high.filter(is_long).to_pylist(), strict=True)
    kept = [kept_bound_values(pair, data_type) for pair in pairs]
    lows, highs = (pa.array(values, low.type) for values in zip(*kept, strict=True))
    return pc.replace_with_mask(low, is_long, lows), pc.replace_with_mask(high, is_long, highs)


def _ordered_bounds(low: pa.Array, high: pa.Array, both: Mask) -> tuple[pa.Array, pa.Array]:
    """Numbers in Spark's order, in which NaN is the greatest: it is least only where both are."""
    lows, highs = (ordered(each.to_numpy(zero_copy_only=False)) for each in (low, high))
    least, greatest = np.fmin(lows, highs), np.maximum(lows, highs)
    return pa.array(least, low.type, mask=~both), pa.array(greatest, low.type, mask=~both)


def _cut(value: bytes, data_type: str) -> int:
    # Texts are cut before a whole character, so that stores may keep the bound as text.
    end = LONGEST_BOUND
    while data_type == "string" and end and value[end] & 0xC0 == 0x80:
        end -= 1
    return end


# Proofs by bounds: all values of a file lie between a least and a greatest one.

_UPWARD = {Operator.EQ: Operator.LE, Operator.LE: Operator.LE, Operator.LT: Operator.LT}
"""Condition on the least value for some value to satisfy an operator."""
_DOWNWARD = {Operator.EQ: Operator.GE, Operator.GE: Operator.GE, Operator.GT: Operator.GT}
"""Condition on the greatest value."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of all files; either may be unknown for a file."""

    low: Keys
    high: Keys
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
    """For each file, whether its bounds may make a leaf TRUE; None if they prove nothing."""
    match leaf:
        case Comparison(_, operator, value):
            return _compared(bounds, operator, key_of(value, bounds.data_type))
        case In(_, values, False):
            literals = sorted_keys(values, bounds.data_type)
            below = ranks(literals, bounds.low, "left")
            upto = ranks(literals, bounds.high, "right")
            below[bounds.low_unknown] = 0
            upto[bounds.high_unknown] = len(literals)
            return np.asarray(below < upto, dtype=np.bool_)
        case In(_, values, True):
            return ~_all_among(bounds, values)
        case Residue() if isinstance(bounds.low, np.ndarray):
            return _some_residue(bounds, leaf)
        case StartsWith(_, prefix, False) if is_text(bounds.data_type):
            high_enough = compare(bounds.high, Operator.GE, prefix) | bounds.high_unknown
            beyond = successor(prefix)
            if beyond is None:
                return high_enough
            return high_enough & (compare(bounds.low, Operator.LT, beyond) | bounds.low_unknown)
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


def _prefixed(keys: Keys, prefix: bytes) -> Mask:
    return as_mask(pc.starts_with(keys, pattern=prefix))

"""MIN_MAX: the least and the greatest value of each file.

Every proof uses only that all values lie between the bounds, so bounds may be wider than the
values: that is how long texts are kept. Either bound may be absent: nothing is known on that side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Contains, EndsWith, Leaf
from snaploom.skipping.core.terms import Value, arrow_type
from snaploom.skipping.core.valueorder import is_text, ordered
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields
from snaploom.skipping.indexes.bounds import kept_bounds, may_hold_between
from snaploom.skipping.indexes.checks import check_parameters, check_terms
from snaploom.skipping.indexes.columns import as_mask
from snaploom.skipping.indexes.footerproofs import only_where, without_values
from snaploom.skipping.indexes.partialstates import pack, unpack

LONGEST_BOUND = 1024
"""Bytes of the longest text or binary that is kept whole as a bound."""


class BoundsBuilder:
    """The least and the greatest value of one file, in Spark's order."""

    def __init__(self, data_type: str) -> None:
        self._data_type = data_type
        self._bounds = pa.array([], arrow_type(data_type))

    def add_values(self, values: pa.Array) -> None:
        """Add values, NULLs included."""
        self._bounds = bounds_of(pa.concat_arrays([self._bounds, bounds_of(values)]))

    @property
    def bounds(self) -> pa.Array:
        """No value, or two: the least and the greatest."""
        return self._bounds

    def row(self) -> tuple[Value | None, Value | None]:
        """The bounds as they are kept."""
        if not len(self._bounds):
            return None, None
        return kept_bound_values(self._bounds.to_pylist(), self._data_type)


class MinMaxBuilder:
    """Collects the bounds of one file."""

    def __init__(self, data_type: str) -> None:
        self._builder = BoundsBuilder(data_type)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch."""
        self._builder.add_values(columns[0])

    def merge(self, other: bytes) -> None:
        """Add another builder's state."""
        self._builder.add_values(unpack(other)[0])

    def partial(self) -> bytes:
        """Collected state."""
        return pack([self._builder.bounds])

    def finish(self) -> Mapping[str, object]:
        """Return the row."""
        minimum, maximum = self._builder.row()
        return {"min": minimum, "max": maximum}


@dataclass(frozen=True)
class MinMax:
    """The index type."""

    name: str = "MIN_MAX"

    def check(self, definition: IndexDefinition) -> None:
        """Any one term of a type that has an order."""
        check_terms(definition)
        check_parameters(definition, ())

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """Both bounds, in the term's type."""
        kept_as = arrow_type(definition.term.data_type)
        return {"min": kept_as, "max": kept_as}

    def feed(self, definition: IndexDefinition) -> Feed:
        """Values as they are."""
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> MinMaxBuilder:
        """A collector for one file."""
        return MinMaxBuilder(definition.term.data_type)

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """The footer's bounds, where it proves both or there is no value."""
        bounds = footer_bounds(columns[0], definition.term.data_type)
        return ProvedFields(bounds.files, {"min": bounds.low, "max": bounds.high})

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether some value between the bounds makes the leaf TRUE."""
        bounds = kept_bounds(files, definition.index_id, "min", "max", definition.term.data_type)
        return may_hold_between(bounds, leaf)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Index that would serve the leaf instead."""
        if isinstance(leaf, Contains | EndsWith):
            return "bounds prove nothing about the middle or the end of a text: TOKENS does"
        return "bounds prove nothing about this condition"


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
    """Likewise."""


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


MIN_MAX = MinMax()

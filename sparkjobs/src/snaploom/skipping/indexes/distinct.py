"""Distinct values of one file, collected up to a limit: memory is bounded whatever the file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.valueorder import ordered
from snaploom.skipping.indexes.columns import as_mask
from snaploom.skipping.indexes.partialstates import pack, unpack

PENDING = 65_536
"""Values that are collected before duplicates are removed again."""


class DistinctValues:
    """The distinct non-null values of one file, or the fact that there are more than a limit."""

    def __init__(self, value_type: pa.DataType, limit: int) -> None:
        self._type = value_type
        self._limit = limit
        self._found = pa.array([], value_type)
        self._pending: list[pa.Array] = []
        self._waiting = 0

    @property
    def is_over(self) -> bool:
        """Whether more values than the limit were found: then they are not returned (rule S10)."""
        return len(self._found) > self._limit

    def add(self, values: pa.Array) -> None:
        """Add values, NULLs included."""
        if self.is_over:
            return
        distinct = pc.unique(normalised(values.drop_null()))
        self._pending.append(distinct)
        self._waiting += len(distinct)
        if self._waiting > max(PENDING, len(self._found)) or len(self._pending) > PENDING // 64:
            self._settle()

    def merge(self, other: bytes) -> None:
        """Add the `partial` of another collector with the same limit."""
        self.add(unpack(other)[0])

    def partial(self) -> bytes:
        """Collected values; one more than the limit stands for more."""
        self._settle()
        return pack([self._found])

    def values(self) -> pa.Array | None:
        """The values, or None if there are more than the limit."""
        self._settle()
        return None if self.is_over else self._found

    def _settle(self) -> None:
        if not len(self._found) and len(self._pending) == 1:
            # The values of one batch have no duplicates, and most files are one batch.
            self._found = self._pending[0][: self._limit + 1]
        else:
            joined = pa.concat_arrays([self._found, *self._pending])
            self._found = pc.unique(joined)[: self._limit + 1]
        self._pending, self._waiting = [], 0


class DistinctBuilder:
    """Base of builders that collect distinct values; subclasses finish the row."""

    def __init__(self, value_type: pa.DataType, limit: int) -> None:
        self._distinct = DistinctValues(value_type, limit)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch."""
        self._distinct.add(columns[0])

    def merge(self, other: bytes) -> None:
        """Add another builder's state."""
        self._distinct.merge(other)

    def partial(self) -> bytes:
        """Collected state."""
        return self._distinct.partial()


def normalised(values: pa.Array) -> pa.Array:
    """Values with one zero and one NaN (rule S4)."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = ordered(values.to_numpy(zero_copy_only=False))
    return pa.array(numbers, values.type, mask=as_mask(values.is_null()))

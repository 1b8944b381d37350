"""Partition values of listed files as index rows, without opening the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.listedfiles import Int64s
from snaploom.skipping.core.terms import Term, arrow_type
from snaploom.skipping.indexes.base import FooterColumn
from snaploom.skipping.spark.relations.expressions import Literal


@dataclass(frozen=True)
class PartitionRows:
    """Values of partition columns in each file of a listing."""

    names: tuple[str, ...]
    """Partition columns, in order."""
    paths: pa.Array
    """All files of the listing."""
    runs: Sequence[tuple[int, tuple[Literal, ...]]]
    """Values of the partition columns, with how many files after each other have them."""

    def numbers(self, paths: pa.Array) -> Int64s:
        """For each file, the number of its run of equal values."""
        ends = np.cumsum([count for count, _ in self.runs], dtype=np.int64)
        found = pc.index_in(paths, value_set=self.paths).to_numpy(zero_copy_only=False)
        numbers: Int64s = np.searchsorted(ends, found, "right").astype(np.int64)
        return numbers

    def column(self, term: Term, numbers: Int64s) -> FooterColumn:
        """Facts as from a footer about a column that has one value per file.

        It stands for all rows of a file, however many: one is counted.
        """
        numbers_of_runs = pa.array(numbers)
        literals = self._literals(term)
        nulls = pa.array([None if each is None else int(each.is_null) for each in literals], _COUNT)
        values = pa.array(
            [None if each is None else each.value for each in literals], arrow_type(term.data_type)
        ).take(numbers_of_runs)
        nulls = nulls.take(numbers_of_runs)
        return FooterColumn(pc.subtract(1, nulls), nulls, values, values)

    def _literals(self, term: Term) -> list[Literal | None]:
        if term.names is None or term.names[0] not in self.names:
            return [None] * len(self.runs)
        place = self.names.index(term.names[0])
        found = (row[place] for _, row in self.runs)
        return [each if each.is_null or each.value is not None else None for each in found]


_COUNT = pa.int64()

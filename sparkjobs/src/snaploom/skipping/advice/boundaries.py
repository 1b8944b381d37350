"""Ranks of values: quantiles of a sample make columns of all types comparable with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snaploom.skipping.core.valueorder import Int64s, SortedKeys, keys_of, ranks

MOST_RANK_BITS = 10
"""Bits of a rank: a thousand slices of a column are finer than files ever are along it."""


@dataclass(frozen=True)
class Boundaries:
    """Quantiles of one column."""

    data_type: str
    """Spark's type of the column."""
    keys: SortedKeys
    """Keys of the quantiles, each once, in order."""
    starts: Int64s
    """For each key, how many quantiles lie before it; then the number of all quantiles."""

    def ranks(self, values: pa.Array) -> Int64s:
        """Rank of each value: 0 for NULL, else one more than the quantiles below it.

        A value that is frequent takes as many ranks as it takes quantiles, so that ranks are
        spread evenly over the rows and no column outweighs another.
        """
        found = self.starts[ranks(self.keys, keys_of(values, self.data_type), "left")] + 1
        found[values.is_null().to_numpy(zero_copy_only=False)] = 0
        return found


def boundaries_of(sample: pa.Array, data_type: str, bits: int) -> Boundaries:
    """Quantiles of a sample, as many as ranks of a number of bits can distinguish."""
    known = sample.drop_null()
    keys = keys_of(known, data_type)
    ordered = np.sort(keys) if isinstance(keys, np.ndarray) else sorted(keys.to_pylist())
    count = min(len(ordered), 2**bits - 2)
    chosen = (np.arange(count) * len(ordered)) // max(count, 1)
    quantiles = [ordered[each] for each in chosen.tolist()]
    fresh = [
        number
        for number, quantile in enumerate(quantiles)
        if number == 0 or quantile != quantiles[number - 1]
    ]
    starts = np.array([*fresh, len(quantiles)], dtype=np.int64) * (
        (2**bits - 2) // max(len(quantiles), 1)
    )
    distinct = [quantiles[number] for number in fresh]
    if isinstance(ordered, np.ndarray):
        return Boundaries(data_type, np.array(distinct, dtype=np.int64), starts)
    return Boundaries(data_type, distinct, starts)

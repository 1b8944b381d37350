"""Orders of rows: ranks of values, space-filling curves, and sorting as it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from snaploom.skipping.core.valueorder import Int64s, SortedKeys, keys_of, ranks

# Ranks of values: quantiles of a sample make columns of all types comparable with each other.

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


# Space-filling curves: one number for several ranks, so that near numbers mean near ranks.

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


# Request and result of sorting, without Spark.

TARGET_FILE_SIZE = 128 << 20
"""Bytes of a file, about, unless something else is asked for."""


@dataclass(frozen=True)
class SortRequest:
    """Order and size of rewritten files."""

    columns: tuple[str, ...]
    """By which columns, the most important one first."""
    curve: Curve = Curve.HILBERT
    """In which order."""
    target_file_size: int = TARGET_FILE_SIZE
    """Bytes of a file, about, as they are in the files that are read."""
    seed: int = 0
    """Of the sample from which quantiles are taken."""


@dataclass(frozen=True)
class Checksum:
    """Checksum of a set of rows, independent of their order."""

    rows: int
    """Number of them."""
    total: int
    """Sum of the hashes of the rows."""
    mixed: int
    """Exclusive or of other hashes of the rows."""

    def __str__(self) -> str:
        return f"{self.rows:,} rows, checksum {self.text}"

    @property
    def text(self) -> str:
        """Both hashes as text."""
        return f"{self.total:x}-{self.mixed & (2**64 - 1):x}"


@dataclass(frozen=True)
class Rewritten:
    """Rows that were written once more, and proved to be the same."""

    checksum: Checksum
    """Of the rows that were read, and of those that were written."""
    files_before: int
    """Files that were read."""
    files: int
    """Files that were written."""
    bytes_before: int
    """Bytes of the files that were read."""
    bytes: int
    """Bytes of the files that were written."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """Return a JSON value for programs."""
        return {
            "rows": self.checksum.rows,
            "checksum": self.checksum.text,
            "filesBefore": self.files_before,
            "files": self.files,
            "bytesBefore": self.bytes_before,
            "bytes": self.bytes,
        }

    def __str__(self) -> str:
        files = "1 file" if self.files_before == 1 else f"{self.files_before:,} files"
        return f"{files} of {self.bytes_before:,} bytes became {self.files:,} of {self.bytes:,}."


@dataclass(frozen=True)
class SortResult:
    """Result of sorting."""

    uri: str
    """Location of the files."""
    rewritten: Rewritten
    """The files."""
    notes: tuple[str, ...] = ()
    """Warnings for people."""

    @property
    def document(self) -> JsonValue:
        """Return a JSON value for programs."""
        return {"uri": self.uri, **self.rewritten.document, "notes": list(self.notes)}

    def __str__(self) -> str:
        done = self.rewritten
        lines = [
            f"{self.uri}: sorted.",
            f"  {done.checksum}: the same as before.",
            f"  {done}",
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

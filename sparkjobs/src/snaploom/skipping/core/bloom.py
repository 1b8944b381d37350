"""Bloom filters of version 1 as Spark's `sketch.BloomFilter` makes them, bit for bit.

Serialised, all big-endian: int32 version (1), int32 hash functions, int32 words, int64 words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snaploom.skipping.core.filetable import Mask
from snaploom.skipping.core.hashes import Int32s, UInt32s, murmur3_bytes, murmur3_longs
from snaploom.skipping.core.valueorder import Int64s, byte_buffers

VERSION = 1
HEADER_BYTES = 12
MOST_FUNCTIONS = 1100
"""Hash functions of a filter that is probed: Spark chooses 1074 for the least share of wrong yeses
that a number can hold. What names more would be probed for hours, and is unknown."""


@dataclass(frozen=True)
class ItemHashes:
    """The two hashes of each item, from which all its bits follow."""

    first: Int32s
    second: Int32s

    @classmethod
    def of_longs(cls, items: Int64s) -> ItemHashes:
        """Hashes of 64-bit integers (`putLong`)."""
        first = murmur3_longs(items, np.zeros(len(items), dtype=np.int32))
        return cls(first, murmur3_longs(items, first))

    @classmethod
    def of_bytes(cls, items: pa.LargeBinaryArray) -> ItemHashes:
        """Hashes of byte strings (`putString`, `putBinary`)."""
        first = murmur3_bytes(items, np.zeros(len(items), dtype=np.int32))
        return cls(first, murmur3_bytes(items, first))

    def __len__(self) -> int:
        return len(self.first)

    def combined(self, function: int) -> Int64s:
        """The n-th hash (from 1) of each item, before the filter's size."""
        return self._mixed(function).astype(np.int64)

    def positions(self, function: int, bits: int) -> Int64s | UInt32s:
        """The bit of each item that the n-th hash function (from 1) sets in a filter so large."""
        mixed = self._mixed(function)
        # 32 bits divide twice as fast as 64; what is below 2**31 is its own remainder beyond that.
        return mixed.view(np.uint32) % np.uint32(bits) if bits < 2**31 else mixed.astype(np.int64)

    def _mixed(self, function: int) -> Int32s:
        mixed: Int32s = self.first + np.int32(function) * self.second
        # The complement of negative numbers: their sign, repeated, flips every bit.
        signs: Int32s = mixed >> np.int32(31)
        return mixed ^ signs


@dataclass(frozen=True)
class BloomFilter:
    """A set that may answer yes by mistake, but never no."""

    functions: int
    """Number of hash functions."""
    bits: npt.NDArray[np.bool_]
    """One truth value a bit; a multiple of 64."""

    @classmethod
    def sized(cls, items: int, false_positives: float) -> BloomFilter:
        """Empty filter of the size that Spark would choose for a number of distinct items."""
        wanted = max(1, int(-items * math.log(false_positives) / math.log(2) ** 2))
        functions = max(1, math.floor(wanted / items * math.log(2) + 0.5))
        return cls(functions, np.zeros((wanted + 63) // 64 * 64, dtype=np.bool_))

    def put(self, items: ItemHashes) -> None:
        """Add items."""
        for function in range(1, self.functions + 1):
            self.bits[items.positions(function, len(self.bits))] = True

    def merge(self, other: BloomFilter) -> None:
        """Add the items of another filter; `ValueError` if it is of another size."""
        if (other.functions, len(other.bits)) != (self.functions, len(self.bits)):
            raise ValueError("only filters of the same size are merged")
        np.logical_or(self.bits, other.bits, out=self.bits)

    def might_contain(self, items: ItemHashes) -> Mask:
        """For each item, whether it may have been put."""
        found = np.ones(len(items), dtype=np.bool_)
        for function in range(1, self.functions + 1):
            found &= self.bits[items.positions(function, len(self.bits))]
        return found

    def serialised(self) -> bytes:
        """The filter in Spark's form."""
        words = np.packbits(self.bits, bitorder="little").view("<u8")
        header = np.array([VERSION, self.functions, len(words)], dtype=">i4")
        return header.tobytes() + words.astype(">u8").tobytes()

    @classmethod
    def parsed(cls, content: bytes) -> BloomFilter:
        """A filter from Spark's form; `ValueError` for other content or versions."""
        header = np.frombuffer(content[:HEADER_BYTES], dtype=">i4")
        body = content[HEADER_BYTES:]
        if len(header) != 3 or header[0] != VERSION or header[2] < 1:
            raise ValueError("not a Bloom filter of version 1")
        if not 1 <= header[1] <= MOST_FUNCTIONS:
            raise ValueError("not a Bloom filter of version 1")
        if len(body) != 8 * int(header[2]):
            raise ValueError(f"{len(body)} bytes for {header[2]} words of a Bloom filter")
        words = np.frombuffer(body, dtype=">u8").astype("<u8")
        bits = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)
        return cls(int(header[1]), bits)


class BloomColumn:
    """One serialised filter per file, probed together; NULL or an invalid one may contain all."""

    def __init__(self, filters: pa.LargeBinaryArray) -> None:
        offsets, self._data = byte_buffers(filters)
        lengths = np.diff(offsets)
        readable = np.flatnonzero((lengths > HEADER_BYTES) & _valid(filters))
        starts = offsets[:-1][readable]
        version, functions, words = (self._integers(starts + 4 * at) for at in range(3))
        sound = (version == VERSION) & (functions >= 1) & (words >= 1)
        sound &= functions <= MOST_FUNCTIONS
        sound &= lengths[readable] == HEADER_BYTES + 8 * words
        self.count = len(filters)
        self._rows = readable[sound]
        self._starts = starts[sound] + HEADER_BYTES
        self._functions = functions[sound]
        self._bits = 64 * words[sound]

    def __len__(self) -> int:
        return len(self._rows)

    def might_contain_any(self, items: ItemHashes) -> Mask:
        """For each file, whether its filter may contain one of the items."""
        open_rows = np.arange(len(self._rows))
        found = np.ones(self.count, dtype=np.bool_)
        for at in range(len(items)):
            one = ItemHashes(items.first[at : at + 1], items.second[at : at + 1])
            hits = self._hits(one, open_rows)
            # A file that may have one item is not asked about the others.
            open_rows = np.setdiff1d(open_rows, hits, assume_unique=True)
        found[self._rows[open_rows]] = False
        return found

    def might_contain_all(self, items: ItemHashes) -> Mask:
        """For each file, whether its filter may contain all of the items."""
        open_rows = np.arange(len(self._rows))
        for at in range(len(items)):
            one = ItemHashes(items.first[at : at + 1], items.second[at : at + 1])
            open_rows = self._hits(one, open_rows)
        found = np.ones(self.count, dtype=np.bool_)
        found[self._rows] = False
        found[self._rows[open_rows]] = True
        return found

    def _hits(self, item: ItemHashes, rows: Int64s) -> Int64s:
        for function in range(1, int(self._functions.max(initial=0)) + 1):
            combined = item.combined(function)[0]
            position = combined % self._bits[rows]
            byte = self._starts[rows] + (position >> 6) * 8 + 7 - ((position & 63) >> 3)
            is_set = (self._data[byte] >> (position & 7).astype(np.uint8)) & 1 == 1
            rows = rows[is_set | (self._functions[rows] < function)]
        return rows

    def _integers(self, starts: Int64s) -> Int64s:
        value = np.zeros(len(starts), dtype=np.int64)
        for at in range(4):
            value = (value << 8) | self._data[starts + at]
        return value.astype(np.int32).astype(np.int64)


def _valid(values: pa.Array) -> Mask:
    mask: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return mask

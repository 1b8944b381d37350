"""Spark's hashes bit for bit, of values and of whole columns, and Bloom filters over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snaploom.skipping.core.definition import Value, arrow_type
from snaploom.skipping.core.filetable import Mask
from snaploom.skipping.core.valueorder import (
    Int64s,
    byte_buffers,
    has_integer_keys,
    is_text,
    key_of,
    keys_of,
    ordered,
)

# Spark's hashes, bit for bit: `xxhash64(value)` and the Murmur3 of its Bloom filters.

UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]

SEED = 42
"""The seed of Spark's SQL function."""

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    np.uint64(prime)
    for prime in (
        0x9E37_79B1_85EB_CA87,
        0xC2B2_AE3D_27D4_EB4F,
        0x1656_67B1_9E37_79F9,
        0x85EB_CA77_C2B2_AE63,
        0x27D4_EB2F_1656_67C5,
    )
)
_HALVES = ("boolean", "tinyint", "smallint", "int", "date", "float")
"""Types that are hashed as 32 bits; the others with integer keys are hashed as 64."""


def xxhash64(values: Sequence[Value], data_type: str) -> Int64s:
    """Spark's signed `xxhash64` of values in Catalyst's form; depends on the type (rule S15)."""
    keys = [key_of(value, data_type) for value in values]
    if is_hashable(data_type):
        return np.asarray(xxhash64_of(pa.array(values, arrow_type(data_type)), data_type))
    # Of a long decimal the key is the unscaled value, moved so that bytes order it.
    unscaled = [int.from_bytes(bytes(key), "big") - 2**127 for key in keys]
    contents = [
        each.to_bytes(((each if each >= 0 else ~each).bit_length() + 8) // 8, "big", signed=True)
        for each in unscaled
    ]
    return np.asarray(xxhash64_of(pa.array(contents, pa.large_binary()), "binary"))


def is_hashable(data_type: str) -> bool:
    """Whether `xxhash64_of` knows a type: every kept one but decimals of more than 18 digits."""
    return is_text(data_type) or has_integer_keys(data_type)


def xxhash64_of(values: pa.Array, data_type: str) -> pa.Array:
    """Spark's `xxhash64` (int64) of each value of a hashable type; NULL where it is NULL."""
    if is_text(data_type):
        offsets, data = byte_buffers(values)
        lengths = np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        hashes = np.empty(len(values), dtype=np.uint64)
        hashes[order] = _of_sorted(data, offsets[:-1][order], lengths[order])
    elif data_type in _HALVES:
        hashes = _avalanche(_with_half(_start(4), _bits(values, data_type)))
    else:
        hashes = _avalanche(_with_word(_start(8), _bits(values, data_type)))
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(hashes.view(np.int64), pa.int64(), mask=nulls)


def _bits(values: pa.Array, data_type: str) -> UInt64s:
    """Bits that are hashed of fixed-width values: for halves, the lower 32 bits."""
    if data_type in ("float", "double"):
        numbers = ordered(values.fill_null(0).to_numpy(zero_copy_only=False))
        return numbers.view(np.uint32 if data_type == "float" else np.uint64).astype(np.uint64)
    keys = keys_of(values, data_type)
    bits = np.asarray(keys, dtype=np.int64).view(np.uint64)
    return bits & np.uint64(0xFFFF_FFFF) if data_type in _HALVES else bits


def _of_sorted(data: npt.NDArray[np.uint8], starts: Int64s, lengths: Int64s) -> UInt64s:
    words = _overlapping(data, np.dtype("<u8"))
    state = _after_stripes(words, starts, lengths)
    position, left = starts + lengths // 32 * 32, lengths % 32
    for number in range(3):
        rows = np.flatnonzero(left >= 8 * (number + 1))
        state[rows] = _with_word(state[rows], words[position[rows] + 8 * number])
    position, left = position + left // 8 * 8, left % 8
    rows = np.flatnonzero(left >= 4)
    halves = _overlapping(data, np.dtype("<u4"))[position[rows]].astype(np.uint64)
    state[rows] = _with_half(state[rows], halves)
    position, left = position + left // 4 * 4, left % 4
    for number in range(3):
        rows = np.flatnonzero(left > number)
        block = data[position[rows] + number].astype(np.uint64) * _PRIME_5
        state[rows] = _rotated(state[rows] ^ block, 11) * _PRIME_1
    return _avalanche(state)


def _after_stripes(words: UInt64s, starts: Int64s, lengths: Int64s) -> UInt64s:
    state = np.uint64(SEED) + _PRIME_5 + lengths.astype(np.uint64)
    striped = int(np.count_nonzero(lengths >= 32))
    if not striped:
        return state
    seed = np.full(striped, SEED, dtype=np.uint64)
    # A row for each lane, so that all of them take a step at once.
    lanes = np.stack([seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2, seed, seed - _PRIME_1])
    places = starts[:striped] + np.arange(0, 32, 8)[:, None]
    descending = -lengths
    for at in range(0, int(lengths[0]) // 32 * 32, 32):
        rows = int(np.searchsorted(descending, -(at + 32), "right"))
        lanes[:, :rows] = _round(lanes[:, :rows], words[places[:, :rows] + at])
    mixed = sum(
        (_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)),
        np.zeros(striped, dtype=np.uint64),
    )
    for lane in lanes:
        mixed = (mixed ^ _round(np.zeros_like(lane), lane)) * _PRIME_1 + _PRIME_4
    state[:striped] = mixed + lengths[:striped].astype(np.uint64)
    return state


def _overlapping(data: npt.NDArray[np.uint8], kind: np.dtype[np.unsignedinteger]) -> UInt64s:
    count = max(0, len(data) - kind.itemsize + 1)
    return np.ndarray((count,), kind, data if count else b"", strides=(1,))


def _start(length: int) -> UInt64s:
    return np.array([SEED + length], dtype=np.uint64) + _PRIME_5


def _round(lane: UInt64s, word: UInt64s) -> UInt64s:
    return _rotated(lane + word * _PRIME_2, 31) * _PRIME_1


def _with_word(state: UInt64s, word: UInt64s) -> UInt64s:
    mixed = state ^ (_rotated(word * _PRIME_2, 31) * _PRIME_1)
    return _rotated(mixed, 27) * _PRIME_1 + _PRIME_4


def _with_half(state: UInt64s, half: UInt64s) -> UInt64s:
    return _rotated(state ^ (half * _PRIME_1), 23) * _PRIME_2 + _PRIME_3


def _avalanche(state: UInt64s) -> UInt64s:
    state = (state ^ (state >> np.uint64(33))) * _PRIME_2
    state = (state ^ (state >> np.uint64(29))) * _PRIME_3
    return state ^ (state >> np.uint64(32))


def _rotated(value: UInt64s, by: int) -> UInt64s:
    return (value << np.uint64(by)) | (value >> np.uint64(64 - by))


def murmur3_longs(items: Int64s, seeds: Int32s) -> Int32s:
    """Murmur3 (x86, 32 bits) of 64-bit integers: low half first, each with its seed."""
    words = items.view(np.uint64)
    low = (words & np.uint64(0xFFFF_FFFF)).astype(np.uint32)
    high = (words >> np.uint64(32)).astype(np.uint32)
    state = _mixed(_mixed(seeds.view(np.uint32), low), high)
    return _finished(state, 8).view(np.int32)


def murmur3_bytes(items: pa.LargeBinaryArray, seeds: Int32s) -> Int32s:
    """Murmur3 of byte strings as Spark's Bloom filters of version 1 compute it.

    Words of four bytes, little-endian, then every trailing byte as a block of its own, with its
    sign extended; that is where it differs from the published algorithm.
    """
    offsets, data = byte_buffers(items)
    lengths = np.diff(offsets)
    hashes = np.empty(len(items), dtype=np.int32)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        block = data[offsets[rows][:, None] + np.arange(length)]
        state = seeds[rows].view(np.uint32)
        aligned = int(length) // 4 * 4
        words = np.ascontiguousarray(block[:, :aligned]).view("<u4").astype(np.uint32)
        for column in words.T:
            state = _mixed(state, column)
        for column in block[:, aligned:].T:
            state = _mixed(state, column.astype(np.int8).astype(np.int32).view(np.uint32))
        hashes[rows] = _finished(state, int(length)).view(np.int32)
    return hashes


def _mixed(state: UInt32s, block: UInt32s) -> UInt32s:
    block = block * np.uint32(0xCC9E_2D51)
    block = (block << np.uint32(15)) | (block >> np.uint32(17))
    state = state ^ (block * np.uint32(0x1B87_3593))
    state = (state << np.uint32(13)) | (state >> np.uint32(19))
    return state * np.uint32(5) + np.uint32(0xE654_6B64)


def _finished(state: UInt32s, length: int) -> UInt32s:
    state = state ^ np.uint32(length)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EB_CA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2_AE35)
    return state ^ (state >> np.uint32(16))


# Bloom filters of version 1 as Spark's `sketch.BloomFilter` makes them, bit for bit.

VERSION = 1
HEADER_BYTES = 12
MOST_FUNCTIONS = 1100
"""Hash functions of a filter that is probed: Spark chooses 1074 for the least share of wrong yeses
that a number can hold. More than these would be probed for hours, and are unknown."""


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
    bits: npt.NDArray[np.bool_]
    """One truth value a bit; a multiple of 64."""

    @classmethod
    def sized(cls, items: int, false_positives: float) -> BloomFilter:
        """Empty filter of the size that Spark would choose for a number of distinct items."""
        wanted = max(1, int(-items * math.log(false_positives) / math.log(2) ** 2))
        functions = max(1, math.floor(wanted / items * math.log(2) + 0.5))
        return cls(functions, np.zeros((wanted + 63) // 64 * 64, dtype=np.bool_))

    def put(self, items: ItemHashes) -> None:
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
        mask: Mask = filters.is_valid().to_numpy(zero_copy_only=False)
        readable = np.flatnonzero((lengths > HEADER_BYTES) & mask)
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

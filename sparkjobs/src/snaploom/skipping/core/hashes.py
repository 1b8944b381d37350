"""Spark's hashes bit for bit, of values and of whole columns, and Bloom filters over them."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snaploom.skipping.core.filetable import Mask
from snaploom.skipping.core.terms import Value
from snaploom.skipping.core.valueorder import Int64s, byte_buffers, has_integer_keys, key_of

# Spark's hashes, bit for bit: `xxhash64(value)` and the Murmur3 of its Bloom filters.

Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]

SEED = 42
"""The seed of Spark's SQL function."""

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_PRIME_1 = 0x9E37_79B1_85EB_CA87
_PRIME_2 = 0xC2B2_AE3D_27D4_EB4F
_PRIME_3 = 0x1656_67B1_9E37_79F9
_PRIME_4 = 0x85EB_CA77_C2B2_AE63
_PRIME_5 = 0x27D4_EB2F_1656_67C5

_AS_INT = ("boolean", "tinyint", "smallint", "int", "date")
_AS_LONG = ("bigint", "timestamp", "timestamp_ntz")


def xxhash64(value: Value, data_type: str) -> int:
    """Spark's signed `xxhash64` of a value in Catalyst's form; depends on the type (rule S15).

    Raises:
        ValueError: the value is none of that type.
    """
    return _signed(_hash(value, data_type))


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


def _hash(value: Value, data_type: str) -> int:
    if data_type in ("float", "double"):
        return _hash_of_float(value, data_type)
    key = key_of(value, data_type)
    if data_type in _AS_INT:
        return _hash_int(int(key))
    if data_type in _AS_LONG:
        return _hash_word(int(key))
    if isinstance(value, Decimal):
        if has_integer_keys(data_type):
            return _hash_word(int(key))
        # The key is the unscaled value, moved so that bytes order it.
        unscaled = int.from_bytes(bytes(key), "big") - 2**127
        length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
        return _hash_bytes(unscaled.to_bytes(length, "big", signed=True))
    return _hash_bytes(bytes(key))


def _hash_of_float(value: Value, data_type: str) -> int:
    key_of(value, data_type)
    number = float(value) + 0.0
    if number != number:
        return _hash_int(0x7FC0_0000) if data_type == "float" else _hash_word(0x7FF8 << 48)
    if data_type == "float":
        return _hash_int(struct.unpack(">i", struct.pack(">f", number))[0])
    return _hash_word(struct.unpack(">q", struct.pack(">d", number))[0])


def _hash_int(value: int) -> int:
    return _avalanche(_with_half(_start(4), value & 0xFFFF_FFFF))


def _hash_word(value: int) -> int:
    return _avalanche(_with_word(_start(8), value & _MASK))


def _hash_bytes(content: bytes) -> int:
    state, at = _after_stripes(content)
    end = len(content)
    while at + 8 <= end:
        state = _with_word(state, int.from_bytes(content[at : at + 8], "little"))
        at += 8
    if at + 4 <= end:
        state = _with_half(state, int.from_bytes(content[at : at + 4], "little"))
        at += 4
    for byte in content[at:]:
        state = _rotated(state ^ byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    return _avalanche(state)


def _after_stripes(content: bytes) -> tuple[int, int]:
    if len(content) < 32:
        return _start(len(content)), 0
    lanes = [SEED + _PRIME_1 + _PRIME_2, SEED + _PRIME_2, SEED, SEED - _PRIME_1]
    stripes = len(content) // 32
    words = struct.unpack(f"<{4 * stripes}Q", content[: 32 * stripes])
    for at in range(0, len(words), 4):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words[at : at + 4], strict=True)]
    state = sum(_rotated(lane & _MASK, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        state = ((state ^ _round(0, lane)) * _PRIME_1 + _PRIME_4) & _MASK
    return (state + len(content)) & _MASK, 32 * stripes


def _start(length: int) -> int:
    return (SEED + _PRIME_5 + length) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIME_2) & _MASK, 31) * _PRIME_1 & _MASK


def _with_word(state: int, word: int) -> int:
    return (_rotated(state ^ _round(0, word), 27) * _PRIME_1 + _PRIME_4) & _MASK


def _with_half(state: int, half: int) -> int:
    return (_rotated(state ^ (half * _PRIME_1 & _MASK), 23) * _PRIME_2 + _PRIME_3) & _MASK


def _avalanche(state: int) -> int:
    state = (state ^ state >> 33) * _PRIME_2 & _MASK
    state = (state ^ state >> 29) * _PRIME_3 & _MASK
    return state ^ state >> 32


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


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

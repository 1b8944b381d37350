"""Spark's hashes, bit for bit: `xxhash64(value)` and the Murmur3 of its Bloom filters.

Facts about both were measured on Spark 4.3; the unit tests hold the measured values.
"""

from __future__ import annotations

import struct
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snaploom.skipping.core.terms import Value
from snaploom.skipping.core.valueorder import Int64s, byte_buffers, has_integer_keys, key_of

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

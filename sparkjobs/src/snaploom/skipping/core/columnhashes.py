"""Spark's `xxhash64` of whole columns, at numpy's speed: as `hashing.xxhash64` for one value.

Each step of the hash is done for all values that have it: longest values first, so that those which
have another stripe of 32 bytes are always the first ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snaploom.skipping.core.hashes import SEED, xxhash64
from snaploom.skipping.core.valueorder import (
    Int64s,
    byte_buffers,
    has_integer_keys,
    is_text,
    keys_of,
    ordered,
)

UInt64s = npt.NDArray[np.uint64]

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

_LONG, _FEW = 1024, 16
"""So many values that are so long, in bytes, are hashed one by one: numpy gains from many."""


def is_hashable(data_type: str) -> bool:
    """Whether `xxhash64_of` knows a type: every kept one but decimals of more than 18 digits."""
    return is_text(data_type) or has_integer_keys(data_type)


def xxhash64_of(values: pa.Array, data_type: str) -> pa.Array:
    """Spark's `xxhash64` (int64) of each value of a hashable type; NULL where it is NULL."""
    if is_text(data_type):
        offsets, data = byte_buffers(values)
        lengths = np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        single = order[:_FEW][lengths[order[:_FEW]] > _LONG]
        order = order[len(single) :]
        hashes = np.empty(len(values), dtype=np.uint64)
        hashes[order] = _of_sorted(data, offsets[:-1][order], lengths[order])
        for row in single.tolist():
            content = data[offsets[row] : offsets[row + 1]].tobytes()
            hashes[row] = np.uint64(xxhash64(content, "binary") % 2**64)
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
    lanes = [seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2, seed, seed - _PRIME_1]
    for at in range(0, int(lengths[0]) // 32 * 32, 32):
        # Negated, because lengths descend.
        open_rows = int(np.searchsorted(-lengths, -(at + 32), "right"))
        for number, lane in enumerate(lanes):
            block = words[starts[:open_rows] + (at + 8 * number)]
            lane[:open_rows] = _round(lane[:open_rows], block)
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

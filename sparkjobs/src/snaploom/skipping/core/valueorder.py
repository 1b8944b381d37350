"""Spark's order of values, as keys that numpy and Arrow compare at full speed.

Every supported type has one of two kinds of keys:

* int64: integers, dates, timestamps and booleans as they are; decimals of up to 18 digits by their
  unscaled value; floating-point numbers by their bits, rearranged so that integers order them as
  Spark does: -0.0 is 0.0, NaN is one value and greater than infinity.
* bytes in unsigned order: text (as UTF-8) and binary as they are; longer decimals as 16 big-endian
  bytes, sign bit flipped.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.definition import Value, arrow_type

Int64s = npt.NDArray[np.int64]

SortedKeys: TypeAlias = Int64s | list[bytes]
"""Keys of literals, each once, in order."""

Keys: TypeAlias = Int64s | pa.LargeBinaryArray
"""Keys of an array of values. The value in place of NULL is arbitrary: ask the array's validity."""

_LONGEST_INT64_DECIMAL = 18
_SIGN = 0x7FFF_FFFF_FFFF_FFFF
_CANONICAL_NAN = 0x7FF8_0000_0000_0000
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def is_text(data_type: str) -> bool:
    """Whether values of a Spark type are text or binary, which have prefixes."""
    return data_type in ("string", "binary")


def has_integer_keys(data_type: str) -> bool:
    """Whether the keys of a Spark type are int64, else bytes; `ValueError` if it has none."""
    kept_as = _kept_as(data_type)
    if pa.types.is_decimal(kept_as):
        return bool(kept_as.precision <= _LONGEST_INT64_DECIMAL)
    return not is_text(data_type)


def key_of(value: Value, data_type: str) -> int | bytes:
    """The key of one value; `ValueError` if it does not fit the type."""
    kept_as = _kept_as(data_type)
    if is_text(data_type):
        if isinstance(value, bytes):
            return value
        raise ValueError(f"{value!r} is no {data_type}")
    if pa.types.is_decimal(kept_as):
        unscaled = _unscaled(value, kept_as)
        if kept_as.precision <= _LONGEST_INT64_DECIMAL:
            return unscaled
        return (unscaled + 2**127).to_bytes(16, "big")
    if pa.types.is_floating(kept_as):
        return _float_key(value, data_type)
    if isinstance(value, int) and _INT64_MIN <= value <= _INT64_MAX:
        return int(value)
    raise ValueError(f"{value!r} is no {data_type}")


def keys_of(values: pa.Array, data_type: str) -> Keys:
    """The keys of an array in its Arrow type; `ValueError` for another one."""
    kept_as = _kept_as(data_type)
    if values.type != kept_as:
        raise ValueError(f"values of {data_type} are kept as {kept_as}, found {values.type}")
    if is_text(data_type):
        return cast(pa.LargeBinaryArray, values)
    if pa.types.is_decimal(kept_as):
        return _decimal_keys(values, kept_as.precision)
    if pa.types.is_boolean(kept_as):
        values = values.cast(pa.int8())
    # Buffers are read as they are: to_numpy would turn integers with NULLs into floats.
    numbers = _buffer(values)
    return _float_keys(numbers) if numbers.dtype.kind == "f" else numbers.astype(np.int64)


def sorted_keys(values: Sequence[Value], data_type: str) -> SortedKeys:
    """The keys of literals, each once, in order; `ValueError` if one does not fit the type."""
    distinct = {key_of(value, data_type) for value in values}
    if has_integer_keys(data_type):
        return np.array(sorted(distinct), dtype=np.int64)
    return sorted(key for key in distinct if isinstance(key, bytes))


def ranks(literals: SortedKeys, keys: Keys, side: Literal["left", "right"]) -> Int64s:
    """For each key, the number of literals less (`left`), or less or equal (`right`)."""
    if isinstance(keys, np.ndarray):
        return np.searchsorted(literals, keys, side).astype(np.int64)
    return _byte_ranks(cast(list[bytes], literals), keys, side)


def ordered(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Floating-point numbers with one zero and one NaN, as Spark compares them (rule S4)."""
    plain = values + values.dtype.type(0.0)
    plain[np.isnan(plain)] = np.nan
    return plain


def byte_buffers(values: pa.LargeBinaryArray) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """Offsets and concatenated bytes of all values, without a copy."""
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        return np.zeros(len(values) + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    bounds = np.frombuffer(offsets, np.int64, len(values) + 1, 8 * values.offset)
    return bounds, np.frombuffer(data or b"", np.uint8)


def _kept_as(data_type: str) -> pa.DataType:
    kept_as = arrow_type(data_type)
    if kept_as is None:
        raise ValueError(f"values of {data_type} have no order that an index could use")
    return kept_as


def _unscaled(value: Value, kept_as: pa.DataType) -> int:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise ValueError(f"{value!r} is no {kept_as}")
    sign, digits, exponent = value.as_tuple()
    unscaled, shift = int("".join(map(str, digits))), cast(int, exponent) + kept_as.scale
    if shift >= 0:
        unscaled *= int(10**shift)
    else:
        unscaled, rest = divmod(unscaled, int(10**-shift))
        if rest:
            raise ValueError(f"{value} has more than {kept_as.scale} decimals")
    if unscaled >= 10**kept_as.precision:
        raise ValueError(f"{value} has more than {kept_as.precision} digits")
    return -unscaled if sign else unscaled


def _float_key(value: Value, data_type: str) -> int:
    if isinstance(value, Decimal | bytes):
        raise ValueError(f"{value!r} is no {data_type}")
    number = float(value) + 0.0
    bits = int.from_bytes(struct.pack(">d", number), "big", signed=True)
    if number != number:
        return _CANONICAL_NAN
    return bits if bits >= 0 else bits ^ _SIGN


def _float_keys(numbers: npt.NDArray[np.generic]) -> Int64s:
    doubles = ordered(numbers.astype(np.float64))
    bits = doubles.view(np.int64)
    keys: Int64s = np.where(bits >= 0, bits, bits ^ np.int64(_SIGN))
    keys[np.isnan(doubles)] = _CANONICAL_NAN
    return keys


def _decimal_keys(values: pa.Array, precision: int) -> Keys:
    words = _words(values)
    if precision <= _LONGEST_INT64_DECIMAL:
        return np.ascontiguousarray(words[:, 0]).view(np.int64)
    big = np.empty((len(values), 2), dtype=">u8")
    big[:, 0] = words[:, 1] ^ np.uint64(1 << 63)
    big[:, 1] = words[:, 0]
    offsets = np.arange(0, 16 * len(values) + 1, 16, dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(big)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), buffers)


def _words(values: pa.Array) -> npt.NDArray[np.uint64]:
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.zeros((0, 2), dtype=np.uint64)
    words = np.frombuffer(data, dtype="<u8", count=2 * len(values), offset=16 * values.offset)
    return words.reshape(-1, 2)


def _buffer(values: pa.Array) -> npt.NDArray[np.generic]:
    dtype = np.dtype(values.type.to_pandas_dtype())
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.zeros(0, dtype)
    return np.frombuffer(data, dtype, len(values), values.offset * dtype.itemsize)


def _byte_ranks(
    literals: list[bytes], keys: pa.LargeBinaryArray, side: Literal["left", "right"]
) -> Int64s:
    # Eight bytes behind what all literals begin with decide nearly always, at numpy's speed; where
    # they equal a literal's, the whole texts are compared.
    common = _shared_prefix(literals[0], literals[-1]) if literals else b""
    words = _words_at(pa.array(literals, pa.large_binary()), len(common))
    found = _words_at(keys, len(common))
    low, high = np.searchsorted(words, found, "left"), np.searchsorted(words, found, "right")
    counts = low.astype(np.int64)
    alike = pc.starts_with(keys, pattern=common).to_numpy(zero_copy_only=False) == np.True_
    before = pc.less(keys, common).to_numpy(zero_copy_only=False) == np.True_
    counts[~alike] = np.where(before[~alike], 0, len(literals))
    bisect = bisect_left if side == "left" else bisect_right
    undecided = np.flatnonzero(alike & (low != high))
    exact = [bisect(literals, key) for key in keys.take(pa.array(undecided)).to_pylist()]
    counts[undecided] = exact
    return counts


def _shared_prefix(first: bytes, last: bytes) -> bytes:
    for at, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:at]
    return min(first, last)


def _words_at(values: pa.LargeBinaryArray, position: int) -> npt.NDArray[np.uint64]:
    offsets, data = byte_buffers(values)
    words = np.zeros(len(values), dtype=np.uint64)
    for at in range(position, position + 8):
        inside = offsets[:-1] + at < offsets[1:]
        byte = np.zeros(len(values), dtype=np.uint64)
        byte[inside] = data[offsets[:-1][inside] + at]
        words = (words << np.uint64(8)) | byte
    return words


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
    """Position of each row on a curve, from ranks of a number of bits, one array per column."""
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
    target_file_size: int = TARGET_FILE_SIZE
    """Bytes of a file, about, as they are in the files that are read."""
    seed: int = 0
    """Of the sample from which quantiles are taken."""

"""Hashes against values measured on Spark 4.3 (`SELECT xxhash64(...)`, `sketch.BloomFilter`)."""

import hashlib
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snaploom.skipping.core.definition import Value, arrow_type
from snaploom.skipping.core.hashes import (
    BloomColumn,
    BloomFilter,
    ItemHashes,
    is_hashable,
    murmur3_bytes,
    murmur3_longs,
    xxhash64,
    xxhash64_of,
)

LONG_TEXT = "Grüße 🎉 und noch viel mehr Text, länger als 32 Bytes"
LONG_BYTES = bytes.fromhex(
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324"
)

MEASURED = [
    (True, "boolean", -6698625589789238999),
    (False, "boolean", 3614696996920510707),
    (5, "tinyint", 504019808641096632),
    (-5, "smallint", 9201179564109417620),
    (5, "int", 504019808641096632),
    (-7, "int", 4987848727247274714),
    (5, "bigint", 6251837290343458373),
    (-5, "bigint", -5259934538394028452),
    (2**63 - 1, "bigint", -3246596055638297850),
    (1.5, "float", 6163473420726370430),
    (-0.0, "float", 3614696996920510707),
    (math.nan, "float", 2692338816207849720),
    (1.5, "double", 7738255526519901366),
    (-0.0, "double", -5252525462095825812),
    (0.0, "double", -5252525462095825812),
    (math.nan, "double", -3127944061524951246),
    (-math.inf, "double", 5326262080505358431),
    (Decimal("12.34"), "decimal(10,2)", -3802813071951760351),
    (Decimal("-12.34"), "decimal(18,2)", -1614697014534150208),
    (Decimal("12.34"), "decimal(20,2)", 804797035677707363),
    (Decimal("-12.34"), "decimal(38,2)", -5902959860576184235),
    (Decimal("-99999999999999999999999999.99"), "decimal(38,2)", 7435801786743591682),
    (Decimal("0.00"), "decimal(20,2)", -8959994473701255385),
    (-1, "date", 2017008487422258757),
    (19849, "date", 608940201624051447),
    (1714979289123456, "timestamp", 452970661972643276),
    (-2208988800000000, "timestamp_ntz", 155858819934112402),
    (b"", "string", -7444071767201028348),
    (b"a", "string", -8582455328737087284),
    (b"abcd", "string", -6810745876291105281),
    (b"hello world", "string", 7620854247404556961),
    (LONG_TEXT.encode(), "string", 7075981635284502471),
    (bytes.fromhex("00ff80"), "binary", 7869338589911211550),
    (LONG_BYTES, "binary", -5799948707353228709),
]


@pytest.mark.parametrize(("value", "data_type", "expected"), MEASURED)
def test_xxhash64_is_sparks(value, data_type, expected):
    assert xxhash64([value], data_type).tolist() == [expected]


def test_hash_of_a_value_of_another_type_is_refused():
    with pytest.raises(ValueError, match="is no bigint"):
        xxhash64([b"5"], "bigint")


def test_hashes_of_many_texts_do_not_depend_on_their_company():
    texts = pa.array([b"", b"a", b"abcd", b"abcde", bytes([255, 128, 7])] * 3, pa.large_binary())
    seeds = np.arange(len(texts), dtype=np.int32)
    together = murmur3_bytes(texts, seeds)
    one_by_one = [
        murmur3_bytes(texts[at : at + 1], seeds[at : at + 1])[0] for at in range(len(texts))
    ]
    assert together.tolist() == one_by_one


def test_second_hash_is_seeded_with_the_first():
    items = np.array([0, -1, 2**62], dtype=np.int64)
    hashes = ItemHashes.of_longs(items)
    assert murmur3_longs(items, hashes.first).tolist() == hashes.second.tolist()


NUMBERS = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "date": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "timestamp": st.integers(-(2**63), 2**63 - 1),
    "timestamp_ntz": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(9,2)": st.decimals(-9_999_999, 9_999_999, places=2),
    "decimal(18,0)": st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal),
}


PRIMES = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)  # fmt: skip


def xxh64(content: bytes, seed: int = 42) -> int:
    """Yann Collet's algorithm, one step after the other."""
    one, two, three, four, five = PRIMES
    mask = 2**64 - 1

    def rotated(value: int, by: int) -> int:
        return (value << by | (value & mask) >> (64 - by)) & mask

    def mixed(lane: int, word: bytes) -> int:
        total = lane + int.from_bytes(word, "little") * two & mask
        return rotated(total, 31) * one & mask

    state, rest = seed + five, content
    if len(content) >= 32:
        lanes = [seed + one + two, seed + two, seed, seed - one]
        while len(rest) >= 32:
            lanes = [mixed(lane, rest[8 * n : 8 * n + 8]) for n, lane in enumerate(lanes)]
            rest = rest[32:]
        state = sum(rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            state = (state & mask ^ mixed(0, lane.to_bytes(8, "little"))) * one + four
    state = state + len(content) & mask
    while len(rest) >= 8:
        state = rotated(state ^ mixed(0, rest[:8]), 27) * one + four & mask
        rest = rest[8:]
    if len(rest) >= 4:
        half = int.from_bytes(rest[:4], "little") * one & mask
        state = rotated(state ^ half, 23) * two + three & mask
        rest = rest[4:]
    for byte in rest:
        state = rotated(state ^ byte * five & mask, 11) * one & mask
    state = (state ^ state >> 33) * two & mask
    state = (state ^ state >> 29) * three & mask
    state ^= state >> 32
    return state - 2**64 if state >= 2**63 else state


def plain(value: Value, data_type: str) -> bytes:
    """Bytes that are hashed of a value, as Spark lays it out."""
    if isinstance(value, bytes):
        return value
    if data_type in ("float", "double"):
        number = math.nan if value != value else float(value) + 0.0
        return struct.pack("<f" if data_type == "float" else "<d", number)
    if isinstance(value, Decimal):
        value = int(value.scaleb(int(data_type[:-1].rpartition(",")[2])))
    is_long = data_type in ("bigint", "timestamp", "timestamp_ntz") or "decimal" in data_type
    return int(value).to_bytes(8 if is_long else 4, "little", signed=True)


def hashed(values: list[Value | None], data_type: str) -> None:
    found = xxhash64_of(pa.array(values, arrow_type(data_type)), data_type)
    expected = [None if value is None else xxh64(plain(value, data_type)) for value in values]
    assert found.to_pylist() == expected


@pytest.mark.parametrize("data_type", NUMBERS)
def test_numbers_are_hashed_as_step_by_step(data_type: str) -> None:
    @settings(deadline=None)
    @given(st.lists(st.none() | NUMBERS[data_type]))
    def check(values: list[Value | None]) -> None:
        hashed(values, data_type)

    check()


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=200)))
def test_texts_are_hashed_as_step_by_step(values: list[Value | None]) -> None:
    hashed(values, "string")


@pytest.mark.parametrize("count", [1, 16, 40])
def test_long_texts_are_hashed_as_step_by_step(count: int) -> None:
    pattern = bytes(range(256)) * 20
    hashed([pattern[at : at + 900 + 60 * at] for at in range(count)] + [b"", None], "binary")


def test_a_slice_is_hashed_as_what_it_holds() -> None:
    texts = pa.array([b"a", b"bc", None, b"0123456789" * 5], pa.large_binary())
    assert xxhash64_of(texts[1:], "string").equals(xxhash64_of(texts, "string")[1:])
    numbers = pa.array([1.5, None, -0.0], pa.float64())
    assert xxhash64_of(numbers[1:], "double").equals(xxhash64_of(numbers, "double")[1:])


def test_only_large_decimals_are_not_hashable() -> None:
    assert [is_hashable(f"decimal({digits},0)") for digits in (1, 18, 19)] == [True, True, False]
    assert all(is_hashable(data_type) for data_type in (*NUMBERS, "string", "binary"))


LONGS = [
    (10, 0.01, [0, 1, -1, 5, 2**62, -(2**63)], "095059230158a012b0020442094f8405"),
    (3, 0.1, [42], "0000000000000092"),
    (1, 0.01, [7], "00400a0005000080"),
]
SIZES = [(1, 0.01, 6, 1), (10, 0.01, 7, 2), (100_000, 0.01, 7, 14_977), (1000, 0.03, 5, 115)]
TEXTS = ["", "a", "abc", "abcd", "abcde", "Grüße", "🎉x", "hello world"]
HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30)


@pytest.mark.parametrize(("items", "share", "functions", "words"), [*SIZES, (7, 0.5, 1, 1)])
def test_size_is_what_spark_chooses(items, share, functions, words):
    bloom = BloomFilter.sized(items, share)
    assert (bloom.functions, len(bloom.bits)) == (functions, 64 * words)


@pytest.mark.parametrize(("items", "share", "numbers", "words"), LONGS)
def test_bits_of_longs_are_sparks(items, share, numbers, words):
    bloom = BloomFilter.sized(items, share)
    bloom.put(_longs(numbers))
    assert bloom.serialised()[12:].hex() == words


def test_large_filter_is_sparks():
    bloom = BloomFilter.sized(100_000, 0.01)
    bloom.put(_longs(range(0, 100_000, 37)))
    digest = hashlib.sha256(bloom.serialised()).hexdigest()
    assert digest == "a2a930b6850b1104c6ecc37468b987f2dc49e90676c524deb56898b489292e35"


def test_bits_of_texts_are_sparks():
    bloom = BloomFilter.sized(10, 0.01)
    bloom.put(_texts([text.encode() for text in TEXTS]))
    assert bloom.serialised().hex() == "0000000100000007000000025322901024820c5f2c8d02271a0b8c06"


def test_bits_of_high_bytes_are_sparks():
    bloom = BloomFilter.sized(10, 0.01)
    bloom.put(_texts([bytes([255, 128, 127, 1, 200])]))
    assert bloom.serialised().hex() == "00000001000000070000000200004100000208200000010000000800"


@given(HASHES, HASHES)
def test_merged_filters_are_the_filter_of_all(first, second):
    one, other, both = (BloomFilter.sized(40, 0.05) for _ in range(3))
    one.put(_longs(first))
    other.put(_longs(second))
    both.put(_longs([*first, *second]))
    one.merge(other)
    assert one.serialised() == both.serialised()


def test_filters_of_other_sizes_are_not_merged():
    with pytest.raises(ValueError, match="same size"):
        BloomFilter.sized(10, 0.01).merge(BloomFilter.sized(1000, 0.01))


@given(HASHES, st.integers(1, 60))
def test_parsed_filter_contains_what_was_put(numbers, items):
    bloom = BloomFilter.sized(items, 0.1)
    bloom.put(_longs(numbers))
    again = BloomFilter.parsed(bloom.serialised())
    assert again.might_contain(_longs(numbers)).all()
    assert again.serialised() == bloom.serialised()


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 12, bytes.fromhex("000000020000000700000001") + b"\0" * 8, b"\1" * 9]
)
def test_what_is_no_filter_is_refused(content):
    with pytest.raises(ValueError, match=r"Bloom|buffer|bytes"):
        BloomFilter.parsed(content)


@given(st.lists(st.tuples(HASHES, st.integers(1, 50)), min_size=1, max_size=6), HASHES)
def test_column_answers_as_each_filter_does(filters, probes):
    blooms = [BloomFilter.sized(items, 0.1) for _, items in filters]
    for bloom, (numbers, _) in zip(blooms, filters, strict=True):
        bloom.put(_longs(numbers))
    column = BloomColumn(pa.array([bloom.serialised() for bloom in blooms], pa.large_binary()))
    items = _longs(probes)
    assert column.might_contain_any(items).tolist() == [
        bool(bloom.might_contain(items).any()) for bloom in blooms
    ]
    assert column.might_contain_all(items).tolist() == [
        bool(bloom.might_contain(items).all()) for bloom in blooms
    ]


def test_column_keeps_what_it_cannot_read():
    empty = BloomFilter.sized(10, 0.01).serialised()
    damaged = [None, b"", b"nonsense", empty[:-1], b"\0\0\0\2" + empty[4:], empty + b"\0"]
    column = BloomColumn(pa.array([empty, *damaged], pa.large_binary()))
    assert column.might_contain_any(_longs([1])).tolist() == [False, *[True] * len(damaged)]
    assert column.might_contain_all(_longs([1])).tolist() == [False, *[True] * len(damaged)]


def _longs(numbers):
    return ItemHashes.of_longs(np.array(list(numbers), dtype=np.int64))


def _texts(texts):
    return ItemHashes.of_bytes(pa.array(texts, pa.large_binary()))

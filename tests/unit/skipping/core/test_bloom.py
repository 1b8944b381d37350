"""Bloom filters against bytes that Spark 4.3's `sketch.BloomFilter` wrote (version V1)."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.skipping.core.hashes import BloomColumn, BloomFilter, ItemHashes

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

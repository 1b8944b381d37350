"""Blooms: Java's stream both ways, and filters of values as the store holds them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.xskipperfiles import (
    OLD_BLOOM,
    bloom_of_longs,
    index_of,
    java_bloom,
    java_class,
    java_object,
)

from snaploom.errors import IndexNotPossible
from snaploom.plugins.xskipper.javastream import StreamInvalid, read_bloom, write_bloom
from snaploom.skipping.core.hashes import BloomFilter, ItemHashes
from snaploom.skipping.indexes.base import Feed
from snaploom.skipping.indexes.bloomfilter import BLOOM_FILTER


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(1, 400), st.integers(1, 1500), st.sampled_from([OLD_BLOOM, "other.Class"]))
def test_stream_is_read_however_its_blocks_are_cut(words: int, block: int, name: str) -> None:
    serialised = np.array([1, 3, words], ">i4").tobytes() + bytes(range(8)) * words
    assert read_bloom(java_bloom(serialised, name, block)) == serialised


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(1, 400))
def test_stream_survives_the_round_trip(words: int) -> None:
    serialised = np.array([1, 3, words], ">i4").tobytes() + bytes(range(8)) * words
    assert read_bloom(write_bloom(serialised)) == serialised


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 2000))
def test_cut_stream_is_refused(length: int) -> None:
    data = write_bloom(bloom_of_longs([1], items=200))
    with pytest.raises(StreamInvalid):
        read_bloom(data[: min(length, len(data) - 1)])


@settings(deadline=None, max_examples=examples(60))
@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    for data in (noise, b"\xac\xed\x00\x05" + noise):
        with pytest.raises(StreamInvalid):
            read_bloom(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (java_bloom(np.array([2, 3, 1], ">i4").tobytes() + bytes(8)), "version 2"),
        (java_bloom(np.array([1, 3, 2], ">i4").tobytes() + bytes(8)), "length"),
        (java_bloom(np.array([1, 0, 1], ">i4").tobytes() + bytes(8)), "length"),
        (java_object(java_class("some.Thing"), b""), "some.Thing is no bloom filter"),
    ],
)
def test_what_is_no_filter_of_version_1_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(StreamInvalid, match=why):
        read_bloom(data)


@pytest.mark.parametrize("data_type", ["tinyint", "int", "bigint"])
def test_filter_of_values_holds_integers_widened(data_type: str) -> None:
    definition = index_of("i1", "BLOOM_FILTER", "k", data_type, items="VALUES", ndv="100")
    BLOOM_FILTER.check(definition)
    assert BLOOM_FILTER.feed(definition) is Feed.VALUES
    types = {"tinyint": pa.int8(), "int": pa.int32(), "bigint": pa.int64()}
    builder = BLOOM_FILTER.builder(definition)
    builder.add([pa.array([1, None, -2, 1], types[data_type])])
    other = BLOOM_FILTER.builder(definition)
    other.add([pa.array([7], types[data_type])])
    builder.merge(other.partial())
    assert builder.finish()["words"] == bloom_of_longs([1, -2, 7], items=100)


def test_filter_of_values_holds_text_as_it_is() -> None:
    definition = index_of("i1", "BLOOM_FILTER", "k", "string", items="VALUES", ndv="50")
    texts = pa.array([b"", b"a", "Grüße 🎉".encode()], pa.large_binary())
    builder = BLOOM_FILTER.builder(definition)
    builder.add([texts])
    expected = BloomFilter.sized(50, 0.01)
    expected.put(ItemHashes.of_bytes(texts))
    assert builder.finish()["words"] == expected.serialised()


@pytest.mark.parametrize(("items", "data_type"), [("VALUES", "date"), ("BOTH", "int")])
def test_filter_of_other_items_is_refused(items: str, data_type: str) -> None:
    with pytest.raises(IndexNotPossible):
        BLOOM_FILTER.check(index_of("i1", "BLOOM_FILTER", "k", data_type, items=items))

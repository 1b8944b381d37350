"""Hashes against values measured on Spark 4.3 (`SELECT xxhash64(...)`, `sketch.BloomFilter`)."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from snaploom.skipping.core.hashes import ItemHashes, murmur3_bytes, murmur3_longs, xxhash64

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
    assert xxhash64(value, data_type) == expected


def test_hash_of_a_value_of_another_type_is_refused():
    with pytest.raises(ValueError, match="is no bigint"):
        xxhash64(b"5", "bigint")


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

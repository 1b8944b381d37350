"""Hashes of columns, against those of single values, which are measured ones of Spark."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snaploom.skipping.core.columnhashes import is_hashable, xxhash64_of
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.terms import Value, arrow_type

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


def hashed(values: list[Value | None], data_type: str) -> None:
    found = xxhash64_of(pa.array(values, arrow_type(data_type)), data_type)
    expected = [None if value is None else xxhash64(value, data_type) for value in values]
    assert found.to_pylist() == expected


@pytest.mark.parametrize("data_type", NUMBERS)
def test_numbers_are_hashed_as_one_by_one(data_type: str) -> None:
    @settings(deadline=None)
    @given(st.lists(st.none() | NUMBERS[data_type]))
    def check(values: list[Value | None]) -> None:
        hashed(values, data_type)

    check()


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=200)))
def test_texts_are_hashed_as_one_by_one(values: list[Value | None]) -> None:
    hashed(values, "string")


@pytest.mark.parametrize("count", [1, 16, 40])
def test_long_texts_are_hashed_as_one_by_one(count: int) -> None:
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

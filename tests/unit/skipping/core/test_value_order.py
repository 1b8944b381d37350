import math
from bisect import bisect_left, bisect_right
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.skipping.skippingcases import TYPES, values

from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.core.valueorder import key_of, keys_of, ranks, sorted_keys

TEXT = st.binary(max_size=3) | st.binary(max_size=12).map(lambda text: b"customer-" + text)


@pytest.mark.parametrize("data_type", TYPES)
def test_keys_of_arrays_are_the_keys_of_their_values(data_type):
    @given(st.lists(st.none() | values(data_type), min_size=1, max_size=8), st.integers(0, 3))
    def holds(drawn, start):
        array = pa.array(drawn, arrow_type(data_type))[start:]
        keys = keys_of(array, data_type)
        as_list = keys.tolist() if isinstance(keys, np.ndarray) else keys.to_pylist()
        for value, key in zip(array.to_pylist(), as_list, strict=True):
            assert value is None or key == key_of(value, data_type)

    holds()


def test_floats_are_ordered_as_spark_orders_them():
    ordered = [-math.inf, -1.5, -1e-300, 0.0, 1e-300, 1.5, math.inf, math.nan]
    keys = [key_of(value, "double") for value in ordered]
    assert keys == sorted(set(keys))
    assert key_of(-0.0, "double") == key_of(0.0, "double")


@given(st.decimals(places=4, min_value=-(10**30), max_value=10**30), st.decimals(places=4))
def test_long_decimals_are_ordered_by_value(one, other):
    if not other.is_finite() or abs(other) >= 10**30:
        other = Decimal("0.0001")
    keys = [key_of(value, "decimal(38,4)") for value in (one, other)]
    assert (keys[0] < keys[1], keys[0] == keys[1]) == (one < other, one == other)


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ("text", "string"),
        (b"1", "int"),
        (2**63, "bigint"),
        (Decimal("0.001"), "decimal(10,2)"),
        (Decimal(10**9), "decimal(10,2)"),
        (5, "decimal(10,2)"),
        (Decimal(5), "double"),
        (1, "array<int>"),
    ],
)
def test_value_of_another_type_has_no_key(value, data_type):
    with pytest.raises(ValueError, match=r"."):
        key_of(value, data_type)


@given(st.lists(TEXT, max_size=10), st.lists(TEXT, min_size=1, max_size=10))
def test_ranks_of_texts_are_those_of_bisect(literals, texts):
    in_order = sorted_keys(literals, "string")
    keys = pa.array(texts, pa.large_binary())
    assert ranks(in_order, keys, "left").tolist() == [bisect_left(in_order, t) for t in texts]
    assert ranks(in_order, keys, "right").tolist() == [bisect_right(in_order, t) for t in texts]

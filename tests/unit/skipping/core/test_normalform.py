import math
from bisect import bisect_left, bisect_right
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.skippingcases import TYPES, Case, Row, cases, is_true, values

from snaploom.skipping.core.definition import arrow_type, column_term
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Constant,
    Contains,
    In,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Or,
    StartsWith,
    Unknown,
    conjuncts,
    normal_form,
)
from snaploom.skipping.core.valueorder import key_of, keys_of, ranks, sorted_keys

A = column_term(("a",), "int")
S = column_term(("s",), "string")
LESS = Comparison(A, Operator.LT, 3)
EQUAL = Comparison(A, Operator.EQ, 7)


@settings(max_examples=examples(150), deadline=None, database=None)
@given(cases("MIN_MAX", ("int", "double", "string")))
def test_normal_form_is_true_wherever_the_condition_is(case: Case):
    normal = normal_form(case.predicate)
    for row in (row for rows in case.files for row in rows):
        if is_true(case, row):
            # What is not understood may be TRUE: the form is asked with it so.
            assert is_true(Case(case.terms, (), (), normal), Row(row.values, True))


@settings(max_examples=examples(150), deadline=None, database=None)
@given(cases("MIN_MAX", ("int", "double", "string")))
def test_normal_form_has_no_not_and_is_its_own_normal_form(case: Case):
    normal = normal_form(case.predicate)
    assert "Not(" not in repr(normal)
    assert normal_form(normal) == normal


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Not(LESS), Comparison(A, Operator.GE, 3)),
        (Not(And((LESS, EQUAL))), Or((Not(LESS), Not(EQUAL)))),
        (Not(Or((LESS, Not(EQUAL)))), And((Not(LESS), EQUAL))),
        (And((LESS, And((EQUAL, LESS)))), And((LESS, EQUAL))),
        (And((LESS, Constant(True))), LESS),
        (Or((LESS, Constant(False))), LESS),
        (And((LESS, Constant(False))), Constant(False)),
        (Not(Constant(False)), Constant(True)),
        (In(A, ()), Constant(False)),
        (In(A, (3,), is_negated=True), Comparison(A, Operator.NE, 3)),
        (Not(In(A, (3, 4))), In(A, (3, 4), is_negated=True)),
        (Not(IsNull(A)), IsNotNull(A)),
        (StartsWith(S, b""), IsNotNull(S)),
        (Not(StartsWith(S, b"")), Constant(False)),
    ],
)
def test_normal_form_of_small_conditions(predicate, expected):
    assert normal_form(predicate) == normal_form(expected)


def test_what_has_no_negation_becomes_unknown_but_no_null():
    not_null, unknown = conjuncts(normal_form(Not(Contains(S, b"x"))))
    assert not_null == IsNotNull(S)
    assert isinstance(unknown, Unknown)


@pytest.mark.parametrize("kind", [And, Or])
def test_chains_of_thousands_are_flattened(kind):
    leaves = [Comparison(A, Operator.EQ, number) for number in range(20_000)]
    chain = reduce(lambda left, right: kind((left, right)), leaves)
    assert normal_form(chain) == kind(tuple(leaves))
    opposite = normal_form(Not(chain))
    assert len(opposite.parts) == len(leaves)


def test_what_is_nested_too_deeply_is_unknown():
    nested = LESS
    for level in range(20_000):
        nested = (And, Or)[level % 2]((nested, Comparison(A, Operator.EQ, level)))
    assert isinstance(normal_form(nested), Unknown)


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

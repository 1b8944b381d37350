from functools import reduce

import pytest
from hypothesis import given, settings
from support.runner.quick import examples
from support.skipping.skippingcases import Case, Row, cases, is_true

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
from snaploom.skipping.core.terms import column_term

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

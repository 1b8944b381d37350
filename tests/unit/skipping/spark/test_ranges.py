"""Ranges of columns against brute force."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.skipping.catalystrows import ORDER, SYMBOLS, holds

from snaploom.skipping.core.definition import column_term
from snaploom.skipping.core.predicates import And, Operator, Unknown
from snaploom.skipping.spark.optimizer.translation.conditions import Surroundings, implied
from snaploom.skipping.spark.relations.expressions import Columns, parse

TYPES = {"dt": "date", "l": "bigint", "dec": "decimal(38,10)", "small": "decimal(4,2)"}
COLUMNS = Columns(tuple(column_term((name,), data_type) for name, data_type in TYPES.items()))
AROUND = Surroundings(COLUMNS, lambda *_: Unknown(), lambda *_: Unknown())
OPERATORS = sorted(SYMBOLS)


def column(name: str) -> list[str]:
    return ["col", name, TYPES[name]]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("year", [1969, 1970, 1971])
def test_year_is_a_range_of_days(operator: Operator, year: int) -> None:
    needs = And(implied(parse(["Year", {}, column("dt")]), operator, year, AROUND, "int"))
    for days in range(-800, 800, 7):
        actual = (date(1970, 1, 1) + timedelta(days=days)).year
        if ORDER[SYMBOLS[operator]](actual, year):
            assert holds(needs, {"dt": days}) is True
    assert not all(holds(needs, {"dt": days}) for days in range(-2000, 2000, 50))


def check_cast(name: str, value: int | Decimal, operator: Operator, literal: float) -> None:
    cast = parse(["Cast", {"dataType": "double"}, column(name)])
    needs = And(implied(cast, operator, literal, AROUND, "double"))
    if ORDER[SYMBOLS[operator]](float(value), literal):
        assert holds(needs, {name: value}) is True


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(OPERATORS), st.integers(-2, 2))
def test_bigint_as_double_stays_in_its_range(value: int, operator: Operator, distance: int) -> None:
    check_cast("l", value, operator, float(value + distance))


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-1e20, max_value=1e20),
    st.sampled_from(OPERATORS),
    st.floats(allow_nan=False),
)
def test_decimal_as_double_stays_in_its_range(value, operator, other):
    for literal in (float(value), other):
        check_cast("dec", value, operator, literal)


@pytest.mark.parametrize("literal", [99.99, 99.995, 100.0, -99.99, -1e300, 1e300, 0.0, 5e-324])
@pytest.mark.parametrize("operator", OPERATORS)
def test_bounds_at_the_end_of_a_decimal_keep_what_they_must(literal, operator):
    for value in (Decimal("-99.99"), Decimal("0.00"), Decimal("99.98"), Decimal("99.99")):
        check_cast("small", value, operator, literal)

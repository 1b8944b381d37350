from decimal import Decimal

import pytest

from snaploom.skipping.core.definition import column_term
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Contains,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Residue,
    StartsWith,
    Unknown,
    predicate_text,
    value_text,
)

A = column_term(("a",), "int")
S = column_term(("s", "t"), "string")
EQUAL = Comparison(A, Operator.EQ, 7)


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (True, "boolean", "true"),
        (-5, "bigint", "-5"),
        (Decimal("1.50"), "decimal(10,2)", "1.50"),
        (0, "date", "DATE '1970-01-01'"),
        (-719162, "date", "DATE '0001-01-01'"),
        (-5_000_000, "date", "DATE -5000000"),
        (1_500_000, "timestamp", "TIMESTAMP '1970-01-01 00:00:01.500000Z'"),
        (-1_000_000, "timestamp_ntz", "TIMESTAMP_NTZ '1969-12-31 23:59:59'"),
        (b"it's", "string", "'it''s'"),
        (b"\xff\x00", "binary", "X'ff00'"),
        (b"\xff", "string", "'\\xff'"),
        (b"x" * 100, "string", "'" + "x" * 60 + "...'"),
    ],
)
def test_value_reads_as_its_type(value, data_type, expected):
    assert value_text(value, data_type) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Comparison(A, Operator.GE, 3), "a >= 3"),
        (In(A, tuple(range(9)), is_negated=True), "a NOT IN (0, 1, 2, 3, 4, ... 9 values)"),
        (Residue(S, 5, 2, 1), "pmod(s.t, 5) = 2"),
        (Residue(S, 5, 2, 3, 0, 9), "pmod(s.t - 2, 5) < 3"),
        (StartsWith(S, b"p"), "s.t LIKE 'p%'"),
        (Contains(S, b"p"), "s.t LIKE '%p%'"),
        (And((EQUAL, Or((EQUAL, IsNull(A))))), "a = 7 AND (a = 7 OR a IS NULL)"),
        (Not(EQUAL), "NOT (a = 7)"),
        (Unknown("f(a)"), "f(a)"),
    ],
)
def test_condition_reads_as_sql(predicate, expected):
    assert predicate_text(predicate) == expected

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.skipping.skippingcases import Row, file_table, skipping_definition

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition, column_term
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Contains,
    In,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Or,
    Unknown,
)
from snaploom.skipping.indexes import base
from snaploom.skipping.indexes.base import evaluate
from snaploom.skipping.indexes.minmax import MIN_MAX

A = column_term(("a",), "int")
B = column_term(("b",), "int")
S = column_term(("s",), "string")
ON_A = IndexDefinition("i1", "MIN_MAX", (A,))
ON_B = IndexDefinition("i2", "VALUE_SET", (B,))
ON_S = IndexDefinition("i3", "BLOOM_FILTER", (S,))
INDEXES = (ON_A, ON_B, ON_S)
FILES = [
    [(1, 1, b"x"), (5, 9, b"y")],
    [(6, 2, b"z"), (9, 2, None)],
    [(None, None, None)],
    [],
]
SMALL = Comparison(A, Operator.LE, 5)


def test_files_are_dropped_and_the_report_names_the_index():
    result = _evaluate(And((SMALL, Comparison(B, Operator.EQ, 5))))
    assert result.keep.tolist() == [False, False, False, False]
    first, second = result.clauses
    assert (first.text, first.served_by, first.dropped) == ("a <= 5", ("MIN_MAX(a)",), 3)
    assert (second.text, second.served_by, second.dropped) == ("b = 5", ("VALUE_SET(b)",), 4)
    assert result.dropped == 4


def test_or_reports_its_parts():
    (clause,) = _evaluate(Or((SMALL, Comparison(B, Operator.EQ, 2)))).clauses
    assert clause.dropped == 2
    assert [part.dropped for part in clause.parts] == [3, 3]
    assert clause.served_by == ("MIN_MAX(a)", "VALUE_SET(b)")


def test_indexes_on_one_column_are_all_asked():
    both = (ON_A, IndexDefinition("i2", "VALUE_SET", (A,)))
    result = _evaluate(Comparison(A, Operator.EQ, 3), both)
    assert result.keep.tolist() == [False] * 4
    assert result.clauses[0].served_by == ("MIN_MAX(a)", "VALUE_SET(a)")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (IsNull(A), [False, False, True, False]),
        (IsNotNull(A), [True, True, False, False]),
        (IsNull(S), [False, True, True, False]),
        (Not(IsNull(A)), [True, True, False, False]),
    ],
)
def test_null_counts_serve_is_null(predicate, expected):
    assert _evaluate(predicate).keep.tolist() == expected


@pytest.mark.parametrize(
    ("predicate", "why"),
    [
        (Comparison(column_term(("c",), "int"), Operator.EQ, 1), "no index on c"),
        (Comparison(column_term(("a",), "bigint"), Operator.EQ, 1), "read as bigint and indexed"),
        (Comparison(S, Operator.LT, b"x"), "a range needs MIN_MAX"),
        (Contains(S, b"x"), "needs TOKENS"),
        (Unknown("f(a)", "no function is understood"), "no function is understood"),
        (Comparison(A, Operator.EQ, b"1"), "failed with ValueError"),
    ],
)
def test_what_no_index_serves_keeps_all_and_gives_a_reason(predicate, why):
    result = _evaluate(predicate)
    (clause,) = result.clauses
    assert why in " ".join(clause.unserved)
    assert clause.served_by == ()
    assert clause.dropped == 0


def test_disabled_index_is_not_used():
    result = _evaluate(SMALL, (replace(ON_A, enabled=False),))
    assert result.keep.all()
    assert result.clauses[0].unserved == ("MIN_MAX(a) is disabled",)


def test_disabled_skipping_index_is_not_used():
    definition = replace(skipping_definition(ON_A), enabled=False)
    files = file_table((ON_A,), (A,), [[Row((9,), None)]])
    assert evaluate(SMALL, definition, files).keep.all()


def test_index_without_columns_yet_keeps_all():
    later = replace(ON_A, index_id="i9")
    files = file_table((ON_A,), (A,), [[Row((9,), None)]])
    result = evaluate(SMALL, skipping_definition(later), files)
    assert result.keep.all()
    assert "not built yet" in result.clauses[0].unserved[0]


def test_row_without_data_of_an_index_is_kept():
    table = FileTable.of(
        pa.table(
            {
                "i1.values": pa.array([None, 2], pa.int64()),
                "i1.nulls": pa.array([None, 0], pa.int64()),
                "i1.min": pa.array([9, 9], pa.int32()),
                "i1.max": pa.array([9, 9], pa.int32()),
            }
        )
    )
    definition = skipping_definition(ON_A)
    assert evaluate(SMALL, definition, table).keep.tolist() == [True, False]
    assert evaluate(IsNull(A), definition, table).keep.tolist() == [True, False]
    assert evaluate(IsNotNull(A), definition, table).keep.tolist() == [True, True]


class _Broken:
    """A foreign type whose answer is wrong in some way."""

    def __init__(self, answer):
        self._answer = answer

    def may_match(self, definition, files, leaf):
        return self._answer()

    def unserved(self, definition, leaf):
        return "nothing"


def _divide():
    return 1 // 0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_divide, "ZeroDivisionError"),
        (lambda: np.zeros(3, dtype=np.bool_), "did not answer for every file"),
        (lambda: np.zeros(4, dtype=np.int64), "did not answer for every file"),
        (lambda: [False] * 4, "AttributeError"),
    ],
)
def test_foreign_type_that_fails_drops_nothing(monkeypatch, answer, why):
    monkeypatch.setattr(base, "index_type", lambda _: _Broken(answer))
    result = _evaluate(Comparison(B, Operator.GE, 0))
    assert result.keep.all()
    assert why in result.clauses[0].unserved[0]


def test_type_that_is_not_registered_drops_nothing():
    files = file_table((ON_A,), (A,), [[Row((9,), None)]])
    result = evaluate(SMALL, skipping_definition(replace(ON_A, type="NOWHERE")), files)
    assert result.keep.all()
    assert "there is no index type NOWHERE" in result.clauses[0].unserved[0]


def test_list_of_values_is_tested_in_the_gaps():
    files = [[Row((lo, lo, b""), None), Row((lo + 1, lo, b""), None)] for lo in range(0, 3000, 3)]
    table = file_table((ON_A,), (A, B, S), files)
    gaps = In(A, tuple(range(2, 3000, 3)))
    assert not evaluate(gaps, skipping_definition(ON_A), table).keep.any()


def test_no_files_is_no_trouble():
    files = file_table(INDEXES, (A, B, S), [])
    result = evaluate(And((SMALL, IsNull(S))), skipping_definition(*INDEXES), files)
    assert result.keep.tolist() == []


def test_check_refuses_what_is_no_term():
    with pytest.raises(IndexNotPossible, match="kept about 1 column"):
        MIN_MAX.check(replace(ON_A, terms=(A, B)))


def _evaluate(predicate, indexes=INDEXES):
    rows = [[Row(values, None) for values in contents] for contents in FILES]
    files = file_table(indexes, (A, B, S), rows)
    return evaluate(predicate, skipping_definition(*indexes), files)

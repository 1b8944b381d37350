"""The traps of skipping that are decided without Spark, each by its number, and what is tight."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from support.skipping.skippingcases import TYPES, Row, built, file_table, skipping_definition

from snaploom.skipping.core.definition import IndexDefinition, column_term
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Or,
    Residue,
    StartsWith,
    Unknown,
)
from snaploom.skipping.indexes.base import evaluate

NAN = math.nan
OP = Operator


def kept(type_name, data_type, files, predicate, parameters=()):
    """For each file (its values of column a), whether it is kept."""
    term = column_term(("a",), data_type)
    index = IndexDefinition("i1", type_name, (term,), parameters)
    rows = [[Row((value,), None) for value in values] for values in files]
    table = file_table((index,), (term,), rows)
    return evaluate(predicate(term), skipping_definition(index), table).keep.tolist()


def compared(operator, value):
    return lambda term: Comparison(term, operator, value)


@pytest.mark.parametrize("type_name", ["MIN_MAX", "VALUE_SET"])
def test_trap_1_not_equal_drops_only_files_of_that_one_value(type_name):
    files = [[3, 3, None], [3, 4], [2, 3], [1, 5], [4]]
    assert kept(type_name, "int", files, compared(OP.NE, 3)) == [False, True, True, True, True]


@pytest.mark.parametrize("type_name", ["MIN_MAX", "VALUE_SET"])
@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        (OP.GT, 5.0, [True, True, False]),
        (OP.EQ, NAN, [True, True, False]),
        (OP.LT, NAN, [True, False, True]),
        (OP.GT, NAN, [False, False, False]),
        (OP.LE, 1.0, [True, False, True]),
    ],
)
def test_trap_2_nan_is_the_greatest_value(type_name, operator, value, expected):
    files = [[1.0, NAN], [NAN, NAN], [0.5, 1.0]]
    assert kept(type_name, "double", files, compared(operator, value)) == expected


def test_trap_3_texts_are_ordered_by_their_bytes():
    # As UTF-16 the emoji (D83C ...) comes before U+FFFF; as UTF-8 it comes after.
    files = [["🎉".encode()], ["\uffff".encode()]]
    assert kept("MIN_MAX", "string", files, compared(OP.GT, "\uffff".encode())) == [True, False]


@pytest.mark.parametrize("type_name", ["MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION"])
@pytest.mark.parametrize("data_type", ["float", "double"])
@pytest.mark.parametrize(("stored", "asked"), [(-0.0, 0.0), (0.0, -0.0)])
def test_trap_4_zeros_are_one_value(type_name, data_type, stored, asked):
    assert kept(type_name, data_type, [[stored], [1.5]], compared(OP.EQ, asked)) == [True, False]


@pytest.mark.parametrize("data_type", ["date", "timestamp", "bigint"])
@pytest.mark.parametrize(
    ("type_name", "parameters"),
    [
        ("MIN_MAX", ()),
        ("VALUE_SET", ()),
        ("BLOOM_FILTER", (("fpp", "0.0000001"),)),
        ("PARTITION", ()),
    ],
)
def test_trap_9_lists_are_tested_in_their_gaps(type_name, parameters, data_type):
    values = tuple(range(0, 1000, 10))
    answer = kept(
        type_name, data_type, [[55], [990], [-1], [13]], lambda a: In(a, values), parameters
    )
    assert answer == [False, True, False, False]


def test_trap_9_list_of_nothing_matches_nothing():
    assert kept("MIN_MAX", "int", [[1], [None]], lambda term: In(term, ())) == [False, False]


@pytest.mark.parametrize(
    ("type_name", "parameters"),
    [
        ("VALUE_SET", (("limit", "2"),)),
        ("BLOOM_FILTER", (("ndv", "2"),)),
        ("PREFIX", (("limit", "2"),)),
        ("PARTITION", ()),
    ],
)
def test_trap_10_what_is_over_a_limit_is_unknown(type_name, parameters):
    texts = [b"aa", b"bb", b"cc"]
    answer = kept(type_name, "string", [texts, texts[:1]], compared(OP.EQ, b"zz"), parameters)
    assert answer == [True, False]


@pytest.mark.parametrize("uncovered", [Unknown("f(a)"), IsNull(column_term(("b",), "int"))])
def test_trap_12_or_with_an_uncovered_side_keeps_all(uncovered):
    def either(term):
        return Or((Comparison(term, OP.EQ, 9), uncovered))

    assert kept("MIN_MAX", "int", [[1], [2]], either) == [True, True]


def test_trap_13_not_is_pushed_into_the_leaves():
    files = [[1, 9], [1, 1], [9]]
    small = compared(OP.LT, 5)
    assert kept("MIN_MAX", "int", files, lambda term: Not(small(term))) == [True, False, True]


@pytest.mark.parametrize("negated", [Contains, EndsWith])
def test_trap_13_what_may_match_proves_nothing_when_negated(negated):
    files = [[b"abc", b"xyz"], [None]]
    answer = kept("TOKENS", "string", files, lambda term: Not(negated(term, b"abc")))
    assert answer == [True, False]


def test_trap_15_hashes_differ_by_type():
    for data_type in ("int", "bigint", "smallint", "date", "timestamp"):
        assert kept("BLOOM_FILTER", data_type, [[5], [6]], compared(OP.EQ, 5)) == [True, False]


def test_trap_15_term_of_another_type_is_not_served():
    other = column_term(("a",), "bigint")
    assert kept("BLOOM_FILTER", "int", [[6]], lambda _: Comparison(other, OP.EQ, 5)) == [True]


@pytest.mark.parametrize("data_type", TYPES)
def test_trap_17_files_without_values_are_dropped_but_for_is_null(data_type):
    files = [[None, None], []]
    literal = {"string": b"a", "binary": b"a", "boolean": True, "float": 1.5, "double": 1.5}
    value = literal.get(data_type, Decimal(1) if "decimal" in data_type else 1)
    for type_name in ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION"):
        assert kept(type_name, data_type, files, compared(OP.EQ, value)) == [False, False]
        assert kept(type_name, data_type, files, IsNull) == [True, False]
        assert kept(type_name, data_type, files, IsNotNull) == [False, False]


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (lambda a: StartsWith(a, b"ab"), [True, False, True]),
        (lambda a: StartsWith(a, b"ab", is_negated=True), [False, True, True]),
        (lambda a: Comparison(a, OP.GE, b"b"), [False, True, True]),
        (lambda a: In(a, (b"a", b"abz")), [False, False, True]),
        (lambda a: StartsWith(a, b"\xff"), [False, False, False]),
    ],
)
@pytest.mark.parametrize("type_name", ["MIN_MAX", "PREFIX"])
def test_texts_are_dropped_tightly(type_name, leaf, expected):
    files = [[b"abc", b"abd"], [b"b", b"bb"], [b"a", b"zz", b"abz"]]
    assert kept(type_name, "string", files, leaf) == expected


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (lambda a: Contains(a, b"lo wo"), [True, False]),
        (lambda a: Contains(a, b"lo"), [True, True]),
        (lambda a: EndsWith(a, b"world"), [True, False]),
        (lambda a: StartsWith(a, b"good"), [False, True]),
        (lambda a: Comparison(a, OP.EQ, b"hello"), [True, False]),
        (lambda a: In(a, (b"farewell", b"goodness")), [False, False]),
        (lambda a: Contains(a, "Grüße".encode()), [False, True]),
    ],
)
def test_pieces_of_text_are_dropped_tightly(leaf, expected):
    files = [[b"hello world"], [b"goodbye", "viele Grüße".encode()]]
    assert kept("TOKENS", "string", files, leaf, (("fpp", "0.0001"),)) == expected


def test_not_in_drops_files_whose_whole_range_is_listed():
    files = [[1, 2, 3], [1, 4], [2]]
    answer = kept("MIN_MAX", "int", files, lambda term: In(term, (3, 1, 2), is_negated=True))
    assert answer == [False, True, False]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (None, None, [False, True, False, True, True, True]),
        (0, None, [False, True, False, True, False, True]),
        (None, -1, [False, False, False, False, True, True]),
    ],
)
def test_remainder_drops_files_between_two_fitting_numbers(low, high, expected):
    files = [[3, 6], [2], [8, 11], [10, 13], [-9, -8], [-(2**63), 2**63 - 1]]
    residue = (10, 2, 1, low, high)
    assert kept("MIN_MAX", "bigint", files, lambda term: Residue(term, *residue)) == expected


def test_remainder_drops_files_of_which_no_value_has_it():
    files = [[3, 14, -6], [4, 15, -5], [-8, 5], [-(2**63), 0], [2**63 - 1]]
    answer = kept("VALUE_SET", "bigint", files, lambda term: Residue(term, 10, 2, 2))
    assert answer == [True, False, True, True, False]


def test_box_drops_files_outside_of_it():
    terms = column_term(("lat",), "double"), column_term(("lon",), "double")
    index = IndexDefinition("i1", "GEO_BOX", terms)
    places = [[(48.1, 11.6), (48.3, 11.5)], [(52.5, 13.4)], [(48.2, 16.4)]]
    table = file_table((index,), terms, [[Row(place, None) for place in file] for file in places])
    munich = And(
        (
            *(Comparison(terms[0], OP.GE, 48.0), Comparison(terms[0], OP.LE, 49.0)),
            *(Comparison(terms[1], OP.GE, 11.0), Comparison(terms[1], OP.LE, 12.0)),
        )
    )
    assert evaluate(munich, skipping_definition(index), table).keep.tolist() == [True, False, False]


def test_long_texts_are_bounded_by_what_is_cut():
    text = "é".encode() * 600
    index = IndexDefinition("i1", "MIN_MAX", (column_term(("a",), "string"),))
    row = built(index, [[text]])
    assert (row["min"], row["max"]) == (text[:1024], None)
    assert built(index, [[b"x" + text]])["min"] == (b"x" + text)[:1023]
    answer = kept("MIN_MAX", "string", [[text], [b"a"]], compared(OP.GT, b"z"))
    assert answer == [True, False]
    assert kept("MIN_MAX", "string", [[text]], compared(OP.LT, b"z")) == [False]


def test_bloom_of_fixed_size_is_of_that_size():
    index = IndexDefinition("i1", "BLOOM_FILTER", (column_term(("a",), "int"),))
    fixed = replace(index, parameters=(("ndv", "100000"),))
    assert len(built(fixed, [[1]])["words"]) == 12 + 8 * 14_977
    assert len(built(index, [[1]])["words"]) == 12 + 8 * 10

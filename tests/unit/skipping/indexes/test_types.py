"""What each type refuses, what it takes from footers, and its reason when it cannot answer."""

from decimal import Decimal
from importlib import metadata
from typing import NamedTuple

import pyarrow as pa
import pytest
from support.skipping.skippingcases import NUMBERS, TEXTS, TYPES

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import (
    IndexDefinition,
    arrow_type,
    column_term,
    expression_term,
)
from snaploom.skipping.core.predicates import (
    Comparison,
    Contains,
    EndsWith,
    In,
    Operator,
    Residue,
    StartsWith,
)
from snaploom.skipping.indexes import base
from snaploom.skipping.indexes.base import FooterColumn, index_type, registered_types

NAMES = ("BLOOM_FILTER", "GEO_BOX", "MIN_MAX", "PARTITION", "PREFIX", "TOKENS", "VALUE_SET")


def define(type_name, *data_types, **parameters):
    terms = tuple(column_term((f"c{at}",), each) for at, each in enumerate(data_types))
    return IndexDefinition("i1", type_name, terms, tuple(sorted(parameters.items())))


def test_all_types_are_registered():
    assert set(NAMES) <= set(registered_types())
    assert [index_type(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("type_name", ["MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION"])
def test_types_take_every_value_that_can_be_kept(type_name, data_type):
    index_type(type_name).check(define(type_name, data_type))


@pytest.mark.parametrize("data_type", ["array<int>", "map<int,int>", "struct<a:int>", "char(3)"])
@pytest.mark.parametrize("type_name", ["MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION"])
def test_types_refuse_what_cannot_be_kept(type_name, data_type):
    with pytest.raises(IndexNotPossible, match="cannot be kept"):
        index_type(type_name).check(define(type_name, data_type))


@pytest.mark.parametrize(
    "definition",
    [
        define("MIN_MAX"),
        define("MIN_MAX", "int", "int"),
        define("MIN_MAX", "int", limit="5"),
        define("VALUE_SET", "int", limit="none"),
        define("VALUE_SET", "int", limit="0"),
        define("VALUE_SET", "int", limit="-1"),
        define("BLOOM_FILTER", "int", fpp="1"),
        define("BLOOM_FILTER", "int", fpp="nan"),
        define("BLOOM_FILTER", "int", fpp="x"),
        define("BLOOM_FILTER", "int", ndv="1e6"),
        define("PREFIX", "int"),
        define("PREFIX", "string", length="0"),
        define("TOKENS", "int"),
        define("TOKENS", "string", n="8"),
        define("GEO_BOX", "double"),
        define("GEO_BOX", "double", "string"),
        IndexDefinition("i1", "PARTITION", (column_term(("a", "b"), "int"),)),
        IndexDefinition("i1", "PARTITION", (expression_term({"f": 1}, "int", "f(a)"),)),
    ],
    ids=lambda definition: f"{definition.label} {dict(definition.parameters)}",
)
def test_declarations_that_are_not_possible_are_refused(definition):
    with pytest.raises(IndexNotPossible) as refused:
        index_type(definition.type).check(definition)
    assert refused.value.hint


def test_type_that_is_not_registered_is_refused():
    with pytest.raises(IndexNotPossible, match="no index type MINMAX") as refused:
        index_type("MINMAX")
    assert "MIN_MAX" in str(refused.value.expected)


class Facts(NamedTuple):
    """What the footer of one file proves about a term."""

    values: int | None
    nulls: int | None
    minimum: object
    maximum: object


def proved(definition, *terms):
    """What footers prove, a row for each file, None where nothing is."""
    columns = []
    for term, facts in zip(definition.terms, terms, strict=True):
        kept_as = arrow_type(term.data_type)
        kinds = (pa.int64(), pa.int64(), kept_as, kept_as)
        parts = zip(zip(*facts, strict=True), kinds, strict=True)
        columns.append(FooterColumn(*(pa.array(part, kind) for part, kind in parts)))
    found = index_type(definition.type).from_footers(definition, columns)
    rows = pa.table(dict(found.fields)).to_pylist()
    return [row if is_proved else None for row, is_proved in zip(rows, found.files, strict=True)]


@pytest.mark.parametrize(
    ("definition", "footer", "row"),
    [
        (define("MIN_MAX", "int"), Facts(5, 1, -3, 9), {"min": -3, "max": 9}),
        (define("MIN_MAX", "int"), Facts(0, 5, None, None), {"min": None, "max": None}),
        (define("MIN_MAX", "int"), Facts(5, 0, None, 9), None),
        (define("MIN_MAX", "double"), Facts(5, 0, -0.0, 1.5), {"min": 0.0, "max": 1.5}),
        (
            define("MIN_MAX", "string"),
            Facts(5, 0, b"a", b"\xff"),
            {"min": b"a", "max": b"\xff"},
        ),
        (define("VALUE_SET", "int"), Facts(0, 5, None, None), {"set": []}),
        (define("VALUE_SET", "int"), Facts(5, 0, 3, 3), {"set": [3]}),
        (define("VALUE_SET", "int"), Facts(5, 0, 3, 4), None),
        (define("PARTITION", "int"), Facts(5, 0, 3, 3), {"value": 3}),
        (define("PARTITION", "int"), Facts(0, 5, None, None), {"value": None}),
        (define("BLOOM_FILTER", "int"), Facts(5, 0, 3, 3), None),
        (define("TOKENS", "string"), Facts(5, 0, b"a", b"a"), None),
        (
            define("PREFIX", "string", length="2"),
            Facts(5, 0, b"abc", b"abd"),
            {"prefixes": [b"ab"]},
        ),
        (define("PREFIX", "string", length="2"), Facts(5, 0, b"a", b"ab"), None),
        (
            define("PREFIX", "string", length="2"),
            Facts(5, 0, b"a", b"a"),
            {"prefixes": [b"a"]},
        ),
        (
            define("MIN_MAX", "decimal(10,2)"),
            Facts(5, 0, Decimal("1.50"), Decimal("2.00")),
            {"min": Decimal("1.50"), "max": Decimal("2.00")},
        ),
    ],
    ids=str,
)
def test_footers_are_taken_where_they_prove_everything(definition, footer, row):
    assert proved(definition, [footer]) == [row]


@pytest.mark.parametrize("type_name", ["BLOOM_FILTER", "TOKENS"])
def test_footer_without_values_gives_an_empty_filter(type_name):
    definition = define(type_name, "string")
    (row,) = proved(definition, [Facts(0, 3, None, None)])
    assert row == {"words": bytes.fromhex("00000001" + "00000007" + "0000000a") + b"\0" * 80}


def test_box_is_taken_from_footers():
    definition = define("GEO_BOX", "double", "double")
    latitudes = [Facts(2, 0, 48.0, 49.0), Facts(2, 0, 48.0, 49.0), Facts(0, 2, None, None)]
    longitudes = [Facts(2, 0, 11.0, 12.0), Facts(1, 0, None, 1.0), Facts(2, 0, 11.0, 12.0)]
    assert proved(definition, latitudes, longitudes) == [
        {"south": 48.0, "north": 49.0, "west": 11.0, "east": 12.0},
        None,
        {"south": None, "north": None, "west": 11.0, "east": 12.0},
    ]


@pytest.mark.parametrize(
    ("type_name", "data_type", "rows"),
    [
        ("MIN_MAX", "int", [{"min": 3, "max": 3}, None, {"min": None, "max": None}, None]),
        ("VALUE_SET", "int", [{"set": [3]}, None, {"set": []}, None]),
        ("PARTITION", "int", [{"value": 3}, None, {"value": None}, None]),
        ("PREFIX", "string", [{"prefixes": [b"a"]}, None, {"prefixes": []}, None]),
    ],
)
def test_each_of_many_files_has_the_row_that_its_footer_proves(type_name, data_type, rows):
    value = 3 if data_type == "int" else b"a"
    footers = [
        Facts(5, 0, value, value),
        Facts(5, 0, None, value),
        Facts(0, 5, None, None),
        Facts(None, None, None, None),
    ]
    assert proved(define(type_name, data_type), footers) == rows


def test_long_bounds_from_footers_are_cut_as_those_of_values_are():
    definition = define("MIN_MAX", "string")
    texts = ["a", "é" * 1000, "z" * 1024, "z" * 1025]
    builders = [index_type("MIN_MAX").builder(definition) for _ in texts]
    for text, builder in zip(texts, builders, strict=True):
        builder.add([pa.array([text.encode()], pa.large_binary())])
    footers = [Facts(1, 0, text.encode(), text.encode()) for text in texts]
    assert proved(definition, footers) == [builder.finish() for builder in builders]


TERM = column_term(("c0",), "string")


@pytest.mark.parametrize(
    ("type_name", "leaf", "hint"),
    [
        ("MIN_MAX", Contains(TERM, b"x"), "TOKENS"),
        ("MIN_MAX", EndsWith(TERM, b"x"), "TOKENS"),
        ("PREFIX", Contains(TERM, b"x"), "TOKENS"),
        ("BLOOM_FILTER", Comparison(TERM, Operator.LT, b"x"), "a range needs MIN_MAX"),
        ("BLOOM_FILTER", Comparison(TERM, Operator.NE, b"x"), "VALUE_SET"),
        ("BLOOM_FILTER", In(TERM, (b"x",), is_negated=True), "VALUE_SET"),
        ("BLOOM_FILTER", Residue(TERM, 5, 2, 1), "MIN_MAX or VALUE_SET"),
        ("BLOOM_FILTER", StartsWith(TERM, b"x"), "PREFIX"),
        ("BLOOM_FILTER", Contains(TERM, b"x"), "TOKENS"),
        ("TOKENS", Contains(TERM, b"x"), "less than 3 bytes"),
        ("TOKENS", Comparison(TERM, Operator.LT, b"x"), "MIN_MAX"),
    ],
)
def test_types_suggest_what_would_serve(type_name, leaf, hint):
    assert hint in index_type(type_name).unserved(define(type_name, "string"), leaf)


@pytest.mark.parametrize("data_type", [*NUMBERS, *TEXTS])
def test_kept_types_are_those_of_the_terms(data_type):
    fields = index_type("MIN_MAX").fields(define("MIN_MAX", data_type))
    assert set(fields) == {"min", "max"}
    assert len(set(fields.values())) == 1


def test_a_registered_type_of_another_version_is_refused_by_what_it_lacks(monkeypatch):
    entry = metadata.EntryPoint("OLD", "types:SimpleNamespace", base.ENTRY_POINTS)
    monkeypatch.setattr(base, "_entries", lambda: {"OLD": entry})
    with pytest.raises(IndexNotPossible, match=r"OLD lacks .*from_footers") as refused:
        index_type("OLD")
    assert refused.value.found == "types:SimpleNamespace"

"""The reference page about skipping agrees with the index types and the code."""

import pytest
from generation.indextypes import ORDER, PARAMETERS, served_table
from support.documentation.pages import DOCS

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition, column_term
from snaploom.skipping.indexes.base import index_type, registered_types
from snaploom.skipping.statements.columns import PROPERTIES
from snaploom.skipping.statements.syntax import parse

PAGE = DOCS / "reference" / "skipping.md"
SHAPES = ("=", "<>", "<", "IN", "NOT IN", "p%", "NOT p%", "%p", "%p%", "NULL")


def of_text(type_name: str, **parameters: str) -> IndexDefinition:
    terms = (column_term(("c",), "string"),)
    return IndexDefinition("i1", type_name, terms, tuple(sorted(parameters.items())))


def served() -> dict[str, tuple[str, ...]]:
    rows = [line.strip("| ").split(" | ") for line in served_table().splitlines()[2:]]
    return {
        row[0].strip("`"): tuple(
            s for s, cell in zip(SHAPES, row[1:], strict=True) if cell == "yes"
        )
        for row in rows
    }


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda each: f"{each.type}-{each.name}")
def test_parameters_are_those_of_the_types(parameter: object) -> None:
    kind, name, default = parameter.type, parameter.name, parameter.default
    usual = default if default and " " not in default else "10"
    index_type(kind).check(of_text(kind, **{name: usual}))
    others = {each.name for each in PARAMETERS if each.type == kind}
    with pytest.raises(IndexNotPossible) as caught:
        index_type(kind).check(of_text(kind, no_such="1"))
    assert set(str(caught.value.expected).split(", ")) == others


def test_types_without_parameters_have_none() -> None:
    assert set(ORDER) == set(registered_types())
    for kind in set(ORDER) - {each.type for each in PARAMETERS} - {"GEO_BOX"}:
        with pytest.raises(IndexNotPossible, match="has no parameter"):
            index_type(kind).check(of_text(kind, no_such="1"))


def test_predicates_that_types_serve_are_listed() -> None:
    found = served()
    assert found["BLOOM_FILTER"] == ("=", "IN", "NULL")
    assert found["TOKENS"] == ("=", "IN", "p%", "%p", "%p%", "NULL")
    assert found["VALUE_SET"] == SHAPES
    assert "%p%" not in found["MIN_MAX"]


def test_every_property_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    assert [name for name in PROPERTIES if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE SKIPPING INDEX IF NOT EXISTS ON a.b.c (x MIN_MAX, (la, lo) GEO_BOX) WHERE p > 1",
        "CREATE SKIPPING INDEX ON t FOR COLUMNS (x VALUE_LIST(5), y BLOOM_FILTER(1024, 3))",
        "CREATE SKIPPING INDEX ON t (price MIN_MAX(key_label = 'prices')) WITH (form = XSKIPPER)",
        "REFRESH SKIPPING INDEX ON parquet.`/a b` FULL",
        "DESC SKIPPING INDEX ON t",
        "ALTER SKIPPING INDEX ON t WITH (enabled = false)",
        "SHOW FLINT INDEXES IN c.d",
    ],
)
def test_statements_of_the_grammar_are_read(statement: str) -> None:
    assert parse(statement, registered_types()) is not None

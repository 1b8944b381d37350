"""Generated pages are those that the code generates."""

import re
from pathlib import Path

import generate
import pytest
from generation.commandline import CODES_OF, EXIT_CODES
from generation.indextypes import ORDER, PARAMETERS, served_table
from support.declared.shop import COMMANDS_OF_LAPTOPS
from support.documentation.examples import run_command
from support.documentation.pages import DOCS, REPOSITORY

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.terms import column_term
from snaploom.skipping.indexes.base import index_type, registered_types
from snaploom.skipping.statements.columns import PROPERTIES
from snaploom.skipping.statements.parser import parse


def test_files_in_the_repository_are_those_of_the_code() -> None:
    assert generate.drift(DOCS) == [], "run `make generate`"


def test_picture_is_what_the_command_draws() -> None:
    drawn = run_command("snaploom graph flights-wide -f examples/flights -o svg", REPOSITORY)
    assert drawn == (DOCS / "images" / "flights.svg").read_text("utf-8")


def test_drift_is_reported_for_each_file(tmp_path: Path) -> None:
    generate.write(tmp_path)
    (tmp_path / "reference/kinds/datasource.md").unlink()
    (tmp_path / "reference/problems.md").write_text("changed")
    (tmp_path / "reference/kinds/other.md").write_text("strange")
    assert generate.drift(tmp_path) == [
        "reference/kinds/datasource.md is missing",
        "reference/problems.md differs from the code",
        "reference/kinds/other.md is not generated",
    ]


def test_row_of_a_field_gives_type_default_bounds_and_meaning() -> None:
    text = (DOCS / "reference/kinds/outputdataset.md").read_text("utf-8")
    assert (
        "| `maxDepth` | integer | `14` | 1 to 32 | Deepest node allowed; the root has depth 0. |"
    ) in text.splitlines()


@pytest.mark.parametrize("command", COMMANDS_OF_LAPTOPS)
def test_every_command_has_usage_and_exit_codes(command: str) -> None:
    text = (DOCS / "reference/cli.md").read_text("utf-8")
    section = text.partition(f"## snaploom {command}\n")[2].partition("\n## ")[0]
    assert re.search(rf"^snaploom {command}( |$)", section, re.MULTILINE)
    assert f"Exit codes: {CODES_OF[command]}." in section
    listed = {part.split()[0] for part in CODES_OF[command].replace(")", "").split(", ")}
    assert {code for code in listed if code.isdigit()} <= {str(code) for code, _ in EXIT_CODES}


# The page of environment variables has those that the product reads, and no other.


PAGE = DOCS / "operating" / "environment-variables.md"
NAME = r"SNAPLOOM_[A-Z_]+[A-Z]"
"""A prefix of names, such as that of a run's secrets, ends with a line."""


def test_page_lists_the_variables_of_the_product_in_order() -> None:
    sources = [
        file.read_text("utf-8")
        for part in ("sparkjobs/src", "operator/src")
        for file in (REPOSITORY / part).rglob("*.py")
    ]
    read = {name for text in sources for name in re.findall(rf'"({NAME})"', text)}
    listed = re.findall(rf"^\| `({NAME})` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert listed == sorted(read)


# The reference page about skipping agrees with the index types and the code.


REFERENCE = DOCS / "reference" / "skipping.md"
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
    text = REFERENCE.read_text("utf-8")
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

"""The tables of entry points and attacks are complete, and the tests that they name exist."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TABLES = sorted(Path(__file__).with_name("tables").glob("*.yaml"))


def table_of(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load(path.read_text())
    return table


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_entry_point_has_every_attack_once(path: Path) -> None:
    table = table_of(path)
    wanted = {(entry, attack) for entry in table["entry_points"] for attack in table["attacks"]}
    found = Counter((cell["entry_point"], cell["attack"]) for cell in table["cells"])
    assert set(found) == wanted
    assert set(found.values()) == {1}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_cell_has_a_test_or_a_reason(path: Path) -> None:
    for cell in table_of(path)["cells"]:
        assert bool(cell.get("tests")) != bool(cell.get("reason")), cell
        assert bool(cell.get("stands")) == bool(cell.get("tests")), cell


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_test_that_is_named_exists(path: Path) -> None:
    named = {test for cell in table_of(path)["cells"] for test in cell.get("tests", ())}
    missing = [test for test in sorted(named) if not _exists(test)]
    assert missing == []


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {
        node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)
    }
    return name.partition("[")[0] in defined

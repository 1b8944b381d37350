"""Classes of errors, read from the source: some stand in modules that import Spark."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import snaploom
import snaploom_operator
from snaploom.errors import SnaploomError
from snaploom.models.base import one_line

PACKAGE = Path(snaploom.__file__).parent
OPERATOR = Path(snaploom_operator.__file__).parent


@dataclass(frozen=True)
class ErrorClass:
    """What the reference has on one class of error."""

    name: str
    reason: str
    retryable: bool
    exit_code: int
    meaning: str


def errors(package: Path = PACKAGE) -> list[ErrorClass]:
    """Every error that a package raises on purpose, by reason."""
    ours = _classes(sorted(package.rglob("*.py")))
    classes = [*_classes([PACKAGE / "errors.py"]), *ours]
    root = SnaploomError
    found = {"Exception": ErrorClass("Exception", root.reason, root.retryable, root.exit_code, "")}
    while new := {
        node.name: _error_class(node, found[parent])
        for node in classes
        if node.name not in found
        and (parent := _parent(node)) in found
        and (parent != "Exception" or node.name == root.__name__)
    }:
        found |= new
    errors = [found[node.name] for node in ours if node.name in found]
    return sorted(errors, key=lambda error: (error.reason, error.name))


def _classes(files: Iterable[Path]) -> list[ast.ClassDef]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    return [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]


def _parent(node: ast.ClassDef) -> str:
    return node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""


def _error_class(node: ast.ClassDef, parent: ErrorClass) -> ErrorClass:
    own = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in node.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    return ErrorClass(
        name=node.name,
        reason=own.get("reason", parent.reason),
        retryable=own.get("retryable", parent.retryable),
        exit_code=own.get("exit_code", parent.exit_code),
        meaning=one_line(ast.get_docstring(node) or "").partition(" Args:")[0],
    )

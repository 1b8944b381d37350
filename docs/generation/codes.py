"""Pages of findings, errors and reasons, from the catalogue and the classes themselves."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import snaploom
from generation.markdown import NOTE, meanings, table
from snaploom.errors import SnaploomError
from snaploom.models.codes import CODES
from snaploom.models.enumdocs import one_line
from snaploom.models.report import ExclusionReason, RunPhase, SnapshotReason

PACKAGE = Path(snaploom.__file__).parent


@dataclass(frozen=True)
class ErrorClass:
    """What the reference says of one class of error."""

    name: str
    reason: str
    retryable: bool
    exit_code: int
    meaning: str


def findings_page() -> str:
    """The page of the codes of findings."""
    parts = [
        "# Findings\n",
        NOTE,
        "What `snaploom validate`, `plan` and `run` and the admission webhook can find in "
        "declarations. Codes are stable.\n",
    ]
    for code in CODES:
        severity = code.severity or "ERROR or WARNING"
        parts.append(
            f"## {code.code}: {code.title}\n\n{severity}. {code.meaning}\n\n**Fix**: {code.fix}\n"
        )
    return "\n".join(parts)


def reasons_page() -> str:
    """The page of errors and of the reasons in reports and status."""
    columns = ["reason", "error", "worth trying again", "exit code", "meaning"]
    rows = [
        [
            f"`{error.reason}`",
            f"`{error.name}`",
            "yes" if error.retryable else "no",
            str(error.exit_code),
            error.meaning,
        ]
        for error in errors()
    ]
    parts = [
        "# Reasons\n",
        NOTE,
        "## Errors\n",
        "Reason of a condition, class in Python, and exit code of the command line. An error is "
        "worth trying again when it may go away with nothing changed.\n",
        table(columns, rows),
    ]
    for title, members in (
        ("Why a snapshot is published, left out, or failed", SnapshotReason),
        ("Why a source is not part of a snapshot", ExclusionReason),
        ("How a run ended", RunPhase),
    ):
        parts += [f"## {title}\n", meanings(members)]
    return "\n".join(parts)


def errors() -> list[ErrorClass]:
    """Every error that Snaploom raises on purpose, by reason.

    They are read from the source: some stand in modules that import Spark.
    """
    sources = [PACKAGE / "errors.py", *sorted(PACKAGE.rglob("*.py"))]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sources]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
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
    found.pop("Exception")
    return sorted(found.values(), key=lambda error: (error.reason, error.name))


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

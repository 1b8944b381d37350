"""From a statement to SQL text that parses to the same statement."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.skippingindex import Index
from snaploom.skipping.statements.columns import KEY_LABEL, name_text
from snaploom.skipping.statements.syntax import (
    AlterIndex,
    AnalyzeIndex,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    PathName,
    RecoverIndex,
    RefreshIndex,
    ShowIndexes,
    Statement,
    Subject,
    VacuumIndex,
)

_VERBS: dict[type[Statement], str] = {
    RefreshIndex: "REFRESH",
    DescribeIndex: "DESCRIBE",
    DropIndex: "DROP",
    VacuumIndex: "VACUUM",
    AnalyzeIndex: "ANALYZE",
    RecoverIndex: "RECOVER",
    AlterIndex: "ALTER",
}


def render(statement: Statement) -> str:
    """The statement in today's form, every parameter by its name."""
    if isinstance(statement, ShowIndexes):
        extended = "EXTENDED " if statement.is_extended else ""
        return f"SHOW FLINT INDEXES {extended}IN {_names(statement.namespace)}"
    if isinstance(statement, CreateIndex):
        return _create(statement)
    text = f"{_VERBS[type(statement)]} SKIPPING INDEX ON {subject_text(statement.subject)}"
    if isinstance(statement, RefreshIndex) and statement.mode:
        return f"{text} {statement.mode}"
    if isinstance(statement, AlterIndex):
        return f"{text} WITH ({_assignments(statement.properties)})"
    return text


def subject_text(subject: Subject) -> str:
    """SQL notation of a table or path."""
    if isinstance(subject, PathName):
        return f"{name_text(subject.format)}.{_quoted(subject.path)}"
    return _names(subject.parts)


def _create(statement: CreateIndex) -> str:
    exists = "IF NOT EXISTS " if statement.if_not_exists else ""
    indexes = ", ".join(map(_index, statement.indexes))
    lines = [f"CREATE SKIPPING INDEX {exists}ON {subject_text(statement.subject)} ({indexes})"]
    if statement.where:
        lines.append(f"WHERE {statement.where}")
    if statement.properties:
        lines.append(f"WITH ({_assignments(statement.properties)})")
    return "\n".join(lines)


def _index(index: Index) -> str:
    subject = index.column or index.expression or f"({', '.join(index.columns or ())})"
    parameters = sorted(index.parameters.items())
    if index.key_label is not None:
        parameters.append((KEY_LABEL, index.key_label))
    given = ", ".join(f"{name} = {_string(value)}" for name, value in parameters)
    return f"{subject} {index.type}" + (f"({given})" if given else "")


def _assignments(properties: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{_string(name)} = {_string(value)}" for name, value in properties)


def _names(parts: Iterable[str]) -> str:
    return ".".join(map(name_text, parts))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

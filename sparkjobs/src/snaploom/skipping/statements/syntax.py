"""Statements about skipping indexes as data, and their way to SQL text and declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import Index, RefreshMode, SkippingIndex
from snaploom.skipping.lifecycle.alteration import Alteration
from snaploom.skipping.lifecycle.declaration import NATIVE, OPEN_SEARCH, Declaration
from snaploom.skipping.statements.columns import KEY_LABEL, OWN_PROPERTIES, name_text
from snaploom.skipping.stores.folder import uri_of_store

# Statements about skipping indexes as data, between parser and renderer.


@dataclass(frozen=True)
class TableName:
    """A table of Spark's catalog."""

    parts: tuple[str, ...]
    """`catalog`, `database`, `table`; the last one to three of them."""

    @property
    def label(self) -> str:
        """Notation for people."""
        return ".".join(self.parts)


@dataclass(frozen=True)
class PathName:
    """Files below a path, as Spark names them in SQL: ``parquet.`/data/flights` ``."""

    format: str
    """Spark's short name of the format."""
    path: str
    options: tuple[tuple[str, str], ...] = ()
    """Options of Spark's reader, in order of their names; SQL has no place for them."""

    @property
    def label(self) -> str:
        """Notation for people."""
        return self.path


Subject = TableName | PathName
"""Table or path of an index."""


Properties = tuple[tuple[str, str], ...]
"""Properties of `WITH (...)`: lower-case names and values as text, as they were written."""


@dataclass(frozen=True)
class CreateIndex:
    """`CREATE SKIPPING INDEX [IF NOT EXISTS] ON t (...) [WHERE ...] [WITH (...)]`."""

    subject: Subject
    indexes: tuple[Index, ...]
    where: str = ""
    properties: Properties = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class RefreshIndex:
    """`REFRESH SKIPPING INDEX ON t [FULL | INCREMENTAL | AUTO]`."""

    subject: Subject
    mode: str = ""
    """FULL, INCREMENTAL or AUTO; empty for the declared one."""


@dataclass(frozen=True)
class DescribeIndex:
    """`DESC[RIBE] SKIPPING INDEX ON t`."""

    subject: Subject


@dataclass(frozen=True)
class DropIndex:
    """`DROP SKIPPING INDEX ON t`."""

    subject: Subject


@dataclass(frozen=True)
class VacuumIndex:
    """`VACUUM SKIPPING INDEX ON t`."""

    subject: Subject


@dataclass(frozen=True)
class AnalyzeIndex:
    """`ANALYZE SKIPPING INDEX ON t`."""

    subject: Subject


@dataclass(frozen=True)
class RecoverIndex:
    """`RECOVER SKIPPING INDEX ON t`."""

    subject: Subject


@dataclass(frozen=True)
class AlterIndex:
    """`ALTER SKIPPING INDEX ON t WITH (...)`."""

    subject: Subject
    properties: Properties


@dataclass(frozen=True)
class ShowIndexes:
    """`SHOW FLINT {INDEX | INDEXES} [EXTENDED] IN catalog[.database]`."""

    namespace: tuple[str, ...]
    """`catalog`, or `catalog` and `database`."""
    is_extended: bool = False
    """Whether a column shows what went wrong."""


Statement = (
    CreateIndex
    | RefreshIndex
    | DescribeIndex
    | DropIndex
    | VacuumIndex
    | AnalyzeIndex
    | RecoverIndex
    | AlterIndex
    | ShowIndexes
)


# From a statement to SQL text that parses to the same statement.

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


# Converts statements and resources to declarations, the only input of the engine.


@dataclass(frozen=True)
class StorePlace:
    """Declared place of an index."""

    location: str = ""
    """Folder (or cluster) below which it is kept; empty for the session's."""
    form: str = NATIVE
    """NATIVE, XSKIPPER or OPENSEARCH."""


def declaration_of_statement(statement: CreateIndex) -> Declaration:
    """Declaration of a statement.

    Raises:
        IndexNotPossible: two properties contradict each other.
    """
    properties = dict(statement.properties)
    return Declaration(
        indexes=statement.indexes,
        where=statement.where,
        enabled=properties.get("enabled", "true") == "true",
        mode=mode_of(properties) or RefreshMode.AUTO,
        form=properties.get("form", NATIVE),
        footer_key_label=properties.get("footer_key_label", ""),
        plaintext_footer=properties.get("plaintext_footer") == "true",
        properties=other_properties(properties),
    )


def place_of_statement(statement: CreateIndex) -> StorePlace:
    """Place of the index that a statement declares."""
    properties = dict(statement.properties)
    return StorePlace(location=properties.get("location", ""), form=properties.get("form", NATIVE))


def alteration_of_statement(statement: AlterIndex) -> Alteration:
    """Alteration of a statement.

    Raises:
        IndexNotPossible: two properties contradict each other.
    """
    properties = dict(statement.properties)
    return Alteration(
        enabled=properties["enabled"] == "true" if "enabled" in properties else None,
        mode=mode_of(properties),
        properties=dict(other_properties(properties)),
    )


def mode_of(properties: Mapping[str, str]) -> RefreshMode | None:
    """The refresh mode in properties of either name, if any; `IndexNotPossible` for two."""
    modes = {
        mode
        for name, mode in (
            ("auto_refresh", RefreshMode.AUTO),
            ("incremental_refresh", RefreshMode.INCREMENTAL),
        )
        if properties.get(name) == "true"
    }
    if "refresh_mode" in properties:
        modes.add(RefreshMode(properties["refresh_mode"]))
    if len(modes) > 1:
        raise IndexNotPossible(
            "the properties ask for two modes of refresh",
            found=" and ".join(sorted(modes)),
            expected="one of refresh_mode, auto_refresh and incremental_refresh",
            hint="leave one of the two out",
        )
    return modes.pop() if modes else None


def other_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without a field in declarations."""
    return {name: value for name, value in properties.items() if name not in OWN_PROPERTIES}


def declaration_of_resource(resource: SkippingIndex) -> Declaration:
    """Declaration of a resource, which owns the index (rule S26)."""
    spec, encryption = resource.spec, resource.spec.encryption
    return Declaration(
        indexes=spec.indexes,
        where=spec.where or "",
        enabled=spec.enabled,
        mode=spec.refresh.mode,
        owner=resource.identity,
        form=place_of_store(resource).form,
        footer_key_label="" if encryption is None else encryption.footer_key_label,
        plaintext_footer=encryption is not None and encryption.plaintext_footer,
    )


def place_of_store(resource: SkippingIndex) -> StorePlace:
    """Place of the index that a resource declares.

    Raises:
        IndexNotPossible: the credentials of its OpenSearch are not in environment variables.
    """
    store = resource.spec.store
    if store.open_search is not None:
        return StorePlace(location=uri_of_store(store.open_search), form=OPEN_SEARCH)
    if store.parquet is None:
        return StorePlace()
    return StorePlace(location=store.parquet.location, form=store.parquet.form.value)

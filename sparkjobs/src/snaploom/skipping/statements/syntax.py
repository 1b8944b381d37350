"""Statements about skipping indexes, as data: what the parser gives and the renderer takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableName:
    """A table of Spark's catalog."""

    parts: tuple[str, ...]
    """`catalog`, `database`, `table`; the last one to three of them."""


@dataclass(frozen=True)
class PathName:
    """Files below a path, as Spark names them in SQL: ``parquet.`/data/flights` ``."""

    format: str
    """Spark's short name of the format."""
    path: str
    """The path, as it was written."""


Subject = TableName | PathName
"""What is indexed."""


@dataclass(frozen=True)
class DeclaredIndex:
    """One index as somebody declared it, whichever door it came through."""

    type: str
    """`MIN_MAX`, `VALUE_SET`, `BLOOM_FILTER`, `PARTITION`, or a registered type."""
    columns: tuple[str, ...] = ()
    """Columns and nested fields as people write them: `a.b`, with backticks where a name needs
    them; empty for an expression."""
    expression: str = ""
    """SQL of an expression over the columns; empty for columns."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameters by name, in order of names."""
    key_label: str = ""
    """Key with which this index is encrypted; empty for none."""

    @property
    def label(self) -> str:
        """As people write it: `MIN_MAX(price)`."""
        return f"{self.type}({self.expression or ', '.join(self.columns)})"


Properties = tuple[tuple[str, str], ...]
"""What `WITH (...)` says: lower-case names and values as text, as they were written."""


@dataclass(frozen=True)
class CreateIndex:
    """`CREATE SKIPPING INDEX [IF NOT EXISTS] ON t (...) [WHERE ...] [WITH (...)]`."""

    subject: Subject
    indexes: tuple[DeclaredIndex, ...]
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
    """`SHOW FLINT INDEXES IN catalog[.database]`."""

    namespace: tuple[str, ...]
    """`catalog`, or `catalog` and `database`."""


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

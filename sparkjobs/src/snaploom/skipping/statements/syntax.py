"""Statements about skipping indexes as data, between parser and renderer."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.skippingindex import Index


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
    """The path, as it was written."""
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

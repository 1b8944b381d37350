"""`DatabaseSource`: a table of a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from snaploom.models.datasource import Credentials, DataSource, Jdbc, SnapshotSettings
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.datasetnames import DatasetName
from snaploom.planning.declaredcolumns import DeclaredColumns, columns_of
from snaploom.planning.sources.databases.checks import cluster_findings, jdbc_findings
from snaploom.planning.sources.databases.names import table_dataset
from snaploom.planning.sources.declared import DeclaredSource, NoSnapshots


@dataclass(frozen=True)
class DatabaseSource(DeclaredSource):
    """A source that a driver of Java's database interface reads."""

    declared: Jdbc

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        """The source, if it is a table of a database."""
        declared = source.spec.jdbc
        return None if declared is None else cls(source, declared)

    def findings(self, scope: Scope) -> Findings:
        """Everything that is wrong with it."""
        return jdbc_findings(self.declared, self.source, scope.allow, scope.judge_text)

    def cluster_findings(self, *, allow_jdbc_url: bool) -> Findings:
        """Passwords and URLs."""
        found = cluster_findings(self.declared, self.source, allow_jdbc_url=allow_jdbc_url)
        return tuple(found)

    @property
    def caption(self) -> str:
        """The kind of database."""
        return self.declared.driver.value.lower()

    @property
    def snapshot(self) -> SnapshotSettings:
        """By a column, or by the time of reading."""
        return self.declared.snapshot

    @property
    def columns(self) -> DeclaredColumns | None:
        """Those of `schemaFields`."""
        fields = self.declared.schema_fields
        return None if fields is None else columns_of(fields)

    @property
    def credentials(self) -> Credentials | None:
        """Of the database."""
        return self.declared.credentials

    @property
    def datasets(self) -> tuple[DatasetName, ...]:
        """The table."""
        return (table_dataset(self.declared),)

    @property
    def no_snapshots(self) -> NoSnapshots:
        """A table without rows."""
        return NoSnapshots(self.field, "no snapshot", "check that the table has rows")

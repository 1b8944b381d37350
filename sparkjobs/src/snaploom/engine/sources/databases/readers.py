"""Readers of `jdbc` sources, one for each way to declare snapshots (rule W19).

* by read time: all of the table, as one snapshot at the instant of the run;
* by column: the database itself groups that column, and gives the rows of a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from snaploom.engine.fields import find_field
from snaploom.engine.sources.databases.conditions import condition_for
from snaploom.engine.sources.databases.table import ROWS, DatabaseTable
from snaploom.engine.sources.databases.types import as_declared
from snaploom.engine.sources.port import SourceFrame, SourceReader, not_listed
from snaploom.engine.sources.readercontext import ReaderContext
from snaploom.engine.sources.snapshotcolumn import RawValue, SnapshotColumn
from snaploom.models.datasource import FromFieldValue
from snaploom.models.finding import InvalidDeclarations, errors_of
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import READ_TIME, SourceSnapshots
from snaploom.planning.sources.databases.checks import jdbc_findings
from snaploom.planning.sources.databases.source import DatabaseSource
from snaploom.planning.sources.declared import DeclaredSource

_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)


def open_database(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of a table of a database.

    Raises:
        InvalidDeclarations: the source is not sound; the writer of the Bundle need not have
            validated it.
    """
    if not isinstance(source, DatabaseSource):
        return None
    refused = errors_of(jdbc_findings(source.declared, source.source, context.allow))
    if refused:
        raise InvalidDeclarations(refused)
    name, identity = source.source.name, source.source.identity
    table = DatabaseTable(context.spark, identity, source.declared, context.now)
    context.resources.callback(table.close)
    settings = table.declared.snapshot.from_field_value
    if settings is None:
        return TableReader(name, table)
    return TableColumnReader(name, table, settings)


@dataclass(frozen=True)
class TableReader:
    """The whole table is one snapshot, at the instant of the run."""

    name: str
    table: DatabaseTable

    def listing(self) -> SourceSnapshots:
        """The current snapshot; an empty table has one too.

        Raises:
            SourceError: the table is not there.
        """
        self.table.look()
        return READ_TIME

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """All rows.

        Raises:
            SnapshotMissing: another time is asked for.
            SourceError: the table cannot be read.
        """
        if snapshot != self.table.now:
            raise not_listed(self.name, snapshot)
        frame = as_declared(
            self.table.read(), self.table.declared.schema_fields, self.table.resource
        )
        return SourceFrame(frame, snapshot, self.table.fingerprint())


@dataclass(frozen=True)
class TableColumnReader:
    """A column of the table holds the snapshot of each row."""

    name: str
    table: DatabaseTable
    settings: FromFieldValue

    def listing(self) -> SourceSnapshots:
        """The distinct instants of the column; one query of the database, once.

        Raises:
            SnapshotValueInvalid: a row has NULL, an endless time, or a value of another format.
            SourceError: the table cannot be read.
        """
        return SourceSnapshots.of(self._values)

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The rows of one snapshot, chosen by the database.

        Raises:
            SnapshotMissing: there are none.
            SourceError: the table cannot be read.
        """
        values = self._values.get(snapshot)
        if values is None:
            raise not_listed(self.name, snapshot)
        field = self._column.field
        condition = condition_for(self.table.database, field.parts[0], field.data_type, values)
        frame = as_declared(
            self.table.read(condition), self.table.declared.schema_fields, self.table.resource
        )
        without = field.parts if self._is_dropped(frame) else ()
        return SourceFrame(frame, snapshot, self.table.fingerprint(condition), without)

    def _is_dropped(self, frame: DataFrame) -> bool:
        """Whether the field is to go; one that schemaFields leave out is not there already."""
        is_there = find_field(frame.schema, self._column.field.expression) is not None
        return self.settings.drop_field and is_there

    @cached_property
    def _column(self) -> SnapshotColumn:
        schema = self.table.rows.schema
        return SnapshotColumn.find(schema, self.settings, self.table.resource, "spec.jdbc")

    @cached_property
    def _values(self) -> Mapping[EpochNanos, tuple[RawValue, ...]]:
        field = self._column.field
        is_time = isinstance(field.data_type, _TIMES)
        return self._column.values(self.table.values_of(field.parts[0], is_time=is_time), ROWS)

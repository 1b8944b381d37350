"""Readers of `jdbc` sources, one for each way to declare snapshots (rule W19)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import EpochNanos, SchemaField
from snaploom.models.datasource import FromFieldValue
from snaploom.models.findings import InvalidDeclarations, errors_of
from snaploom.plan.intervals import READ_TIME, SourceSnapshots
from snaploom.sources.databases.declared import DatabaseSource, jdbc_findings
from snaploom.sources.databases.table import ROWS, DatabaseTable, condition_for
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.port import ReaderContext, SourceFrame, SourceReader, not_listed
from snaploom.sources.snapshotcolumn import RawValue, SnapshotColumn
from snaploom.spark.types import find_field, fold_case, to_spark
from snaploom.types.schemas import quote

# Columns of a table in their declared types: never rounded, never cut short.

_WIDER = (
    (spark.DateType, spark.TimestampType),
    (spark.TimestampNTZType, spark.TimestampType),
)
"""Pairs besides numbers and texts: a day is its first moment, a local time is one in UTC."""
_AS_TEXT = (
    spark.NumericType,
    spark.BooleanType,
    spark.DateType,
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.CharType,
    spark.VarcharType,
)


def as_declared(frame: DataFrame, fields: Sequence[SchemaField] | None, resource: str) -> DataFrame:
    """The declared columns in their declared types; everything as it is where none are declared."""
    if fields is None:
        _refuse_changed(frame.schema.fields, resource)
        return frame
    by_name = {fold_case(field.name): field for field in frame.schema.fields}
    wrong: list[str] = []
    columns: list[Column] = []
    for declared in fields:
        found = by_name.get(fold_case(declared.name))
        wanted = to_spark(declared.data_type)
        column = None if found is None else _converted(found, wanted)
        if column is None:
            actual = "no such column" if found is None else found.dataType.simpleString()
            wrong.append(f"{declared.name}: {actual}, declared as {wanted.simpleString()}")
        else:
            columns.append(column.alias(declared.name, metadata=dict(declared.metadata)))
    if wrong:
        raise SourceSchemaInvalid(
            f"{len(wrong)} of {len(fields)} columns do not fit their declaration",
            resource=resource,
            path="spec.jdbc.schemaFields",
            found="; ".join(wrong),
            expected="columns that the table has, of types that hold their values",
            hint="the table was changed, or schemaFields was never right: correct it",
        )
    read = (by_name[fold_case(field.name)] for field in fields)
    _refuse_changed(read, resource)
    return frame.select(*columns)


def _refuse_changed(read: Iterable[spark.StructField], resource: str) -> None:
    """Refuse columns whose values Spark would change before anybody sees them."""
    changed = [f"{field.name}: {why}" for field in read if (why := _change(field))]
    if changed:
        raise SourceSchemaInvalid(
            "Spark cannot read columns as they are",
            resource=resource,
            path="spec.jdbc.tableReference",
            found="; ".join(changed),
            expected="columns that Spark has types for",
            hint="leave them out by schemaFields, or read a view that casts them",
        )


def _change(field: spark.StructField) -> str:
    """Spark's change of the values of a column, from its metadata; empty for none."""
    digits = field.metadata.get("scale", 0)
    if isinstance(field.dataType, spark.DecimalType) and digits > field.dataType.scale:
        return f"of {digits} digits after the point, {field.dataType.scale} would be left"
    return "bits would become text" if field.metadata.get("binarylong") else ""


def _converted(found: spark.StructField, wanted: spark.DataType) -> Column | None:
    column, actual = sf.col(quote(found.name)), found.dataType
    if actual.simpleString() == wanted.simpleString():
        return column
    if isinstance(actual, spark.NumericType) and isinstance(wanted, spark.NumericType):
        converted = column.try_cast(wanted)
        message = f"a value of column {found.name} does not fit {wanted.simpleString()}: "
        fault = sf.raise_error(sf.concat(sf.lit(message), column.cast("string"))).cast(wanted)
        fits = column.isNull() | sf.coalesce(converted.try_cast(actual) == column, sf.lit(False))
        return sf.when(fits, converted).otherwise(fault)
    if isinstance(wanted, spark.StringType) and isinstance(actual, _AS_TEXT):
        return column.cast(wanted)
    if any(isinstance(actual, a) and isinstance(wanted, w) for a, w in _WIDER):
        return column.cast(wanted)
    return None


# Readers of `jdbc` sources, one for each way to declare snapshots (rule W19).

_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)


def open_database(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of a table of a database."""
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
        """The current snapshot; an empty table has one too."""
        self.table.look()
        return READ_TIME

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        (snapshot,) = snapshots
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
        """
        return SourceSnapshots.of(self._values)

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        (snapshot,) = snapshots
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

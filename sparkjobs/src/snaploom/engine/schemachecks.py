"""Schemas that one snapshot can do with, and those that nobody could read once written."""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import types as spark

from snaploom.engine.asof import fault_of
from snaploom.engine.keys import components, is_of_declared_type, is_orderable
from snaploom.engine.windows import value_fault
from snaploom.errors import FieldMissing, SourceSchemaInvalid
from snaploom.models.asof import AsOf
from snaploom.models.common import MissingMode
from snaploom.models.datarelationship import DataRelationship, KeyComponent, KeyField
from snaploom.models.outputdataset import DataFormat, OtherDataSource
from snaploom.models.report import Exclusion, ExclusionReason
from snaploom.models.windows import Windows
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.sources.tables.columns import has_type
from snaploom.spark.types import Found, find_field, fold_case, from_spark, to_spark
from snaploom.types.merge import what_helps
from snaploom.types.schemas import quote

# Schemas refused before writing, which Spark writes and nobody can read.

_FIELD_ID = "parquet.field.id"
"""Metadata of a column that Spark writes into Parquet's schema."""
_TABLES = {DataFormat.ICEBERG: "Iceberg", DataFormat.DELTA: "Delta without table features"}
_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=]")
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # Avro 1.12 specification, "Names"


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Something that cannot be written, or not be read afterwards."""

    path: str
    message: str
    hint: str


def refuse_unwritable(schema: spark.StructType, data_format: DataFormat) -> None:
    """Refuse a schema that a format cannot hold."""
    faults = schema_faults(schema, data_format)
    if faults:
        more = "".join(f"; {fault.path}: {fault.message}" for fault in faults[1:])
        raise SourceSchemaInvalid(
            faults[0].message + more,
            path=faults[0].path,
            expected=f"columns that {data_format.value} files can hold and give back",
            hint=faults[0].hint,
        )


def schema_faults(schema: spark.StructType, data_format: DataFormat) -> tuple[SchemaFault, ...]:
    """Everything in a schema that a format cannot hold, in order of appearance."""
    return tuple(_faults_of(schema, "", data_format))


def _faults_of(
    data_type: spark.DataType, path: str, data_format: DataFormat
) -> Iterator[SchemaFault]:
    match data_type:
        case spark.StructType():
            yield from _struct_faults(data_type, path, data_format)
        case spark.ArrayType():
            yield from _faults_of(data_type.elementType, path, data_format)
        case spark.MapType():
            if data_format.of_files is not DataFormat.PARQUET and not isinstance(
                data_type.keyType, spark.StringType
            ):
                yield SchemaFault(
                    path,
                    f"a map with keys of type {data_type.keyType.simpleString()}; "
                    f"{data_format.value} has text keys only",
                    "cast the keys to string in a simpleVirtual source, or use PARQUET",
                )
            yield from _faults_of(data_type.keyType, path, data_format)
            yield from _faults_of(data_type.valueType, path, data_format)
        case spark.NullType():
            yield SchemaFault(
                path,
                "a column without a type (void)",
                "give it a type (cast in a query, or schemaFields), or leave it out",
            )
        case spark.CalendarIntervalType():
            yield SchemaFault(
                path,
                "a calendar interval, which no file format can hold",
                "cast it to string in a simpleVirtual source, or leave it out",
            )
        case _ if data_format.is_table and not _is_in_tables(data_type, data_format):
            yield SchemaFault(
                path,
                f"a column of type {data_type.simpleString()}, which {_TABLES[data_format]} does "
                "not have",
                "cast it in a simpleVirtual source, leave it out, or use PARQUET",
            )
        case _:
            pass


def _is_in_tables(data_type: spark.DataType, data_format: DataFormat) -> bool:
    is_newer = data_format is DataFormat.DELTA and isinstance(data_type, spark.TimestampNTZType)
    return has_type(data_type) and not is_newer


def _struct_faults(
    struct: spark.StructType, path: str, data_format: DataFormat
) -> Iterator[SchemaFault]:
    first_of: dict[str, str] = {}
    if not struct.fields:
        yield SchemaFault(path, "a struct without fields", "leave it out")
    for field in struct.fields:
        here = f"{path}.{_shown(field.name)}" if path else _shown(field.name)
        if not field.name:
            yield SchemaFault(here, "a column with an empty name", "rename it")
        elif data_format is DataFormat.AVRO and not _AVRO_NAME.fullmatch(field.name):
            yield SchemaFault(
                here,
                "a name that Avro does not allow (letters A-Z, digits and _ only)",
                "rename it in a simpleVirtual source, or use PARQUET",
            )
        elif data_format is DataFormat.DELTA and _NOT_IN_DELTA.search(field.name):
            yield SchemaFault(
                here,
                "a name that Delta does not allow (spaces, line breaks, tabs and ,;{}()= )",
                "rename it in a simpleVirtual source, or use ICEBERG",
            )
        if data_format is DataFormat.ICEBERG and _FIELD_ID in field.metadata:
            yield SchemaFault(
                here,
                f"metadata `{_FIELD_ID}`, by which Iceberg would take it for another column",
                "remove it with a MetadataApplicator (REPLACE)",
            )
        other = first_of.setdefault(fold_case(field.name), field.name)
        if other is not field.name:
            yield SchemaFault(
                here,
                f"the name is the same as {other} but for case, so that neither could be read",
                "rename one of them in a simpleVirtual source",
            )
        yield from _faults_of(field.dataType, here, data_format)


def _shown(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else quote(name)


# Sources that one snapshot can do with, given the real schemas of its source snapshots.


@dataclass(frozen=True, slots=True)
class MissingField:
    """A field that a join or a grouping needs and a snapshot lacks."""

    child: JoinNode
    """The joined node: its modes decide."""
    side: JoinNode
    """The node whose data lacks the field."""
    reason: ExclusionReason
    mode: MissingMode
    field: str
    """Path of the field, as declared."""
    found: str
    """The type or field that the data has instead."""
    expected: str
    helps: str = ""
    """The declaration that helps, where the field exists with another type."""

    @property
    def message(self) -> str:
        """One sentence for people."""
        need = "its join" if self.reason is ExclusionReason.JOIN_FIELD_MISSING else "its groupBy"
        if self.helps:
            return (
                f"`{self.child.field_name}`: {need} needs {self.field} of type {self.expected}, "
                f"which has type {self.found} in DataSource/{self.side.source} ({self._place}): "
                f"{self.helps}"
            )
        return (
            f"`{self.child.field_name}`: {need} needs {self.field} ({self.expected}) in "
            f"DataSource/{self.side.source} ({self._place}), which has {self.found}"
        )

    @property
    def _place(self) -> str:
        return "the root" if self.side.number == 0 else f"`{self.side.field_name}`"

    def error(self) -> FieldMissing:
        """The error of mode ERROR."""
        mode = (
            "joinFieldMissingMode"
            if self.reason is ExclusionReason.JOIN_FIELD_MISSING
            else "groupByFieldMissingMode"
        )
        if self.helps:
            return FieldMissing(
                f"a field that `{self.child.field_name}` needs has another type in this snapshot",
                resource=f"DataSource/{self.side.source}",
                path=self.field,
                found=f"type {self.found}",
                expected=f"type {self.expected}, or one that it holds without loss",
                hint=f"{self.helps}; otherwise convert the column by a fieldTransformer, or choose "
                f"another {mode} for `{self.child.field_name}`",
            )
        return FieldMissing(
            f"a field that `{self.child.field_name}` needs is missing in this snapshot",
            resource=f"DataSource/{self.side.source}",
            path=self.field,
            found=self.found,
            expected=self.expected,
        )


@dataclass(frozen=True, slots=True)
class SchemaOutcome:
    """The result of checking the schemas of one snapshot."""

    excluded: tuple[Exclusion, ...] = ()
    """Nodes that the snapshot does without, in breadth-first order."""
    warnings: tuple[str, ...] = ()
    stop: MissingField | None = None
    """Faults that fail the snapshot (mode ERROR) or skip it (SKIP_*); None to go on."""


def check_schemas(
    tree: JoinTree,
    schemas: Mapping[str, spark.StructType],
    others: Mapping[str, OtherDataSource],
    relationships: Mapping[str, DataRelationship],
    inferred: Container[str] = frozenset(),
) -> SchemaOutcome:
    """Compare the schemas of one snapshot with the needs of joins and groupings; pure.

    A node without a schema has no snapshot, and is left out together with its descendants, which
    are not checked. `inferred` are sources whose files have no types but those that values show.
    """
    excluded: list[Exclusion] = []
    warnings: list[str] = []
    absent: set[str] = set()
    for child in tree.joins:
        if child.field_name not in schemas:
            absent.add(child.field_name)
            continue
        if child.parent in absent:
            absent.add(child.field_name)
            message = f"it is joined to `{child.parent}`, which is left out"
            excluded.append(
                Exclusion(
                    field_name=child.field_name,
                    reason=ExclusionReason.PARENT_EXCLUDED,
                    message=message,
                )
            )
            continue
        missing = next(
            _missing_fields(
                child, tree, schemas, others[child.field_name], relationships, inferred
            ),
            None,
        )
        if missing is None:
            continue
        if missing.mode.warns:
            warnings.append(missing.message)
        if not missing.mode.continues:
            return SchemaOutcome(tuple(excluded), tuple(warnings), missing)
        absent.add(child.field_name)
        excluded.append(
            Exclusion(
                field_name=child.field_name,
                reason=missing.reason,
                message=missing.message[:MESSAGE_LENGTH],
            )
        )
    return SchemaOutcome(tuple(excluded), tuple(warnings))


MESSAGE_LENGTH = 1024
"""Longest message that an Exclusion takes."""


def _missing_fields(
    child: JoinNode,
    tree: JoinTree,
    schemas: Mapping[str, spark.StructType],
    settings: OtherDataSource,
    relationships: Mapping[str, DataRelationship],
    inferred: Container[str],
) -> Iterator[MissingField]:
    relationship = relationships[child.relationship]
    own = schemas[child.field_name]
    for name in child.group_by:
        if find_field(own, name) is None:
            yield MissingField(
                child,
                child,
                ExclusionReason.GROUP_BY_FIELD_MISSING,
                settings.transformations.group_by.group_by_field_missing_mode,
                name,
                _names(own),
                "a column of that name",
            )
    mode = settings.join_field_missing_mode
    if child.timed is not None:
        parent = tree.node(child.parent)
        yield from _missing_times(child, child.timed, parent, schemas, mode)
    for side in (tree.node(child.parent), child):
        schema = schemas[side.field_name]
        for component in components(relationship, side):
            for field in component.fields_:
                found = find_field(schema, field.field_name)
                if found is None or not is_of_declared_type(field, found.data_type, component):
                    yield MissingField(
                        child,
                        side,
                        ExclusionReason.JOIN_FIELD_MISSING,
                        mode,
                        field.field_name,
                        _names(schema) if found is None else found.data_type.simpleString(),
                        to_spark(field.data_type).simpleString(),
                        ""
                        if found is None
                        else _helps(side.source, field, found, component, inferred),
                    )


def _missing_times(
    child: JoinNode,
    rule: AsOf | Windows,
    parent: JoinNode,
    schemas: Mapping[str, spark.StructType],
    mode: MissingMode,
) -> Iterator[MissingField]:
    """Columns of an as-of join or of windows that are absent, or not of a type that they need."""

    def missing(side: JoinNode, field: str, found: str, expected: str, helps: str) -> MissingField:
        reason = ExclusionReason.JOIN_FIELD_MISSING
        return MissingField(child, side, reason, mode, field, found, expected, helps)

    own, names = schemas[child.field_name], rule.child_fields
    places = [(parent, rule.parent_field), *((child, name) for name in names.values())]
    found = [(side, name, find_field(schemas[side.field_name], name)) for side, name in places]
    for side, name, field in found:
        if field is None:
            yield missing(side, name, _names(schemas[side.field_name]), "a column of that name", "")
    if any(field is None for _, _, field in found):
        return
    at = find_field(schemas[parent.field_name], rule.parent_field)
    columns = (at, *(find_field(own, names[path]) for path in rule.time_fields))
    times = [column.data_type for column in columns if column is not None]
    fault = fault_of(rule, times)
    if fault:
        type_, expected = (one.simpleString() for one in (times[1], times[0]))
        yield missing(child, rule.child_field, type_, expected, fault)
    if isinstance(rule, Windows):
        for one in rule.aggregates:
            value = None if one.field is None else find_field(own, one.field)
            fault = "" if value is None else value_fault(one, value.data_type)
            if fault and value is not None:
                type_, expected = value.data_type.simpleString(), one.example
                yield missing(child, one.field or "", type_, expected, fault)
    elif rule.ties is not None:
        newest = find_field(own, rule.ties.newest_by)
        if newest is not None and not is_orderable(newest.data_type):
            helps = "values of this type have no order: choose another column for ties.newestBy"
            type_, expected = newest.data_type.simpleString(), "a type with an order"
            yield missing(child, rule.ties.newest_by, type_, expected, helps)


def _helps(
    source: str,
    field: KeyField,
    found: Found,
    component: KeyComponent,
    inferred: Container[str],
) -> str:
    actual, in_query = from_spark(found.data_type), component.query is not None
    cast = what_helps(source, field.field_name, field.data_type, actual, in_query)
    if source not in inferred:
        return cast
    declared = to_spark(field.data_type).simpleString()
    return (
        f"the type is inferred: declare schemaFields of {source} with {field.field_name} as "
        f"{declared}, where its values are; or {cast}"
    )


NAMES_SHOWN = 12
"""Columns that a message lists; more would hide the point."""


def _names(schema: spark.StructType) -> str:
    shown = ", ".join(schema.names[:NAMES_SHOWN])
    more = len(schema.names) - NAMES_SHOWN
    return f"only {shown}" + (f" and {more} more" if more > 0 else "") if shown else "no columns"

"""Which sources one snapshot can do with, given the schemas that its source snapshots really have.

A field that is absent, or of a type that does not give the declared key, is missing (rule W28,
`snaploom.engine.keytypes`), and the *child's* configuration decides what then, whichever
side lacks it.
The groupBy fields of a child are looked at before its join: they are the fields of its key (rule
W9), so that after it `groupByFieldMissingMode` would never be asked. Nodes are visited in
breadth-first order, and the first one that fails or skips the snapshot decides.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import types as spark

from snaploom.engine.datatypes import from_spark, to_spark
from snaploom.engine.fields import Found, find_field
from snaploom.engine.keys import components
from snaploom.engine.keytypes import is_of_declared_type
from snaploom.errors import FieldMissing
from snaploom.models.common import MissingMode
from snaploom.models.datarelationship import DataRelationship, KeyComponent, KeyField
from snaploom.models.outputdataset import OtherDataSource
from snaploom.models.report import Exclusion, ExclusionReason
from snaploom.planning.keytexts import what_helps
from snaploom.planning.tree import JoinNode, JoinTree


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
        other_mode = f"choose another {mode} for `{self.child.field_name}`"
        if self.helps:
            return FieldMissing(
                f"a field that `{self.child.field_name}` needs has another type in this snapshot",
                resource=f"DataSource/{self.side.source}",
                path=self.field,
                found=f"type {self.found}",
                expected=f"type {self.expected}, or one that it holds without loss",
                hint=f"{self.helps}; otherwise convert the column by a fieldTransformer, or "
                f"{other_mode}",
            )
        return FieldMissing(
            f"a field that `{self.child.field_name}` needs is missing in this snapshot",
            resource=f"DataSource/{self.side.source}",
            path=self.field,
            found=self.found,
            expected=self.expected,
            hint=f"correct the data or the declared name, or {other_mode}",
        )


@dataclass(frozen=True, slots=True)
class SchemaOutcome:
    """The result of checking the schemas of one snapshot."""

    excluded: tuple[Exclusion, ...] = ()
    """Nodes that the snapshot does without, in breadth-first order."""
    warnings: tuple[str, ...] = ()
    """Warnings of the WARN modes."""
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

    Args:
        tree: the join tree.
        schemas: by field name, for all nodes that have a snapshot; a node without one is left out
            together with its descendants, which are not checked.
        others: settings of the joined sources, by field name.
        relationships: by name.
        inferred: names of sources whose files have no types but those that values show.
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
                        settings.join_field_missing_mode,
                        field.field_name,
                        _names(schema) if found is None else found.data_type.simpleString(),
                        to_spark(field.data_type).simpleString(),
                        ""
                        if found is None
                        else _helps(side.source, field, found, component, inferred),
                    )


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

"""Which sources one snapshot can do with, given the schemas that its source snapshots really have.

A field that is absent, or of another type than the relationship declares, is missing (`join.md`
section 1.3), and the *child's* configuration says what then, whichever side lacks it (section 1.4).
The groupBy fields of a child are looked at before its join: they are the fields of its key (ruling
K5), so that after it `groupByFieldMissingMode` would never be asked. Nodes are visited in
breadth-first order, and the first one that fails or skips the snapshot decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.fields import find_field, matches
from snaploom.engine.keys import components
from snaploom.errors import FieldMissing
from snaploom.models.common import MissingMode
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.outputdataset import OtherDataSource
from snaploom.models.report import Exclusion, ExclusionReason
from snaploom.planning.tree import JoinNode, JoinTree


@dataclass(frozen=True, slots=True)
class MissingField:
    """A field that a join or a grouping needs and a snapshot lacks."""

    child: JoinNode
    """The joined node: its modes decide."""
    side: JoinNode
    """The node whose data lacks the field."""
    reason: ExclusionReason
    """JOIN_FIELD_MISSING or GROUP_BY_FIELD_MISSING."""
    mode: MissingMode
    """What to do about it."""
    field: str
    """Path of the field, as declared."""
    found: str
    """What the data has instead."""
    expected: str
    """What was declared."""

    @property
    def message(self) -> str:
        """One sentence for people."""
        need = "its join" if self.reason is ExclusionReason.JOIN_FIELD_MISSING else "its groupBy"
        place = "the root" if self.side.number == 0 else f"`{self.side.field_name}`"
        return (
            f"`{self.child.field_name}`: {need} needs {self.field} ({self.expected}) in "
            f"DataSource/{self.side.source} ({place}), which has {self.found}"
        )

    def error(self) -> FieldMissing:
        """The error of mode ERROR."""
        return FieldMissing(
            f"a field that `{self.child.field_name}` needs is missing in this snapshot",
            resource=f"DataSource/{self.side.source}",
            path=self.field,
            found=self.found,
            expected=self.expected,
            hint="correct the data or the declared type, or choose another "
            + (
                "joinFieldMissingMode"
                if self.reason is ExclusionReason.JOIN_FIELD_MISSING
                else "groupByFieldMissingMode"
            )
            + f" for `{self.child.field_name}`",
        )


@dataclass(frozen=True, slots=True)
class SchemaOutcome:
    """What the schemas of one snapshot allow."""

    excluded: tuple[Exclusion, ...] = ()
    """Nodes that the snapshot does without, in breadth-first order."""
    warnings: tuple[str, ...] = ()
    """What the WARN modes say."""
    stop: MissingField | None = None
    """What fails the snapshot (its mode is ERROR) or skips it (SKIP_*); None to go on."""


def check_schemas(
    tree: JoinTree,
    schemas: Mapping[str, spark.StructType],
    others: Mapping[str, OtherDataSource],
    relationships: Mapping[str, DataRelationship],
) -> SchemaOutcome:
    """Compare the schemas of one snapshot with what joins and groupings need; pure.

    Args:
        tree: the join tree.
        schemas: by field name, for all nodes that have a snapshot; a node without one is left out
            together with what hangs on it. What hangs on a node that is left out is not looked at.
        others: settings of the joined sources, by field name.
        relationships: by name.
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
            _missing_fields(child, tree, schemas, others[child.field_name], relationships), None
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
                if found is None or not matches(field.data_type, found.data_type):
                    yield MissingField(
                        child,
                        side,
                        ExclusionReason.JOIN_FIELD_MISSING,
                        settings.join_field_missing_mode,
                        field.field_name,
                        _names(schema) if found is None else found.data_type.simpleString(),
                        to_spark(field.data_type).simpleString(),
                    )


NAMES_SHOWN = 12
"""Columns that a message lists; more would hide the point."""


def _names(schema: spark.StructType) -> str:
    shown = ", ".join(schema.names[:NAMES_SHOWN])
    more = len(schema.names) - NAMES_SHOWN
    return f"only {shown}" + (f" and {more} more" if more > 0 else "") if shown else "no columns"

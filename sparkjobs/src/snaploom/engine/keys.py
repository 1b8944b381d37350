"""Join keys: from a relationship's declaration to expressions over the columns of one source.

Both sides of a join are compared in `castDataType`, and what cannot be cast is NULL, which matches
nothing (`join.md` section 1.3). The cast is left out where it cannot change which rows match: both
sides are bare fields of one plain type, so that text of equal values is equal and of different ones
different. It is worth leaving out: a bucketed source is shuffled again once its key is cast
(`join.md` section 4, "Keys").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.fields import Found, find_field
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import STRING
from snaploom.models.datarelationship import DataRelationship, KeyComponent
from snaploom.planning.tree import JoinNode, JoinTree
from snaploom.sparkgate.gate import SqlPlace, check_resolved, checked_expression

PLAIN_TYPES = (
    spark.BooleanType(),
    spark.ByteType(),
    spark.ShortType(),
    spark.IntegerType(),
    spark.LongType(),
    spark.DateType(),
    spark.StringType(),
)
"""Types whose values are equal exactly when their text is. Not so floating point numbers (two
zeros, many NaN), timestamps (two instants of an autumn night have one text) and collated text."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One component of a key as an expression over the columns of one source."""

    expression: str
    """SQL over the source's columns."""
    field: Found | None
    """The field, where the expression is nothing but a field."""
    cast: spark.DataType | None
    """Type to cast to; None when the cast is left out."""

    def column(self, session: SparkSession, relationship: str) -> Column:
        """The expression as Spark's.

        A query is wrapped in a `coalesce` of one argument, which the optimiser removes: inside it
        the analyser refuses what would change the number of rows (generators, aggregates).

        Args:
            session: resolves it.
            relationship: name of the relationship that declares it.

        Raises:
            SourceSchemaInvalid: a query has what it may not.
        """
        if self.field is not None:
            value = sf.col(self.field.expression)
        else:
            place = _place(relationship)
            value = sf.coalesce(checked_expression(session, self.expression, place).column)
        return value if self.cast is None else value.try_cast(self.cast)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """The key of one join, as the parent (left) and the child (right) write it."""

    left: tuple[KeyPart, ...]
    right: tuple[KeyPart, ...]


def join_keys(
    tree: JoinTree,
    schemas: Mapping[str, spark.StructType],
    relationships: Mapping[str, DataRelationship],
) -> dict[int, JoinKey]:
    """The key of every join both of whose sides have a schema, by the number of the child.

    Args:
        tree: the join tree.
        schemas: schemas of the included nodes, by field name; every field of a key is there, which
            `snaploom.engine.schemachecks` has proved.
        relationships: by name.
    """
    keys: dict[int, JoinKey] = {}
    for child in tree.joins:
        if child.field_name in schemas and child.parent in schemas:
            parent = tree.node(child.parent)
            relationship = relationships[child.relationship]
            pairs = [
                _pair(left, schemas[parent.field_name], right, schemas[child.field_name])
                for left, right in zip(
                    components(relationship, parent), components(relationship, child), strict=True
                )
            ]
            keys[child.number] = JoinKey(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
    return keys


def components(relationship: DataRelationship, node: JoinNode) -> tuple[KeyComponent, ...]:
    """The key as the source of a node writes it; validation has proved that it has one."""
    key = relationship.spec.join_key_of(node.source)
    assert key is not None
    return key


def _pair(
    left: KeyComponent,
    left_schema: spark.StructType,
    right: KeyComponent,
    right_schema: spark.StructType,
) -> tuple[KeyPart, KeyPart]:
    left_field, right_field = _bare_field(left, left_schema), _bare_field(right, right_schema)
    wanted = to_spark(left.cast_data_type)
    if left_field is not None and right_field is not None:
        same = left_field.data_type == right_field.data_type
        if same and left.cast_data_type == STRING and left_field.data_type in PLAIN_TYPES:
            wanted = left_field.data_type
    return _part(left, left_field, wanted), _part(right, right_field, wanted)


def _part(component: KeyComponent, field: Found | None, wanted: spark.DataType) -> KeyPart:
    if field is None:
        return KeyPart(component.query or "", None, wanted)
    return KeyPart(field.expression, field, None if field.data_type == wanted else wanted)


def _bare_field(component: KeyComponent, schema: spark.StructType) -> Found | None:
    return find_field(schema, component.fields_[0].field_name) if component.query is None else None


def check_keys(made: DataFrame, source: DataFrame, parts: Mapping[str, list[KeyPart]]) -> None:
    """Refuse key expressions that come to more than SQL may.

    Args:
        made: the source's columns and its keys.
        source: the source's columns.
        parts: key expressions by name of the relationship.

    Raises:
        SourceSchemaInvalid: naming the relationships whose keys are no bare fields.
    """
    declared = [name for name, ones in parts.items() if any(one.field is None for one in ones)]
    if declared:
        check_resolved(made, [source], _place(", DataRelationship/".join(declared)))


def _place(relationship: str) -> SqlPlace:
    return SqlPlace(
        f"DataRelationship/{relationship}",
        "spec.representations[].joinKey[].query",
        SourceSchemaInvalid,
        "an expression of one value a row, of listed functions",
    )


def refuse_broken_keys(
    frame: DataFrame, node: JoinNode, parts: Mapping[str, list[KeyPart]]
) -> None:
    """Name the key expression that Spark refuses; called once a select with all of them failed.

    Args:
        frame: the source's columns.
        node: the node of the source.
        parts: key expressions by name of the relationship.

    Raises:
        SourceSchemaInvalid: for the first expression that is refused by itself.
    """
    for relationship, expressions in parts.items():
        for part in expressions:
            try:
                frame.select("*", part.column(frame.sparkSession, relationship))
            except AnalysisException as refusal:
                raise SourceSchemaInvalid(
                    f"the join key cannot be evaluated on DataSource/{node.source}",
                    resource=f"DataRelationship/{relationship}",
                    path="spec.representations[].joinKey[]",
                    found=f"{part.expression}: {str(refusal).splitlines()[0]}",
                    expected="an expression of one value a row"
                    + ("" if part.cast is None else f" that can be cast to {_name(part.cast)}"),
                    hint="correct query, fields or castDataType",
                ) from refusal


def _name(data_type: spark.DataType) -> str:
    return data_type.simpleString()

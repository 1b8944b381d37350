"""Join keys: from a relationship's declaration to expressions over the columns of one source.

Both sides of a join are compared in `castDataType`, and what cannot be cast is NULL, which matches
nothing (rule W27). Data of a type that the declared one holds without loss is cast to the declared
one before that, where its keys would be others (`snaploom.engine.keytypes`). The cast is left out
where it cannot change which rows match: both sides are bare fields of one plain type, so that text
of equal values is equal and of different ones different. It is worth leaving out: a bucketed source
is shuffled again once its key is cast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.fields import Found, find_field
from snaploom.engine.keytypes import first_cast
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import STRING
from snaploom.models.datarelationship import DataRelationship, KeyComponent
from snaploom.planning.sqlgate.nondeterminism import CHANGES_ROWS
from snaploom.planning.tree import JoinNode, JoinTree
from snaploom.sparkgate.gate import SqlPlace, check_resolved, checked_expression

_PLAIN_TYPES = (
    spark.BooleanType(),
    spark.ByteType(),
    spark.ShortType(),
    spark.IntegerType(),
    spark.LongType(),
    spark.FloatType(),
    spark.DoubleType(),
    spark.DateType(),
    spark.StringType(),
)
"""Types that need no text to be compared: their values are equal exactly when their text is, but
for the two zeros of floating point numbers, which are equal and have two texts. Decimals of one
precision and scale are such a type too. Not so timestamps (two instants of an autumn night have one
text) and collated text."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One component of a key as an expression over the columns of one source."""

    expression: str
    """SQL over the source's columns."""
    field: Found | None
    """The field, where the expression is nothing but a field."""
    cast: spark.DataType | None
    """Type to cast to; None when the cast is left out."""
    first_casts: tuple[tuple[Found, spark.DataType], ...] = ()
    """Fields whose data is cast to the declared type before anything else reads it."""

    @property
    def is_bare(self) -> bool:
        """Whether the component is a field as it stands in the data."""
        return self.field is not None and self.cast is None and not self.first_casts

    @property
    def identity(self) -> tuple[str, str, str]:
        """Equal for two parts over one source exactly when they are computed in one way."""
        first = ", ".join(f"{field.expression} {to.json()}" for field, to in self.first_casts)
        return self.expression, first, "" if self.cast is None else self.cast.json()

    def column(self, session: SparkSession, relationship: str) -> Column:
        """The expression as Spark's.

        A query is wrapped in a `coalesce` of one argument, which the optimiser removes: inside it
        the analyser refuses what would change the number of rows (generators, aggregates).

        Raises:
            SourceSchemaInvalid: a query has what it may not.
        """
        # What fails is beyond the type's range: an error, not a NULL.
        taken = {
            field.parts: sf.col(field.expression).cast(wanted) for field, wanted in self.first_casts
        }
        if self.field is not None:
            value = taken.get(self.field.parts, sf.col(self.field.expression))
        else:
            place = _place(relationship)
            checked = checked_expression(session, self.expression, place, columns=taken)
            value = sf.coalesce(checked.column)
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

    `schemas` are those of the included nodes, by field name; every field of a key exists, as
    `snaploom.engine.schemachecks` has proved.
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
        taken_as = _taken_as(left, left_field)
        same = taken_as == _taken_as(right, right_field)
        if same and left.cast_data_type == STRING and _is_plain(taken_as):
            wanted = taken_as
    return (
        _part(left, left_field, left_schema, wanted),
        _part(right, right_field, right_schema, wanted),
    )


def _taken_as(component: KeyComponent, field: Found) -> spark.DataType:
    return first_cast(component.fields_[0], field.data_type, component) or field.data_type


def _is_plain(data_type: spark.DataType) -> bool:
    return data_type in _PLAIN_TYPES or isinstance(data_type, spark.DecimalType)


def _part(
    component: KeyComponent,
    field: Found | None,
    schema: spark.StructType,
    wanted: spark.DataType,
) -> KeyPart:
    casts = tuple(_first_casts(component, schema))
    if field is None:
        return KeyPart(component.query or "", None, wanted, casts)
    has_type = wanted == (casts[0][1] if casts else field.data_type)
    return KeyPart(field.expression, field, None if has_type else wanted, casts)


def _first_casts(
    component: KeyComponent, schema: spark.StructType
) -> Iterator[tuple[Found, spark.DataType]]:
    for declared in component.fields_:
        found = find_field(schema, declared.field_name)
        wanted = None if found is None else first_cast(declared, found.data_type, component)
        if found is not None and wanted is not None:
            yield found, wanted


def _bare_field(component: KeyComponent, schema: spark.StructType) -> Found | None:
    return find_field(schema, component.fields_[0].field_name) if component.query is None else None


def check_keys(made: DataFrame, source: DataFrame, parts: Mapping[str, list[KeyPart]]) -> None:
    """Refuse key expressions that come to more than SQL may.

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
        varying=CHANGES_ROWS,
    )


def refuse_broken_keys(
    frame: DataFrame, node: JoinNode, parts: Mapping[str, list[KeyPart]]
) -> None:
    """Name the key expression that Spark refuses; called once a select with all of them failed.

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

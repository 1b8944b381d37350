"""Columns without any value, of files that have no types: `customer_id` of a day without customers.

CSV and JSON have types only as their values show them, and Spark infers text where there is no
value. Such a column has no type of its own, and NULL is a value of every type: it is read as
published snapshots have the column, or as the key is declared that it is part of. A column of text
that has a value stays one; whether it has is asked only where another type is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.fields import find_field
from snaploom.engine.keys import components
from snaploom.engine.schemadocument import struct_from
from snaploom.engine.sources.port import SourceFrame
from snaploom.jobs.weaving.schemahistory import SchemaHistory
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.fieldpaths import quote
from snaploom.planning.sources.registry import declared
from snaploom.planning.tree import JoinNode, JoinTree
from snaploom.planning.typemerge import merge_schemas
from snaploom.storage.state import FolderState

_DATA = "data"
_NESTED = (spark.ArrayType, spark.MapType, spark.StructType)


class ValuelessColumns:
    """Gives columns without any value the types that are wanted of them."""

    def __init__(self, bundle: Bundle, tree: JoinTree, history: SchemaHistory) -> None:
        """Find out which sources it is about.

        Args:
            bundle: the output, with everything that it refers to.
            tree: its join tree.
            history: schemas of what is published.
        """
        self._tree = tree
        self._history = history
        self._nodes = {
            node.field_name: node
            for node in tree.nodes
            if declared(bundle.source(node.source)).unknown_schema
        }
        self._relationships = {one.name: one for one in bundle.data_relationships}

    @property
    def sources(self) -> frozenset[str]:
        """The sources that have only inferred types."""
        return frozenset(node.source for node in self._nodes.values())

    def published(self, state: FolderState, time: EpochNanos) -> spark.StructType | None:
        """The type of published rows; None where those cannot be read together.

        Args:
            state: of the output's folder.
            time: of the snapshot that is woven, whose published version counts for nothing.
        """
        merged = merge_schemas([one for one in self._history.schemas(state) if one[0] != time])
        return None if merged.conflicts else struct_from(merged.schema)

    def typed(
        self,
        field_name: str,
        found: SourceFrame,
        published: Callable[[], spark.StructType | None],
    ) -> SourceFrame:
        """The frame of a source, with types for its columns without any value.

        Args:
            field_name: of the node.
            found: what was read for it.
            published: the type of published rows; asked where a column may have no value.
        """
        node = self._nodes.get(field_name)
        texts = {f.name for f in found.frame.schema if isinstance(f.dataType, spark.StringType)}
        if node is None or not texts:
            return found
        known = self._published(node, found.frame, published())
        wanted = {**self._of_keys(node, found.frame), **known}
        untyped = {name: wanted[name] for name in wanted if name in texts}
        return replace(found, frame=_cast_empty(found.frame, untyped)) if untyped else found

    def _of_keys(self, node: JoinNode, frame: DataFrame) -> dict[str, spark.DataType]:
        """By column, the declared types of the keys that the node has a part in."""
        types: dict[str, spark.DataType] = {}
        for child in self._tree.joins:
            if node.number not in (child.number, child.parent_number):
                continue
            for component in components(self._relationships[child.relationship], node):
                for key_field in component.fields_:
                    column = find_field(frame.schema, key_field.field_name)
                    if column is not None and len(column.parts) == 1:
                        types.setdefault(column.parts[0], to_spark(key_field.data_type))
        return _of_values(types)

    def _published(
        self, node: JoinNode, frame: DataFrame, rows: spark.DataType | None
    ) -> dict[str, spark.DataType]:
        """By column, the types that published rows have for a node."""
        place = rows
        for name in (*self._tree.path(node.number), _DATA):
            place = _below(place, name)
        types = {name: _below(place, name) for name in frame.columns}
        return _of_values({name: known for name, known in types.items() if known is not None})


def _below(place: spark.DataType | None, name: str) -> spark.DataType | None:
    """The type of a field of a struct, or of the structs in a list."""
    within = place.elementType if isinstance(place, spark.ArrayType) else place
    if not isinstance(within, spark.StructType):
        return None
    same = (f.dataType for f in within if f.name.casefold() == name.casefold())
    return next(same, None)


def _of_values(types: Mapping[str, spark.DataType]) -> dict[str, spark.DataType]:
    """Types of single values that are not text."""
    return {
        name: data_type
        for name, data_type in types.items()
        if not isinstance(data_type, (spark.StringType, *_NESTED))
    }


def _cast_empty(frame: DataFrame, wanted: Mapping[str, spark.DataType]) -> DataFrame:
    """The frame, with each of these columns that has no value as the wanted type."""
    counts = frame.agg(*(sf.count(sf.col(quote(name))) for name in wanted)).collect()[0]
    empty = {name for name, count in zip(wanted, counts, strict=True) if count == 0}
    if not empty:
        return frame
    return frame.select(
        *(
            sf.lit(None)
            .cast(wanted[field.name])
            .alias(field.name, metadata=dict(field.metadata or {}))
            if field.name in empty
            else sf.col(quote(field.name))
            for field in frame.schema
        )
    )

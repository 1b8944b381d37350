"""Files of a size with rows brought together, and columns without any value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark
from pyspark.sql.types import StructType

from snaploom import ondemand
from snaploom.engine.keys import components
from snaploom.engine.write import WrittenFiles, read_files, under_schema, write_frame
from snaploom.errors import IndexNotPossible, PublicationError
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.models.outputdataset import DataCompression, OutputDataset
from snaploom.output import layout
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.run.weaving.history import SchemaHistory
from snaploom.skipping.core.valueorder import TARGET_FILE_SIZE, SortRequest
from snaploom.sources.port import SourceFrame
from snaploom.sources.registry import declared
from snaploom.spark.types import find_field, struct_from, to_spark
from snaploom.types.merge import merge_schemas
from snaploom.types.schemas import quote

if TYPE_CHECKING:
    from snaploom.skipping.spark.builds.clusteredwrite import Clustering

# Files of a size, with rows brought together (`targetFileSizeMiB`, `clusterBy`).

_WOVEN = "_work/woven/"
"""Folder of rows before they are arranged: in staging, below a name that is no data."""


class Shaping:
    """Declared layout of the files of one snapshot; nothing to do without one."""

    def __init__(
        self,
        spark: SparkSession,
        output: OutputDataset,
        compression: DataCompression,
        store: ObjectStore,
        schema: StructType,
    ) -> None:
        """Find the columns."""
        self._spark = spark
        self._folder = output.spec.output_folder
        self._compression = compression
        self._store = store
        target = self._folder.target_file_size_mib
        self._target = TARGET_FILE_SIZE if target is None else target << 20
        self._is_wanted = target is not None or bool(self._folder.cluster_by)
        self._request = SortRequest(self._folder.cluster_by, target_file_size=self._target)
        self._clustering = self._resolved(output, schema) if self._folder.cluster_by else None

    def place(self, uri: str) -> str:
        """Where the woven rows are to be written first."""
        return f"{uri}{_WOVEN}" if self._is_wanted else uri

    def arrange(self, uri: str, schema: StructType, rows: int) -> None:
        """Let the files lie as they shall."""
        if not self._is_wanted:
            return
        listed = self._store.list(self._key(self.place(uri)))
        woven = [info for info in listed if layout.is_data_file(info.key.rpartition("/")[2])]
        size = sum(info.size for info in woven)
        wanted = ondemand.balanced(size, self._target)
        if not rows or (self._clustering is None and len(woven) == wanted):
            for info in woven:
                name = info.key.rpartition("/")[2]
                self._store.move_if_absent(info.key, f"{self._key(uri)}{name}")
            return
        data_format = self._folder.data_format
        frame = read_files(self._spark, [self.place(uri)], data_format, schema)
        if self._clustering is None:
            frame = frame.repartition(wanted)
        else:
            frame = ondemand.sorted_frame(frame, self._clustering, self._request, size, rows)
        arranged = under_schema(frame, schema)
        write_frame(
            arranged,
            uri,
            data_format,
            self._compression,
            column_metadata=self._folder.column_metadata,
            into_existing=True,
        )
        found = WrittenFiles(self._spark, uri, data_format, schema).rows()
        if found != rows:
            raise PublicationError(
                "rows were lost or doubled while they were arranged in files",
                found=f"{found:,} rows",
                expected=f"{rows:,} rows",
                hint="run again; nothing was published",
            )

    def _resolved(self, output: OutputDataset, schema: StructType) -> Clustering:
        try:
            return ondemand.clustering_under(self._spark, schema, self._request)
        except IndexNotPossible as error:
            raise PublicationError(
                f"rows cannot be clustered: {error.message}",
                resource=output.identity,
                path="spec.outputFolder.clusterBy",
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            ) from error

    def _key(self, uri: str) -> str:
        return uri.removeprefix(self._store.uri)


# Columns without any value, of files that have no types: `customer_id` of a day without customers.

_DATA = "data"
_NESTED = (spark.ArrayType, spark.MapType, spark.StructType)


class ValuelessColumns:
    """Gives columns without any value the types that are wanted of them."""

    def __init__(self, bundle: Bundle, tree: JoinTree, history: SchemaHistory) -> None:
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

        The published version of the snapshot at `time` counts for nothing.
        """
        merged = merge_schemas([one for one in self._history.schemas(state) if one[0] != time])
        return None if merged.conflicts else struct_from(merged.schema)

    def typed(
        self,
        field_name: str,
        found: SourceFrame,
        published: Callable[[], spark.StructType | None],
    ) -> SourceFrame:
        """The frame of a source, with types for its columns without any value."""
        node = self._nodes.get(field_name)
        texts = {f.name for f in found.frame.schema if isinstance(f.dataType, spark.StringType)}
        if node is None or not texts:
            return found
        known = self._published(node, found.frame, published())
        types: dict[str, spark.DataType] = {}
        for child in self._tree.joins:
            if node.number not in (child.number, child.parent_number):
                continue
            for component in components(self._relationships[child.relationship], node):
                for key_field in component.fields_:
                    column = find_field(found.frame.schema, key_field.field_name)
                    if column is not None and len(column.parts) == 1:
                        types.setdefault(column.parts[0], to_spark(key_field.data_type))
        wanted = {**_of_values(types), **known}
        untyped = {name: wanted[name] for name in wanted if name in texts}
        return replace(found, frame=_cast_empty(found.frame, untyped)) if untyped else found

    def _published(
        self, node: JoinNode, frame: DataFrame, rows: spark.DataType | None
    ) -> dict[str, spark.DataType]:
        place = rows
        for name in (*self._tree.path(node.number), _DATA):
            place = _below(place, name)
        types = {name: _below(place, name) for name in frame.columns}
        return _of_values({name: known for name, known in types.items() if known is not None})


def _below(place: spark.DataType | None, name: str) -> spark.DataType | None:
    within = place.elementType if isinstance(place, spark.ArrayType) else place
    if not isinstance(within, spark.StructType):
        return None
    same = (f.dataType for f in within if f.name.casefold() == name.casefold())
    return next(same, None)


def _of_values(types: Mapping[str, spark.DataType]) -> dict[str, spark.DataType]:
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

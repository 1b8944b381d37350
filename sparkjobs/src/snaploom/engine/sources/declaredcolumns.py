"""Declarations about the columns of a source, carried out once they are read.

The order is always the same: read, transformers, applicators, and the snapshot's field is dropped
last, so that both can see it (rule W20).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from snaploom.engine.columnmetadata import relabelled
from snaploom.engine.failures import translate
from snaploom.engine.fields import find_field
from snaploom.engine.sources.fieldtransformers import Columns, transformed
from snaploom.engine.sources.metadatafields import applied
from snaploom.engine.sources.port import SourceFrame, SourceReader
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.models.times import EpochNanos
from snaploom.planning.fieldpaths import quote
from snaploom.planning.intervals import SourceSnapshots


@dataclass(frozen=True)
class ShapedReader:
    """A source whose columns are as its declarations want them."""

    source: SourceReader
    variant: str
    """Field of `spec` that declares it, such as `hdfsLike`."""
    transformers: tuple[FieldTransformer, ...] = ()
    applicators: tuple[MetadataApplicator, ...] = ()

    @property
    def name(self) -> str:
        """Name of the DataSource."""
        return self.source.name

    def listing(self) -> SourceSnapshots:
        """The snapshots of the source."""
        return self.source.listing()

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """One snapshot in its final shape.

        Raises:
            SourceSchemaInvalid: a transformer cannot be carried out, or the snapshot's field is all
                that its struct has.
            SourceError: the source cannot be read.
            SnapshotMissing: the snapshot is not listed.
        """
        read = self.source.read(snapshot)
        resource = f"DataSource/{self.name}"
        columns = Columns(read.frame, read.snapshot_field)
        columns = transformed(columns, self.transformers, read.time, resource)
        schema = applied(columns.frame.schema, self.applicators)
        frame = relabelled(columns.frame, schema)
        if columns.snapshot_field:
            frame = self._without(frame, columns.snapshot_field)
        fingerprint = self._fingerprint(read.fingerprint)
        return replace(
            read,
            frame=frame,
            fingerprint=fingerprint,
            snapshot_field=(),
            unshaped=read.frame.schema,
        )

    def _fingerprint(self, read: str) -> str:
        shapes = [
            *(transformer.spec.model_dump_json() for transformer in self.transformers),
            *(applicator.spec.model_dump_json() for applicator in self.applicators),
        ]
        if not shapes:
            return read
        return hashlib.sha256("\n".join([read, *shapes]).encode()).hexdigest()

    def _without(self, frame: DataFrame, parts: tuple[str, ...]) -> DataFrame:
        """The frame without a field, which may lie in structs; one that is gone stays gone."""
        if find_field(frame.schema, ".".join(map(quote, parts))) is None:
            return frame
        top, *below = parts
        columns = [
            sf.col(quote(field.name)) for field in frame.schema.fields if below or field.name != top
        ]
        if not below:
            return frame.select(*columns)
        position = frame.schema.names.index(top)
        metadata = frame.schema.fields[position].metadata
        inner = ".".join(quote(part) for part in below)
        columns[position] = columns[position].dropFields(inner).alias(top, metadata=metadata)
        try:
            return frame.select(*columns)
        except PySparkException as error:
            raise SourceSchemaInvalid(
                f"dropField would leave nothing of a struct: {translate(error).message}",
                resource=f"DataSource/{self.name}",
                path=f"spec.{self.variant}.snapshot.fromFieldValue.dropField",
                found=".".join(parts),
                hint="set dropField to false",
            ) from error

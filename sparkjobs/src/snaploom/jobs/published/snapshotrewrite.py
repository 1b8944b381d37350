"""One published snapshot read, written once more in another order, and proved to be the same."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.published import column_metadata_of, read_files, under_schema
from snaploom.engine.retries import TASK_PATIENCE, await_tasks
from snaploom.engine.schemadocument import struct_from
from snaploom.engine.write import write_frame
from snaploom.errors import IndexNotPossible, SortNotPossible
from snaploom.jobs.published.contentcheck import refuse_foreign_types
from snaploom.models.outputfolder import DataCompression, DataFormat
from snaploom.models.times import format_instant
from snaploom.skipping.advice.sortrequest import Checksum, SortRequest
from snaploom.skipping.spark.builds.clusteredwrite import Clustering
from snaploom.skipping.spark.interfaces.sort import checksum, clustering_under, sorted_frame
from snaploom.storage.entries import FolderSettings, SnapshotRecord
from snaploom.storage.objectstore import ObjectStore, refuse_links
from snaploom.storage.replacement import Rewrite
from snaploom.storage.schemadocuments import read_schema


@dataclass(frozen=True)
class Rewriting:
    """A snapshot to be written in another order."""

    session: SparkSession
    """Reads and writes."""
    store: ObjectStore
    """The folder's store."""
    settings: FolderSettings
    """Format and compression."""
    record: SnapshotRecord
    """The live version."""
    schema: StructType
    """Its schema, as it was written."""
    clustering: Clustering
    """The order."""
    request: SortRequest
    """The size of files."""

    def write(self, uri: str) -> tuple[Rewrite, Checksum]:
        """Write the rows into a folder that does not exist yet, and read them back.

        Raises:
            SortNotPossible: the files that are read are not those that were published, or what is
                read back is not what was read.
        """
        data_format = DataFormat(self.settings.data_format)
        files = [f"{self.store.uri}{file.path}" for file in self.record.files]
        frame = read_files(self.session, files, data_format, self.schema)
        before = checksum(frame)
        if before.rows != self.record.rows:
            raise SortNotPossible(
                f"snapshot {format_instant(self.record.time)} is not as it was published",
                found=f"{before.rows:,} rows in its files",
                expected=f"{self.record.rows:,} rows",
                hint="restore its files from a backup; nothing was changed",
            )
        size = sum(file.bytes for file in self.record.files)
        ordered = sorted_frame(frame, self.clustering, self.request, size, before.rows)
        compression = DataCompression(self.settings.data_compression)
        try:
            write_frame(
                under_schema(ordered, self.schema),
                uri,
                data_format,
                compression,
                column_metadata=column_metadata_of(self.session, files, data_format),
            )
        except BaseException:
            # Tasks outlive the job that failed; what they write must not come after the cleaning.
            await_tasks(self.session, TASK_PATIENCE)
            raise
        after = checksum(read_files(self.session, [uri], data_format, self.schema))
        if after != before:
            raise SortNotPossible(
                f"{data_format.value} does not give back what was written",
                found=str(after),
                expected=str(before),
                hint="the snapshot is as it was",
            )
        return Rewrite(after.rows, self.session.version), after


def rewriting_of(
    session: SparkSession,
    store: ObjectStore,
    settings: FolderSettings,
    record: SnapshotRecord,
    request: SortRequest,
) -> Rewriting:
    """Prepare to sort a snapshot; its files are not read yet.

    Raises:
        IndexNotPossible: the snapshot cannot be sorted by these columns.
    """
    schema = struct_from(read_schema(store, record.schema_hash))
    files = [file.path for file in record.files]
    refuse_links(store, files)
    if DataFormat(settings.data_format).of_files is DataFormat.PARQUET:
        refuse_foreign_types(store, files)
    try:
        clustering = clustering_under(session, schema, request)
    except IndexNotPossible as error:
        error.message = f"snapshot {format_instant(record.time)}: {error.message}"
        raise
    return Rewriting(session, store, settings, record, schema, clustering, request)

"""Published files, read and written again: one snapshot's own, under the very schema they have."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from snaploom.engine.columnmetadata import without_metadata
from snaploom.engine.formats import READ_OPTIONS, SPARK_FORMATS
from snaploom.engine.schemadocument import schema_of
from snaploom.models.outputfolder import ColumnMetadata, DataFormat

_LITERAL_PATHS = {"__globPaths__": "false"}
"""Spark's own option: brackets and stars in a path are letters."""
_WHOLE_FILES = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # Spark writes checksums of pages, and does not look at them by itself.
    "parquet.page.verify-checksum.enabled": "true",
}
"""A file that differs from the written one fails the job, under any settings of the session."""


def read_files(
    session: SparkSession, uris: Sequence[str], data_format: DataFormat, schema: spark.StructType
) -> DataFrame:
    """The rows of some published files, or of a folder of them, without the partition column.

    As in every DataFrame that Spark reads from files, every column may be NULL. The schema is the
    one recorded when they were written.
    """
    options = {**READ_OPTIONS[data_format], **_LITERAL_PATHS, **_WHOLE_FILES}
    reader = session.read.format(SPARK_FORMATS[data_format]).options(**options).schema(schema)
    return reader.load(list(uris))


def column_metadata_of(
    session: SparkSession, uris: Sequence[str], data_format: DataFormat
) -> ColumnMetadata:
    """Where the metadata of columns is kept, as the first file shows; only Parquet's has any."""
    if data_format.of_files is not DataFormat.PARQUET or not uris:
        return ColumnMetadata.BOTH
    options = {**_LITERAL_PATHS, **_WHOLE_FILES}
    frame = session.read.format(SPARK_FORMATS[data_format]).options(**options).load(uris[0])
    schema = schema_of(frame)
    return ColumnMetadata.MANIFEST if schema == without_metadata(schema) else ColumnMetadata.BOTH


def under_schema(frame: DataFrame, schema: spark.StructType) -> DataFrame:
    """The same rows with columns that are NOT NULL where they are in the schema.

    Spark forgets that when it reads files, and would write other files than those it read. Nothing
    is checked here: the writer of the frame must compare what is read back with what was read. The
    schema differs from the frame's only in nullability.
    """
    if frame.schema == schema:
        return frame
    session = frame.sparkSession
    context = session.sparkContext
    types = context._gateway.jvm.org.apache.spark.sql.types  # type: ignore[union-attr]
    rows = frame._jdf.queryExecution().toRdd()
    declared = types.DataType.fromJson(schema.json())
    java_frame = session._jsparkSession.internalCreateDataFrame(rows, declared, False)
    return DataFrame(java_frame, session)

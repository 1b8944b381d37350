"""Writing a woven frame into a staging folder, in each format with each compression.

Everything is an option of the one write: the session is shared with readers and other outputs.
Success is the return of this call and nothing in the folder, so no `_SUCCESS` is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from snaploom.engine.columnmetadata import relabelled, without_metadata
from snaploom.engine.committers import committer_options, remove_marker
from snaploom.engine.formats import JSON_OPTIONS, SPARK_FORMATS
from snaploom.engine.outputschema import refuse_unwritable
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.outputfolder import (
    UNWRITABLE,
    ColumnMetadata,
    DataCompression,
    DataFormat,
)

_CODECS: Mapping[DataFormat, Mapping[DataCompression, str]] = {
    DataFormat.PARQUET: {
        DataCompression.SNAPPY: "snappy",
        DataCompression.ZSTD: "zstd",
        DataCompression.GZIP: "gzip",
        DataCompression.NONE: "uncompressed",
    },
    DataFormat.AVRO: {
        DataCompression.SNAPPY: "snappy",
        DataCompression.ZSTD: "zstandard",
        DataCompression.NONE: "uncompressed",
    },
    DataFormat.JSONL: {
        DataCompression.SNAPPY: "snappy",
        DataCompression.GZIP: "gzip",
        DataCompression.NONE: "none",
    },
}

_DICTIONARY_BYTES = 64 << 10
"""Largest dictionary of a Parquet column under Zstandard, which finds repetitions in plain pages
itself. Parquet's own 1 MiB holds tens of thousands of values, and looking one up for every row
waits for memory: a quarter of a weave, for files that are no smaller (`docs/design/speed.md`)."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of Spark's write."""

    format: str
    """Name or class of the data source."""
    options: Mapping[str, str]


def write_options(data_format: DataFormat, compression: DataCompression) -> WriteOptions:
    """Options to write a format with a compression; validation refuses all other pairs (rule W32).

    Raises:
        KeyError: for a pair that Spark cannot write.
    """
    assert (data_format, compression) not in UNWRITABLE
    options = {
        "compression": _CODECS[data_format.of_files][compression],
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if data_format is DataFormat.JSONL:
        options |= JSON_OPTIONS
    if data_format.of_files is DataFormat.PARQUET and compression is DataCompression.ZSTD:
        options["parquet.dictionary.page.size"] = str(_DICTIONARY_BYTES)
    return WriteOptions(SPARK_FORMATS[data_format], options)


def write_frame(
    frame: DataFrame,
    uri: str,
    data_format: DataFormat,
    compression: DataCompression,
    *,
    column_metadata: ColumnMetadata = ColumnMetadata.BOTH,
    into_existing: bool = False,
    folders_by: str | None = None,
) -> spark.StructType:
    """Write a frame into a folder of its own; returns the schema with which to read it.

    The folder must not exist yet, unless `into_existing` is true. With `column_metadata`
    MANIFEST the files hold no metadata of columns, the schema that is returned does (rule W31).
    With `folders_by` the rows of each value of that column are in a folder such as `column=1`, and
    the column is neither in the files nor in the schema.

    Errors of the job itself (a broken source file, a full disk) pass through.

    Raises:
        SourceSchemaInvalid: the format cannot hold the schema.
    """
    schema = spark.StructType([field for field in frame.schema if field.name != folders_by])
    refuse_unwritable(schema, data_format)
    how = write_options(data_format, compression)
    options = {**how.options, **committer_options(frame.sparkSession, uri)}
    stored = frame
    if column_metadata is ColumnMetadata.MANIFEST:
        stored = relabelled(frame, without_metadata(frame.schema))
    writer = stored.write.format(how.format).options(**options)
    if folders_by is not None:
        writer = writer.partitionBy(folders_by)
    try:
        writer.mode("append" if into_existing else "error").save(uri)
        remove_marker(frame.sparkSession, uri)
    except AnalysisException as refusal:
        if not (refusal.getCondition() or "").startswith("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"):
            raise
        raise SourceSchemaInvalid(
            f"{data_format.value} cannot hold a column of this type",
            found=str(refusal).splitlines()[0],
            expected=f"types that {data_format.value} files can hold",
            hint="cast the column in a simpleVirtual source, or leave it out",
        ) from refusal
    return written_schema(schema, data_format)


def count_written(
    spark_session: SparkSession, uri: str, data_format: DataFormat, schema: spark.StructType
) -> int:
    """Rows of the files in a folder, counted from the files (Parquet: from their footers)."""
    reader = spark_session.read.format(SPARK_FORMATS[data_format]).schema(schema)
    return reader.load(uri).count()


def written_schema(schema: spark.StructType, data_format: DataFormat) -> spark.StructType:
    """The schema that reads back the written files: Avro has no integers below 32 bits."""
    if data_format is not DataFormat.AVRO:
        return schema
    widened = _widened(schema)
    assert isinstance(widened, spark.StructType)
    return widened


def _widened(data_type: spark.DataType) -> spark.DataType:
    match data_type:
        case spark.ByteType() | spark.ShortType():
            return spark.IntegerType()
        case spark.ArrayType():
            return spark.ArrayType(_widened(data_type.elementType), data_type.containsNull)
        case spark.MapType():
            return spark.MapType(
                data_type.keyType, _widened(data_type.valueType), data_type.valueContainsNull
            )
        case spark.StructType():
            return spark.StructType(
                [
                    spark.StructField(f.name, _widened(f.dataType), f.nullable, f.metadata)
                    for f in data_type.fields
                ]
            )
        case _:
            return data_type

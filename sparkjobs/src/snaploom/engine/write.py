"""Writing a woven frame into a staging folder, and schemas that are refused before."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.publishedfiles import JSON_OPTIONS, READ_OPTIONS, SPARK_FORMATS
from snaploom.engine.schemachecks import refuse_unwritable
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.outputdataset import UNWRITABLE, ColumnMetadata, DataCompression, DataFormat
from snaploom.spark.jvm import committer_options, remove_marker
from snaploom.spark.types import relabelled, schema_of, without_metadata
from snaploom.types.schemas import SIMPLE_TYPES

# Published files, read and written again: one snapshot's own, under the very schema they have.

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
    """Return the place of the columns' metadata, from the first file; only Parquet has any."""
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


# Writing a woven frame into a staging folder, in each format with each compression.

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


_NOTED = frozenset(each.sql for each in SIMPLE_TYPES) - {"interval", "void"}
"""Types, as Spark prints them, that a Parquet file shows without Spark's own note in its footer."""
_BY_SPARK = {"maxRecordsPerFile": str(2**63 - 1)}
"""An option that changes nothing of a file, and with which Comet leaves the write to Spark."""


def needs_note(schema: spark.DataType) -> bool:
    """Whether files of a schema need Spark's own note of it, which Comet does not write."""
    match schema:
        case spark.StructType():
            return any(bool(f.metadata) or needs_note(f.dataType) for f in schema.fields)
        case spark.ArrayType():
            return needs_note(schema.elementType)
        case spark.MapType():
            return needs_note(schema.keyType) or needs_note(schema.valueType)
        case spark.DecimalType():
            return False
        case _:
            return schema.simpleString() not in _NOTED


def _options(data_format: DataFormat, compression: DataCompression) -> dict[str, str]:
    """Options of Spark's write; validation refuses all pairs that it has not (rule W32)."""
    assert (data_format, compression) not in UNWRITABLE
    options = {
        "compression": _CODECS[data_format.of_files][compression],
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if data_format is DataFormat.JSONL:
        options |= JSON_OPTIONS
    if data_format.of_files is DataFormat.PARQUET and compression is DataCompression.ZSTD:
        options["parquet.dictionary.page.size"] = str(_DICTIONARY_BYTES)
    return options


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
    """
    schema = spark.StructType([field for field in frame.schema if field.name != folders_by])
    refuse_unwritable(schema, data_format)
    options = {**_options(data_format, compression), **committer_options(frame.sparkSession, uri)}
    stored = frame
    if column_metadata is ColumnMetadata.MANIFEST:
        stored = relabelled(frame, without_metadata(frame.schema))
    if data_format.of_files is DataFormat.PARQUET and needs_note(stored.schema):
        options |= _BY_SPARK
    writer = stored.write.format(SPARK_FORMATS[data_format]).options(**options)
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


# Files of several snapshots, where an accelerator writes, which makes no folders by a column.

_TASK, _KEY = "_task", "_key"
"""Columns with the number of the task that is to write a row, and with a value that leads there."""
_FILE_OF_TASK = re.compile(r"part-([0-9]{5,10})-")


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders such as `column=1` for the rows of each value of a column, which counts from 0."""

    column: str
    values: int
    tasks: int
    """Tasks that write the rows of one value."""

    def brought_together(self, frame: DataFrame, spread_by: Sequence[Column]) -> DataFrame:
        """The rows without the column, those of a value in tasks of its own.

        A row that is not in its task is left out, so that counts of the files show it. Without
        columns to spread by, one task has all rows of a value.
        """
        task = sf.col(self.column) * self.tasks
        if self.tasks > 1 and spread_by:
            task += sf.pmod(sf.hash(*spread_by), sf.lit(self.tasks))
        tasks = self.values * self.tasks
        keys = sf.array(*map(sf.lit, _keys_of_tasks(frame.sparkSession, tasks)))
        placed = frame.withColumn(_TASK, task).withColumn(_KEY, keys[sf.col(_TASK)])
        written = placed.repartition(tasks, _KEY).where(sf.spark_partition_id() == sf.col(_TASK))
        return written.drop(_TASK, _KEY, self.column)

    def folder_of(self, file: str) -> str:
        """The folder of a file, by the number of its task in its name."""
        found = _FILE_OF_TASK.match(file)
        assert found is not None, file
        return f"{self.column}={int(found[1]) // self.tasks}"


def _keys_of_tasks(session: SparkSession, tasks: int) -> list[int]:
    """For each task of a shuffle a number whose rows come to it."""
    tried = f"SELECT transform(sequence(0, {tasks * 40}), key -> pmod(hash(key), {tasks}))"
    found = session.sql(tried).head()
    assert found is not None
    keys = {task: key for key, task in enumerate(found[0])}
    return [keys[task] for task in range(tasks)]


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files in a folder, as they were written."""

    session: SparkSession
    uri: str
    data_format: DataFormat
    schema: spark.StructType

    def rows(self) -> int:
        """Rows of the files, counted from them (Parquet: from their footers)."""
        return self.read(self.schema).count()

    def read(self, schema: spark.StructType) -> DataFrame:
        """Their rows under a schema that may leave out fields of theirs."""
        return read_files(self.session, [self.uri], self.data_format, schema)


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

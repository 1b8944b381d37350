"""`snaploom.read`: what an output has committed, as one DataFrame, and only that.

The manifest says which files belong to which snapshot; folders are never listed. One manifest
sequence is pinned for the whole read, so that a snapshot which is published or deleted meanwhile
changes nothing. Snapshots whose schemas differ are read together under the merged schema (types
widened, fields that are absent NULL), which Spark's own `mergeSchema` refuses to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from whenever import Instant

from snaploom.engine.conform import conform_frame
from snaploom.engine.formats import READ_OPTIONS, SPARK_FORMATS
from snaploom.errors import HistoryIncompatible, SnaploomError
from snaploom.models.outputfolder import DataFormat, TimestampFormat
from snaploom.models.times import EpochNanos, format_instant, parse_instant
from snaploom.planning.typemerge import merge_schemas
from snaploom.storage import layout
from snaploom.storage.entries import FolderSettings, SnapshotRecord
from snaploom.storage.folder import Folder, open_folder
from snaploom.storage.state import FolderState
from snaploom.storage.stores import open_store

Time = str | datetime | date
"""ISO 8601 text with `Z` or an offset, an aware datetime, or a date (midnight, UTC)."""


class NothingPublished(SnaploomError):
    """There is no snapshot to read."""

    reason = "NothingPublished"
    retryable = True


def read(
    spark: SparkSession,
    folder: str,
    *,
    at: Time | None = None,
    between: tuple[Time, Time] | None = None,
    manifest: int | None = None,
) -> DataFrame:
    """The published rows of an output, with the partition column last.

    Args:
        spark: any session of Spark.
        folder: URI or absolute path of the output's folder.
        at: only the newest snapshot at this time or before it.
        between: only snapshots from one time to another, both inclusive.
        manifest: sequence number to read as of; omitted, the newest. Files of snapshots that were
            deleted since are there until `readerGrace` has passed.

    Returns:
        A DataFrame with the schema merged over the snapshots chosen; all snapshots by default.
        Every column may be NULL, as in every DataFrame that Spark reads from files.

    Raises:
        NothingPublished: nothing is published, or nothing at `at` or before.
        HistoryIncompatible: the snapshots chosen cannot be read together; both are named.
        FolderNotOurs: this is not the folder of an output.
        ValueError: both `at` and `between`, or a time that cannot be read.
    """
    if at is not None and between is not None:
        raise ValueError("give either `at` or `between`, not both")
    opened = open_folder(open_store(folder, create=False))
    state = opened.log.read(manifest)
    if state.settings is None or not state.snapshots:
        raise NothingPublished(
            f"{opened.store.uri} has no published snapshot",
            hint="run the output first, or name a manifest at which there was one",
        )
    chosen = _chosen(state, at, between)
    return _Selection(spark, opened, state.settings, chosen or state.snapshots, not chosen).frame()


def _chosen(
    state: FolderState, at: Time | None, between: tuple[Time, Time] | None
) -> tuple[SnapshotRecord, ...]:
    if at is not None:
        limit = _instant(at)
        until = [record for record in state.snapshots if record.time <= limit]
        if not until:
            raise NothingPublished(
                f"there is no snapshot at {format_instant(limit)} or before",
                found=f"the first is {format_instant(state.snapshots[0].time)}",
            )
        return (until[-1],)
    if between is not None:
        first, last = _instant(between[0]), _instant(between[1])
        return tuple(record for record in state.snapshots if first <= record.time <= last)
    return state.snapshots


def _instant(time: Time) -> EpochNanos:
    if isinstance(time, str):
        return parse_instant(time)
    if not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day, tzinfo=UTC)
    if time.tzinfo is None:
        raise ValueError(f"{time!r} has no time zone; expected an aware datetime")
    return EpochNanos(Instant(time).timestamp(unit="nanosecond"))


class _Selection:
    """Some snapshots of one folder, to be read together."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        settings: FolderSettings,
        records: Sequence[SnapshotRecord],
        is_empty: bool,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._settings = settings
        self._records = records
        self._is_empty = is_empty
        self._format = DataFormat(settings.data_format)
        self._documents = {
            schema_hash: folder.store.get(layout.schema_key(schema_hash)).decode("utf-8")
            for schema_hash in {record.schema_hash for record in records}
        }

    def frame(self) -> DataFrame:
        """All rows, under the merged schema."""
        merged = self._merged()
        files = [] if self._is_empty else self._files(self._records)
        if not files:
            # Spark takes no column of a file for granted, so that this one may be NULL as well.
            return self._spark.createDataFrame([], self._with_partition(merged).toNullable())
        if self._format is not DataFormat.PARQUET and len(self._documents) > 1:
            return self._by_schema(merged)
        return self._load(files, merged)

    def _merged(self) -> spark_types.StructType:
        texts = [(record.time, self._documents[record.schema_hash]) for record in self._records]
        merged = merge_schemas(texts)
        if merged.conflicts:
            raise HistoryIncompatible(
                "these snapshots have types with nothing in common",
                found="; ".join(str(conflict) for conflict in merged.conflicts),
                expected="snapshots on one side of the break",
                hint="read the two sides apart, with `between`",
            )
        return _struct(merged.schema)

    def _by_schema(self, merged: spark_types.StructType) -> DataFrame:
        """Files are read with their own schema, then widened.

        Avro's reader widens no numbers, and JSON's would read a float's text as a double: 0.1
        instead of the 0.10000000149 that the float is.
        """
        frames = []
        for schema_hash, document in self._documents.items():
            records = [record for record in self._records if record.schema_hash == schema_hash]
            files = self._files(records)
            if files:
                own = self._load(files, _struct(document))
                frames.append(conform_frame(own, self._with_partition(merged)))
        return reduce(DataFrame.unionByName, frames)

    def _load(self, files: list[str], schema: spark_types.StructType) -> DataFrame:
        return (
            self._spark.read.format(SPARK_FORMATS[self._format])
            .options(**READ_OPTIONS[self._format])
            .option("basePath", f"{self._folder.store.uri}{layout.DATA}")
            .schema(self._with_partition(schema))
            .load(files)
        )

    def _files(self, records: Iterable[SnapshotRecord]) -> list[str]:
        uri = self._folder.store.uri
        return [_literal(f"{uri}{file.path}") for record in records for file in record.files]

    def _with_partition(self, schema: spark_types.StructType) -> spark_types.StructType:
        is_text = self._settings.timestamp_format == TimestampFormat.ISO8601_DATE_TIME.value
        kind = spark_types.StringType() if is_text else spark_types.LongType()
        partition = spark_types.StructField(self._settings.partition_field_name, kind, False)
        return spark_types.StructType([*schema.fields, partition])


def _struct(document: str) -> spark_types.StructType:
    return spark_types.StructType.fromJson(json.loads(document))


def _literal(path: str) -> str:
    """A path in which Hadoop finds no glob."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in path)

"""Where and how snapshots are published: `OutputDataset.spec.outputFolder`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models.base import ApiModel, CelRule, contradiction
from snaploom.models.common import (
    Atomic,
    CheckMode,
    ColumnName,
    FieldName,
    PlaceText,
    TimeOffset,
    TimeZoneName,
    Unique,
    refuse_nothing,
)
from snaploom.models.shortforms import LENGTH, LENGTH_NOT_ZERO
from snaploom.models.variables import Variables


class DataFormat(StrEnum):
    """Format of published files; fixed by the first publication."""

    PARQUET = "PARQUET"
    """Apache Parquet; keeps metadata of columns."""
    AVRO = "AVRO"
    """Apache Avro; metadata of columns is in the manifest only."""
    JSONL = "JSONL"
    """One JSON object a line; metadata of columns is in the manifest only."""
    ICEBERG = "ICEBERG"
    """An Apache Iceberg table in the folder, over Parquet files; its commit is the publication."""

    @property
    def of_files(self) -> DataFormat:
        """Format of the files: those of an Iceberg table are Parquet."""
        return DataFormat.PARQUET if self is DataFormat.ICEBERG else self


class DataCompression(StrEnum):
    """Compression of published files; fixed by the first publication."""

    SNAPPY = "SNAPPY"
    """Snappy: for old readers; Parquet files are larger, and take longer to write."""
    ZSTD = "ZSTD"
    """Zstandard: small and fast; not for JSONL."""
    GZIP = "GZIP"
    """Gzip: small, slow; not for AVRO."""
    NONE = "NONE"
    """No compression."""


DEFAULT_COMPRESSION: Mapping[DataFormat, DataCompression] = {
    DataFormat.PARQUET: DataCompression.ZSTD,
    DataFormat.ICEBERG: DataCompression.ZSTD,
    DataFormat.AVRO: DataCompression.SNAPPY,
    DataFormat.JSONL: DataCompression.SNAPPY,
}
"""Compression of a new folder whose declaration gives none."""

UNWRITABLE = frozenset(
    {(DataFormat.JSONL, DataCompression.ZSTD), (DataFormat.AVRO, DataCompression.GZIP)}
)
"""Pairs that Spark cannot write (rule W32)."""


class ColumnMetadata(StrEnum):
    """Where metadata of columns is kept (rule W31)."""

    BOTH = "BOTH"
    """In files and manifest."""
    MANIFEST = "MANIFEST"
    """In the manifest only, so that files of all snapshots have few schemas."""


class CatchupMode(StrEnum):
    """Order in which a backlog is processed."""

    OLDEST_FIRST = "OLDEST_FIRST"
    """From the earliest missing snapshot on."""
    NEWEST_FIRST = "NEWEST_FIRST"
    """From the latest missing snapshot back."""


class TimestampFormat(StrEnum):
    """How the name of a partition's folder encodes its snapshot time."""

    UNIX_MILLISECONDS = "UNIX_MILLISECONDS"
    """Whole milliseconds since 1970."""
    UNIX_SECONDS = "UNIX_SECONDS"
    """Whole seconds since 1970."""
    ISO8601_DATE_TIME = "ISO8601_DATE_TIME"
    """Text such as `2020-01-31T12:00:00Z`, in `outputTimezone`."""


class HivePartitioned(ApiModel):
    """One folder a snapshot, named `<field>=<value>`."""

    field_name: FieldName = "snapshot_epoch"
    """Name of the partition column."""
    timestamp_format: TimestampFormat = TimestampFormat.UNIX_MILLISECONDS
    """How the name of the folder encodes the time."""
    output_timezone: TimeZoneName = "UTC"
    """Zone of ISO8601_DATE_TIME values."""


class SnapshotFormat(ApiModel):
    """How snapshots are laid out."""

    one_of: ClassVar[tuple[str, ...]] = ("hivePartitioned",)

    hive_partitioned: HivePartitioned | None = None
    """One folder a snapshot."""


class Tier(ApiModel):
    """Keeps fewer of the old snapshots (rule P21)."""

    older_than: Annotated[TimeOffset, LENGTH]
    """Age from which this tier applies."""
    keep_one_every: Annotated[TimeOffset, LENGTH_NOT_ZERO]
    """Of each period of this length, only the first snapshot is kept; longer than nothing."""

    @model_validator(mode="after")
    def _refuse_zero_period(self) -> Self:
        refuse_nothing("keepOneEvery", self.keep_one_every)
        return self


class SnapshotAutoDelete(ApiModel):
    """Which published snapshots are deleted; each rule by itself, the latest never."""

    max_snapshot_age: Annotated[TimeOffset, LENGTH] = TimeOffset()
    """Snapshots whose time lies further back go; nothing given means no limit."""
    max_snapshot_creation_age: Annotated[TimeOffset, LENGTH] = TimeOffset()
    """Snapshots published longer ago go; nothing given means no limit."""
    max_old_snapshots: Annotated[int, Ge(-1), Le(1_000_000_000)] = -1
    """Snapshots kept besides the latest; -1 means no limit."""
    tiers: Annotated[tuple[Tier, ...], MaxLen(16), Atomic] = ()
    """Keeps fewer of the old snapshots."""


class RegisterTable(ApiModel):
    """A catalog table in which every published snapshot is registered."""

    name: Annotated[
        str,
        StringConstraints(
            min_length=1, max_length=512, pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){0,2}$"
        ),
        Variables("a table"),
    ]
    """`catalog.database.table`, `database.table` or `table`; made by the first publication."""


class OutputFolder(ApiModel):
    """Where and how snapshots are published."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("self.folderUri.endsWith('/')", "folderUri must end with '/'"),
        CelRule(
            "!(has(self.dataFormat) && has(self.dataCompression) && "
            "((self.dataFormat == 'JSONL' && self.dataCompression == 'ZSTD') || "
            "(self.dataFormat == 'AVRO' && self.dataCompression == 'GZIP')))",
            "Spark cannot write this format with this compression",
        ),
    )

    folder_uri: Annotated[PlaceText, StringConstraints(min_length=2)]
    """Absolute URI (or absolute path) of the output's own folder; ends with `/`. It must be empty
    at the first run."""
    data_format: DataFormat = DataFormat.PARQUET
    """Format of the files; fixed by the first publication."""
    data_compression: DataCompression | None = None
    """Compression of the files; fixed by the first publication. Omitted: the folder's; a new folder
    gets `ZSTD` for PARQUET and ICEBERG, `SNAPPY` for AVRO and JSONL."""
    column_metadata: ColumnMetadata = ColumnMetadata.BOTH
    """Where metadata of columns is kept."""
    target_file_size_mib: Annotated[int, Ge(1), Le(65536)] | None = Field(
        default=None, alias="targetFileSizeMiB"
    )
    """Size of files to aim at, in MiB; omitted, as many files as Spark's last stage has tasks."""
    cluster_by: Annotated[tuple[ColumnName, ...], MaxLen(16), Unique] = ()
    """Columns of the output, such as `data.country`, by which rows are brought together in files:
    in their order for one, along a Hilbert curve for two to eight."""
    snapshot_catchup_mode: CatchupMode = CatchupMode.OLDEST_FIRST
    """Order in which a backlog is processed."""
    snapshot_format: SnapshotFormat
    """How snapshots are laid out."""
    snapshot_auto_delete: SnapshotAutoDelete = SnapshotAutoDelete()
    """Which published snapshots are deleted."""
    incompatible_schema: CheckMode = CheckMode.FAIL
    """Reaction to structure or types that contradict published snapshots (rule P27)."""
    reader_grace: Annotated[TimeOffset, LENGTH] = TimeOffset(hour=1)
    """How long files of deleted snapshots stay for readers that still use them; omitted, 1 hour."""
    register_table: RegisterTable | None = None
    """A catalog table in which every published snapshot is registered."""

    @model_validator(mode="after")
    def _folder_uri(self) -> Self:
        if not self.folder_uri.endswith("/"):
            raise contradiction(
                "folderUri must end with '/'",
                found=self.folder_uri,
                expected="the URI of a folder",
                hint=f"write `folderUri: {self.folder_uri}/`",
            )
        return self

    @property
    def new_compression(self) -> DataCompression:
        """Compression of the folder's files, if this declaration begins it."""
        return self.data_compression or DEFAULT_COMPRESSION[self.data_format]

    @model_validator(mode="after")
    def _writable(self) -> Self:
        if (self.data_format, self.data_compression) in UNWRITABLE:
            possible = ", ".join(
                each for each in DataCompression if (self.data_format, each) not in UNWRITABLE
            )
            raise contradiction(
                f"Spark cannot write {self.data_format} with {self.data_compression}",
                found=f"dataFormat {self.data_format}, dataCompression {self.data_compression}",
                expected=f"with {self.data_format}, one of {possible}",
                hint="change dataCompression, or dataFormat",
            )
        return self

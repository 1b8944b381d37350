"""OutputDataset: what to weave together, how often, where and how to publish."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models import common
from snaploom.models.asof import AsOf, ChildSnapshot
from snaploom.models.base import ApiModel, CelRule, ListType, Variables, contradiction
from snaploom.models.report import DataFinding, LatestSnapshot, ManifestPointer, PublishedSnapshots
from snaploom.models.run import CronText, CurrentRun, LastRun, RunSettings
from snaploom.models.shortforms import LENGTH, LENGTH_NOT_ZERO, LOCAL_TIME
from snaploom.models.windows import Windows

# Place and form of published snapshots: `OutputDataset.spec.outputFolder`.


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
    DELTA = "DELTA"
    """A Delta table in the folder, over Parquet files; its commit is the publication."""

    @property
    def is_table(self) -> bool:
        """Whether the output is a table, whose commit publishes."""
        return self in (DataFormat.ICEBERG, DataFormat.DELTA)

    @property
    def of_files(self) -> DataFormat:
        """Format of the files: those of tables are Parquet."""
        return DataFormat.PARQUET if self.is_table else self


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
    DataFormat.DELTA: DataCompression.ZSTD,
    DataFormat.AVRO: DataCompression.SNAPPY,
    DataFormat.JSONL: DataCompression.SNAPPY,
}
"""Compression of a new folder whose declaration gives none."""

UNWRITABLE = frozenset(
    {(DataFormat.JSONL, DataCompression.ZSTD), (DataFormat.AVRO, DataCompression.GZIP)}
)
"""Pairs that Spark cannot write (rule W32)."""


class ColumnMetadata(StrEnum):
    """Place of the metadata of columns (rule W31)."""

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
    """Encoding of the snapshot time in the name of a partition's folder."""

    UNIX_MILLISECONDS = "UNIX_MILLISECONDS"
    """Whole milliseconds since 1970."""
    UNIX_SECONDS = "UNIX_SECONDS"
    """Whole seconds since 1970."""
    ISO8601_DATE_TIME = "ISO8601_DATE_TIME"
    """Text such as `2020-01-31T12:00:00Z`, in `outputTimezone`."""


class HivePartitioned(ApiModel):
    """One folder a snapshot, named `<field>=<value>`."""

    field_name: common.FieldName = "snapshot_epoch"
    """Name of the partition column."""
    timestamp_format: TimestampFormat = TimestampFormat.UNIX_MILLISECONDS
    """Encoding of the time in the name of the folder."""
    output_timezone: common.TimeZoneName = "UTC"
    """Zone of ISO8601_DATE_TIME values."""


class SnapshotFormat(ApiModel):
    """Layout of snapshots."""

    one_of: ClassVar[tuple[str, ...]] = ("hivePartitioned",)

    hive_partitioned: HivePartitioned | None = None
    """One folder a snapshot."""


class Tier(ApiModel):
    """Keeps fewer of the old snapshots (rule P21)."""

    older_than: Annotated[common.TimeOffset, LENGTH]
    """Age from which this tier applies."""
    keep_one_every: Annotated[common.TimeOffset, LENGTH_NOT_ZERO]
    """Of each period of this length, only the first snapshot is kept; longer than nothing."""

    @model_validator(mode="after")
    def _refuse_zero_period(self) -> Self:
        common.refuse_nothing("keepOneEvery", self.keep_one_every)
        return self


class SnapshotAutoDelete(ApiModel):
    """Rules for deleting published snapshots; each works by itself, and the latest is kept."""

    max_snapshot_age: Annotated[common.TimeOffset, LENGTH] = common.TimeOffset()
    """Snapshots whose time lies further back go; nothing given means no limit."""
    max_snapshot_creation_age: Annotated[common.TimeOffset, LENGTH] = common.TimeOffset()
    """Snapshots published longer ago go; nothing given means no limit."""
    max_old_snapshots: Annotated[int, Ge(-1), Le(1_000_000_000)] = -1
    """Snapshots kept besides the latest; -1 means no limit."""
    tiers: Annotated[tuple[Tier, ...], MaxLen(16), common.Atomic] = ()
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
    """Location and form of published snapshots."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("self.folderUri.endsWith('/')", "folderUri must end with '/'"),
        CelRule(
            "!(has(self.dataFormat) && has(self.dataCompression) && "
            "((self.dataFormat == 'JSONL' && self.dataCompression == 'ZSTD') || "
            "(self.dataFormat == 'AVRO' && self.dataCompression == 'GZIP')))",
            "Spark cannot write this format with this compression",
        ),
        CelRule(
            "!has(self.table) || (has(self.dataFormat) && self.dataFormat == 'ICEBERG')",
            "only an output with dataFormat ICEBERG can be a table of a catalog",
        ),
    )

    folder_uri: Annotated[common.PlaceText, StringConstraints(min_length=2)]
    """Absolute URI (or absolute path) of the output's own folder; ends with `/`. It must be empty
    at the first run."""
    data_format: DataFormat = DataFormat.PARQUET
    """Format of the files; fixed by the first publication."""
    data_compression: DataCompression | None = None
    """Compression of the files; fixed by the first publication. Omitted: the folder's; a new folder
    gets `ZSTD` for PARQUET, ICEBERG and DELTA, `SNAPPY` for AVRO and JSONL."""
    column_metadata: ColumnMetadata = ColumnMetadata.BOTH
    """Place of the metadata of columns."""
    target_file_size_mib: Annotated[int, Ge(1), Le(65536)] | None = Field(
        default=None, alias="targetFileSizeMiB"
    )
    """Size of files to aim at, in MiB; omitted, as many files as Spark's last stage has tasks."""
    cluster_by: Annotated[tuple[common.ColumnName, ...], MaxLen(16), common.Unique] = ()
    """Columns of the output, such as `data.country`, by which rows are brought together in files:
    in their order for one, along a Hilbert curve for two to eight."""
    snapshot_catchup_mode: CatchupMode = CatchupMode.OLDEST_FIRST
    """Order in which a backlog is processed."""
    snapshot_format: SnapshotFormat
    """Layout of snapshots."""
    snapshot_auto_delete: SnapshotAutoDelete = SnapshotAutoDelete()
    """Rules for deleting published snapshots."""
    incompatible_schema: common.CheckMode = common.CheckMode.FAIL
    """Reaction to structure or types that contradict published snapshots (rule P27)."""
    reader_grace: Annotated[common.TimeOffset, LENGTH] = common.TimeOffset(hour=1)
    """Time for which files of deleted snapshots stay for readers that still use them; omitted, 1
    hour."""
    register_table: RegisterTable | None = None
    """A catalog table in which every published snapshot is registered."""
    table: common.CatalogTable | None = None
    """With ICEBERG, the table of a catalog that the output is; fixed by the first publication.
    Omitted, the table is one of files, without a catalog."""

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

    @model_validator(mode="after")
    def _of_catalog(self) -> Self:
        if self.table is not None and self.data_format is not DataFormat.ICEBERG:
            raise contradiction(
                "only an output with dataFormat ICEBERG can be a table of a catalog",
                found=f"table {self.table} and dataFormat {self.data_format}",
                expected="dataFormat ICEBERG",
                hint="set dataFormat to ICEBERG, or leave table out; PARQUET has registerTable",
            )
        return self


# OutputDataset: the sources to weave together, the schedule, and the place of publication.

Columns = Annotated[tuple[common.ColumnName, ...], MaxLen(32), common.Unique]


class ExcludedInterval(ApiModel):
    """Times that are left out, from one up to, and without, another."""

    from_: common.TimestampText = Field(alias="from")
    """First time that is left out."""
    to: common.TimestampText
    """First time that is no longer left out."""


ExcludedIntervals = Annotated[tuple[ExcludedInterval, ...], MaxLen(256), common.Atomic]


class IntervalRules(ApiModel):
    """The fields common to intervals of both forms."""

    preference: common.Preference = common.Preference.NEWEST
    """Choice between several snapshots of the root in an interval."""
    only_closed_intervals: bool = False
    """Whether intervals that have not ended yet wait; recommended with NEWEST."""
    max_snapshot_age: Annotated[common.TimeOffset, LENGTH] | None = None
    """Time to look back from now; older intervals are not looked at (they are not deleted)."""
    exclude_intervals: ExcludedIntervals = ()
    """Times for which nothing is published."""


class FromInterval(IntervalRules):
    """Intervals of equal calendar length, one after the other."""

    interval_start_date: Annotated[common.LocalDateTime, LOCAL_TIME, Variables("a time")]
    """Start of the first interval."""
    interval_length: Annotated[common.TimeOffset, LENGTH_NOT_ZERO]
    """Length of each interval; longer than nothing."""

    @model_validator(mode="after")
    def _refuse_zero_length(self) -> Self:
        common.refuse_nothing("intervalLength", self.interval_length)
        return self


class FromCron(IntervalRules):
    """Intervals that begin at the ticks of a cron expression."""

    schedule: CronText
    """Five fields: minute, hour, day of month, month, day of week."""
    time_zone: common.TimeZoneName = "UTC"
    """Zone of the expression and of every calendar length of the OutputDataset."""
    start_date: common.TimestampText
    """First time at which a tick counts."""
    length: Annotated[common.TimeOffset, LENGTH_NOT_ZERO]
    """Length of each interval; longer than nothing, never until the next tick."""

    @model_validator(mode="after")
    def _refuse_zero_length(self) -> Self:
        common.refuse_nothing("length", self.length)
        return self


class SnapshotFilter(ApiModel):
    """Snapshots of the root that become snapshots of the output: one an interval."""

    one_of: ClassVar[tuple[str, ...]] = ("fromInterval", "fromCron")

    from_interval: FromInterval | None = None
    """Intervals of equal calendar length."""
    from_cron: FromCron | None = None
    """Intervals that begin at the ticks of a cron expression."""


class RootDataSource(ApiModel):
    """The source whose rows the output's rows are."""

    data_source: common.ResourceName
    """The DataSource."""
    snapshot_filter: SnapshotFilter
    """Snapshots of the root that become snapshots of the output."""
    root_key: Columns = ()
    """Columns of the root that identify a row; checked to be unique, and never NULL, before each
    publication."""


class GroupBy(ApiModel):
    """Collects the rows of a source that share a key into an array."""

    field_names: Columns = ()
    """Columns of the key; none for a source that has one row a key."""
    group_by_field_missing_mode: common.MissingMode = common.MissingMode.ERROR
    """Reaction to a snapshot of the source that lacks one of them."""


class Transformations(ApiModel):
    """Transformations of a source before it is joined."""

    group_by: GroupBy = GroupBy()
    """Collects rows into an array."""


class MatchedRows(ApiModel):
    """Rows that must find a match in a source; counted before a snapshot is published."""

    at_least: Annotated[float, Ge(0), Le(1)]
    """Share of the rows that the source is joined to. A row with a NULL key finds no match; a
    snapshot without rows meets every share."""
    mode: common.CheckMode = common.CheckMode.FAIL
    """Effect of a lower share."""


class OtherDataSource(ApiModel):
    """A source that is joined."""

    data_source: common.ResourceName
    """The DataSource; it may occur once in an OutputDataset."""
    field_name: common.FieldName
    """Field of the output that holds it; `data` is reserved."""
    path_missing_mode: common.PathMissingMode = common.PathMissingMode.ERROR
    """Reaction to the lack of relationships that lead to it from the root."""
    join_field_missing_mode: common.MissingMode = common.MissingMode.ERROR
    """Reaction to a snapshot that lacks a field of the join, on either side."""
    transformations: Transformations = Transformations()
    """Transformations before it is joined."""
    snapshot: ChildSnapshot = ChildSnapshot()
    """Snapshot of the source that goes with one of the root."""
    warn_null_key_ratio: Annotated[float, Ge(0), Le(1)] | None = None
    """Share of left rows with a NULL key from which the run warns."""
    warn_no_match: bool | None = None
    """Whether the run looks at rows without a match, and warns, with sample keys, when no row of a
    snapshot finds one although both sides have keys, or when a `normalize` of the key would give
    rows one; omitted, it does."""
    matched_rows: MatchedRows | None = None
    """Share of rows that must find a match; omitted, any share is published."""
    as_of: AsOf | None = None
    """Match by time as well: of the rows of a key, the one that holds at the time of the row that
    the source is joined to."""
    windows: Windows | None = None
    """Aggregates of the rows of a key in windows before the time of the row that the source is
    joined to, in place of its rows."""

    @property
    def timed(self) -> AsOf | Windows | None:
        """The rule by which times count; validation has refused two at once."""
        return self.as_of or self.windows

    @property
    def group_by(self) -> tuple[str, ...]:
        """Columns of the groupBy key; empty when the source is not grouped."""
        return self.transformations.group_by.field_names


class SourceExclusion(ApiModel):
    """Sources that a relationship must not join to each other."""

    data_source_set: Annotated[
        tuple[common.ResourceName, ...], MinLen(2), MaxLen(2000), common.Unique
    ]
    """Two sources or more: every join between two of them is ruled out."""


class UsedRelationship(ApiModel):
    """A relationship that the join tree may use."""

    name: common.ResourceName
    """The DataRelationship."""
    anti_priority: Annotated[int, Ge(1), Le(1_000_000)] = 1
    """Cost of using it, where there are several ways of equal length."""
    exclusions: Annotated[tuple[SourceExclusion, ...], MaxLen(256), common.Atomic] = ()
    """Sources that it must not join to each other."""


class DataModel(ApiModel):
    """The sources, and how they may be joined."""

    root_data_source: RootDataSource
    """The source whose rows the output's rows are."""
    other_data_sources: Annotated[
        tuple[OtherDataSource, ...], MaxLen(2000), ListType("map", keys=("fieldName",))
    ] = ()
    """The sources that are joined."""
    data_relationships: Annotated[
        tuple[UsedRelationship, ...], MaxLen(2000), ListType("map", keys=("name",))
    ] = ()
    """The relationships that the join tree may use."""
    max_depth: Annotated[int, Ge(1), Le(32)] = 14
    """Deepest node allowed; the root has depth 0."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all sources, the root's first."""
        others = (other.data_source for other in self.other_data_sources)
        return (self.root_data_source.data_source, *others)


class Check(ApiModel):
    """An expectation about the woven rows, measured before publication."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """Name, for messages."""
    expression: common.SqlText
    """SQL that must be true: of the snapshot where it has an aggregate function, as in
    `count(*) > 0`, else of every row, as in `data.amount >= 0`. NULL is not true."""
    mode: common.CheckMode = common.CheckMode.FAIL
    """Effect of an unmet expectation."""


class OutputDatasetSpec(ApiModel):
    """The sources to weave together, and the place of publication."""

    data_model: DataModel
    """The sources, and how they may be joined."""
    output_folder: OutputFolder
    """Location and form of published snapshots."""
    checks: Annotated[tuple[Check, ...], MaxLen(256), ListType("map", keys=("name",))] = ()
    """Expectations about the woven rows."""
    run: RunSettings = RunSettings()
    """Settings and triggers of jobs."""


class PlannedJoin(ApiModel):
    """One edge of the join tree."""

    number: Annotated[int, Ge(0)]
    """Number of the node in breadth-first order; the root is 0."""
    field_name: common.ShortText
    """Field of the output."""
    source: common.ShortText
    """The DataSource."""
    parent: common.ShortText
    """Field name of the node it is joined to; empty for the root (rule W12)."""
    relationship: common.ShortText
    """The DataRelationship that joins it."""
    depth: Annotated[int, Ge(1)]
    """Joins between it and the root."""
    group_by: Columns = ()
    """Columns by which it is grouped."""


class PlanStatus(ApiModel):
    """The join tree, as far as it fits (rule R13)."""

    hash: common.ShortText
    """Hash of the join tree."""
    max_depth: Annotated[int, Ge(0)]
    """Depth of the deepest node."""
    joins: Annotated[tuple[PlannedJoin, ...], MaxLen(50), ListType("map", keys=("fieldName",))] = ()
    """The joins, in order; the whole plan is in the ConfigMap `<output>-plan`."""


class OutputDatasetStatus(common.ResourceStatus):
    """Observed state of an output."""

    plan: PlanStatus | None = None
    """The join tree."""
    current_run: CurrentRun | None = None
    """The run in flight."""
    last_run: LastRun | None = None
    """The run that ended last."""
    latest_snapshot: LatestSnapshot | None = None
    """The newest published snapshot."""
    snapshots: PublishedSnapshots = ()
    """The newest published snapshots."""
    snapshot_count: Annotated[int, Ge(0)] | None = None
    """Number of published snapshots."""
    data_findings: Annotated[tuple[DataFinding, ...], MaxLen(20), common.Atomic] = ()
    """Findings about the data, without values of it."""
    next_run_time: common.TimestampText | None = None
    """Time at which the next run is due, by schedule or as a retry."""
    realised: common.ShortText | None = None
    """Hash of the declarations that the last successful run worked on."""
    manifest: ManifestPointer | None = None
    """Location of the authoritative record."""


class OutputDataset(common.Resource):
    """The sources to weave together, the schedule, and the place of publication."""

    kind: Literal["OutputDataset"] = "OutputDataset"
    """Name of the kind."""
    spec: OutputDatasetSpec
    """The sources to weave together, and the place of publication."""
    status: OutputDatasetStatus | None = None
    """Observed state; written by the operator."""

"""OutputDataset: the sources to weave together, the schedule, and the place of publication."""

from __future__ import annotations

from calendar import monthrange
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models.base import ApiModel, ListType, contradiction
from snaploom.models.common import (
    Atomic,
    CheckMode,
    ColumnName,
    FieldName,
    MissingMode,
    PathMissingMode,
    Preference,
    ResourceName,
    ResourceStatus,
    ShortText,
    SqlText,
    TimeOffset,
    TimestampText,
    TimeZoneName,
    Unique,
    refuse_nothing,
)
from snaploom.models.outputfolder import OutputFolder
from snaploom.models.report import LatestSnapshot, ManifestPointer, PublishedSnapshots
from snaploom.models.resource import Resource
from snaploom.models.run import CronText, CurrentRun, LastRun, RunSettings
from snaploom.models.shortforms import LENGTH, LENGTH_NOT_ZERO, LOCAL_TIME
from snaploom.models.variables import Variables

Columns = Annotated[tuple[ColumnName, ...], MaxLen(32), Unique]


class LocalDateTime(ApiModel):
    """A local time in a zone; all eight parts are required.

    As text, a date (midnight in UTC), or a date and time with its zone in brackets, such as
    `2024-01-01[Australia/Melbourne]` or `2024-01-01T06:00[Europe/Berlin]`.
    """

    year: Annotated[int, Ge(1), Le(9999)]
    """Year."""
    month: Annotated[int, Ge(1), Le(12)]
    """Month."""
    day: Annotated[int, Ge(1), Le(31)]
    """Day of the month."""
    hour: Annotated[int, Ge(0), Le(23)]
    """Hour."""
    minute: Annotated[int, Ge(0), Le(59)]
    """Minute."""
    second: Annotated[int, Ge(0), Le(59)]
    """Second."""
    nano: Annotated[int, Ge(0), Le(999_999_999)]
    """Nanosecond."""
    timezone: TimeZoneName
    """Zone of this time and of every calendar length of the OutputDataset."""

    @model_validator(mode="after")
    def _day_exists(self) -> Self:
        days = monthrange(self.year, self.month)[1]
        if self.day > days:
            month = f"{self.year}-{self.month:02d}"
            raise contradiction(
                "the month has no such day",
                found=f"{self.day}, and {month} has {days}",
                expected=f"a day of {month}",
                hint=f"write a day from 1 to {days}",
            )
        return self


class ExcludedInterval(ApiModel):
    """Times that are left out, from one up to, and without, another."""

    from_: TimestampText = Field(alias="from")
    """First time that is left out."""
    to: TimestampText
    """First time that is no longer left out."""


ExcludedIntervals = Annotated[tuple[ExcludedInterval, ...], MaxLen(256), Atomic]


class IntervalRules(ApiModel):
    """The fields common to intervals of both forms."""

    preference: Preference = Preference.NEWEST
    """Which snapshot of the root to take when an interval has several."""
    only_closed_intervals: bool = False
    """Whether intervals that have not ended yet wait; recommended with NEWEST."""
    max_snapshot_age: Annotated[TimeOffset, LENGTH] | None = None
    """How far to look back from now; older intervals are not looked at (they are not deleted)."""
    exclude_intervals: ExcludedIntervals = ()
    """Times for which nothing is published."""


class FromInterval(IntervalRules):
    """Intervals of equal calendar length, one after the other."""

    interval_start_date: Annotated[LocalDateTime, LOCAL_TIME, Variables("a time")]
    """Start of the first interval."""
    interval_length: Annotated[TimeOffset, LENGTH_NOT_ZERO]
    """Length of each interval; longer than nothing."""

    @model_validator(mode="after")
    def _refuse_zero_length(self) -> Self:
        refuse_nothing("intervalLength", self.interval_length)
        return self


class FromCron(IntervalRules):
    """Intervals that begin at the ticks of a cron expression."""

    schedule: CronText
    """Five fields: minute, hour, day of month, month, day of week."""
    time_zone: TimeZoneName = "UTC"
    """Zone of the expression and of every calendar length of the OutputDataset."""
    start_date: TimestampText
    """First time at which a tick counts."""
    length: Annotated[TimeOffset, LENGTH_NOT_ZERO]
    """Length of each interval; longer than nothing, never until the next tick."""

    @model_validator(mode="after")
    def _refuse_zero_length(self) -> Self:
        refuse_nothing("length", self.length)
        return self


class SnapshotFilter(ApiModel):
    """Which snapshots of the root become snapshots of the output: one an interval."""

    one_of: ClassVar[tuple[str, ...]] = ("fromInterval", "fromCron")

    from_interval: FromInterval | None = None
    """Intervals of equal calendar length."""
    from_cron: FromCron | None = None
    """Intervals that begin at the ticks of a cron expression."""


class RootDataSource(ApiModel):
    """The source whose rows the output's rows are."""

    data_source: ResourceName
    """The DataSource."""
    snapshot_filter: SnapshotFilter
    """Which of its snapshots become snapshots of the output."""
    root_key: Columns = ()
    """Columns of the root that identify a row; checked to be unique, and never NULL, before each
    publication."""


class GroupBy(ApiModel):
    """Collects the rows of a source that share a key into an array."""

    field_names: Columns = ()
    """Columns of the key; none for a source that has one row a key."""
    group_by_field_missing_mode: MissingMode = MissingMode.ERROR
    """Reaction to a snapshot of the source that lacks one of them."""


class Transformations(ApiModel):
    """Transformations of a source before it is joined."""

    group_by: GroupBy = GroupBy()
    """Collects rows into an array."""


class ChildSnapshot(ApiModel):
    """Which snapshot of a source goes with one of the root."""

    preference: Preference = Preference.NEWEST
    """Which snapshot to take when several lie in the window."""
    snapshot_missing_mode: MissingMode = MissingMode.ERROR
    """Reaction to a window without a snapshot."""
    time_before: Annotated[TimeOffset, LENGTH] = TimeOffset()
    """How far the window reaches before the root's snapshot, inclusive."""
    time_after: Annotated[TimeOffset, LENGTH] = TimeOffset()
    """How far the window reaches after the root's snapshot, inclusive."""


class MatchedRows(ApiModel):
    """How many rows must find a match in a source; counted before a snapshot is published."""

    at_least: Annotated[float, Ge(0), Le(1)]
    """Share of the rows that the source is joined to. A row with a NULL key finds no match; a
    snapshot without rows meets every share."""
    mode: CheckMode = CheckMode.FAIL
    """Effect of a lower share."""


class OtherDataSource(ApiModel):
    """A source that is joined."""

    data_source: ResourceName
    """The DataSource; it may occur once in an OutputDataset."""
    field_name: FieldName
    """Field of the output that holds it; `data` is reserved."""
    path_missing_mode: PathMissingMode = PathMissingMode.ERROR
    """Reaction to the lack of relationships that lead to it from the root."""
    join_field_missing_mode: MissingMode = MissingMode.ERROR
    """Reaction to a snapshot that lacks a field of the join, on either side."""
    transformations: Transformations = Transformations()
    """Transformations before it is joined."""
    snapshot: ChildSnapshot = ChildSnapshot()
    """Which of its snapshots goes with one of the root."""
    warn_null_key_ratio: Annotated[float, Ge(0), Le(1)] | None = None
    """Share of left rows with a NULL key from which the run warns."""
    warn_no_match: bool | None = None
    """Whether the run warns when no row of a snapshot finds a match although both sides have keys;
    omitted, it does."""
    matched_rows: MatchedRows | None = None
    """Share of rows that must find a match; omitted, any share is published."""

    @property
    def group_by(self) -> tuple[str, ...]:
        """Columns of the groupBy key; empty when the source is not grouped."""
        return self.transformations.group_by.field_names


class SourceExclusion(ApiModel):
    """Sources that a relationship must not join to each other."""

    data_source_set: Annotated[tuple[ResourceName, ...], MinLen(2), MaxLen(2000), Unique]
    """Two sources or more: every join between two of them is ruled out."""


class UsedRelationship(ApiModel):
    """A relationship that the join tree may use."""

    name: ResourceName
    """The DataRelationship."""
    anti_priority: Annotated[int, Ge(1), Le(1_000_000)] = 1
    """Cost of using it, where there are several ways of equal length."""
    exclusions: Annotated[tuple[SourceExclusion, ...], MaxLen(256), Atomic] = ()
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
    expression: SqlText
    """SQL that must be true: of the snapshot where it has an aggregate function, as in
    `count(*) > 0`, else of every row, as in `data.amount >= 0`. NULL is not true."""
    mode: CheckMode = CheckMode.FAIL
    """Effect of an unmet expectation."""


class OutputDatasetSpec(ApiModel):
    """The sources to weave together, and the place of publication."""

    data_model: DataModel
    """The sources, and how they may be joined."""
    output_folder: OutputFolder
    """Where and how snapshots are published."""
    checks: Annotated[tuple[Check, ...], MaxLen(256), ListType("map", keys=("name",))] = ()
    """Expectations about the woven rows."""
    run: RunSettings = RunSettings()
    """How and when jobs run."""


class PlannedJoin(ApiModel):
    """One edge of the join tree."""

    number: Annotated[int, Ge(0)]
    """Number of the node in breadth-first order; the root is 0."""
    field_name: ShortText
    """Field of the output."""
    source: ShortText
    """The DataSource."""
    parent: ShortText
    """Field name of the node it is joined to; empty for the root (rule W12)."""
    relationship: ShortText
    """The DataRelationship that joins it."""
    depth: Annotated[int, Ge(1)]
    """Joins between it and the root."""
    group_by: Columns = ()
    """Columns by which it is grouped."""


class PlanStatus(ApiModel):
    """The join tree, as far as it fits (rule R13)."""

    hash: ShortText
    """Hash of the join tree."""
    max_depth: Annotated[int, Ge(0)]
    """Depth of the deepest node."""
    joins: Annotated[tuple[PlannedJoin, ...], MaxLen(50), ListType("map", keys=("fieldName",))] = ()
    """The joins, in order; the whole plan is in the ConfigMap `<output>-plan`."""


class OutputDatasetStatus(ResourceStatus):
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
    next_run_time: TimestampText | None = None
    """When the next run is due, by schedule or as a retry."""
    realised: ShortText | None = None
    """Hash of the declarations that the last successful run worked on."""
    manifest: ManifestPointer | None = None
    """Where the authoritative record is."""


class OutputDataset(Resource):
    """The sources to weave together, the schedule, and the place of publication."""

    kind: Literal["OutputDataset"] = "OutputDataset"
    """Name of the kind."""
    spec: OutputDatasetSpec
    """The sources to weave together, and the place of publication."""
    status: OutputDatasetStatus | None = None
    """Observed state; written by the operator."""

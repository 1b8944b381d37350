"""The Report of a run by its job, and the parts it consists of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge, MaxLen
from pydantic import Field, StringConstraints

from snaploom.models import common
from snaploom.models.base import ApiModel, ListType
from snaploom.models.datarelationship import UnmatchedRows
from snaploom.models.findings import Finding
from snaploom.models.skippingindex import IndexedFiles, IndexState

# Facts in a Report besides snapshots: sources that were read, an index, and removed data.

Lines = Annotated[tuple[common.MessageText, ...], MaxLen(100), common.Atomic]


class SeenSource(ApiModel):
    """One source as a run saw it."""

    source: common.ShortText
    """Name of the DataSource."""
    latest_snapshot: common.TimestampText | None = None
    """Newest snapshot; omitted when there is none, and for a source without history."""
    snapshots: Annotated[int, Ge(0)] | None = None
    """Number of snapshots; omitted for a source without history."""
    schema_fingerprint: common.ShortText | None = None
    """Hash over names, types and order of its columns, as last read; omitted when nothing was."""


class IndexFacts(ApiModel):
    """State of an index after a run of a SkippingIndex."""

    state: IndexState
    """State of the index."""
    files: IndexedFiles | None = None
    """Coverage of the target; omitted when there is no index any more."""
    bytes: Annotated[int, Ge(0)] | None = None
    """Size of the index; omitted where its store does not report it."""
    last_refreshed: common.TimestampText | None = None
    """Time of the last refresh."""
    done: Lines = ()
    """Actions on it, in a few words each; empty when there was nothing to do."""
    warnings: Lines = ()
    """Warnings about it, for people."""


class CollectedFiles(ApiModel):
    """Files of snapshots that are no longer published, removed by a run at its end."""

    snapshots: Annotated[int, Ge(0)] = 0
    """Deleted and replaced snapshots whose files are removed."""
    files: Annotated[int, Ge(0)] = 0
    """Number of their files, and of those that runs which died left in staging."""
    bytes: Annotated[int, Ge(0)] = 0
    """Size of all these."""
    waiting: Annotated[int, Ge(0)] = 0
    """Deleted and replaced snapshots whose files stay: readers may be at them, or one run does not
    remove as many."""


class UnregisteredTable(ApiModel):
    """The catalog table of an output (`table`, `registerTable`) that is being deleted."""

    name: common.ShortText
    """Its name."""
    is_dropped: bool = False
    """Whether it was dropped."""
    left: common.ShortText = ""
    """Owner, if it stays because it was not created for this output; else empty."""


class Removed(ApiModel):
    """Data that a run removed because its resource is being deleted (rule R12)."""

    files: Annotated[int, Ge(0)]
    """Number of files, those of the folder's own record included."""
    bytes: Annotated[int, Ge(0)]
    """Their size."""
    left: Annotated[int, Ge(0)] = 0
    """Number of files that Snaploom did not write; they stay."""
    left_names: Annotated[tuple[common.ShortText, ...], MaxLen(20), common.Atomic] = ()
    """The first of them."""
    table: UnregisteredTable | None = None
    """The catalog table, where the output has one."""


# The Report of a job about its run, and the parts it shares with manifest and status.

REPORT_FORMAT = 1
"""Format of the Report; a newer one is refused, older ones are read (rule P8)."""

Count = Annotated[int, Ge(0)]


class ExclusionReason(StrEnum):
    """Reason why a source is not part of a snapshot."""

    PATH_MISSING = "PATH_MISSING"
    """No relationship leads to it from the root, and its `pathMissingMode` tolerates that."""
    SNAPSHOT_MISSING = "SNAPSHOT_MISSING"
    """It has no snapshot in the window around the root's."""
    JOIN_FIELD_MISSING = "JOIN_FIELD_MISSING"
    """A field of the join is absent, or has another type, on one side."""
    GROUP_BY_FIELD_MISSING = "GROUP_BY_FIELD_MISSING"
    """A field of its `groupBy` is absent."""
    PARENT_EXCLUDED = "PARENT_EXCLUDED"
    """The source it is joined to is not part of the snapshot."""


class Exclusion(ApiModel):
    """A source that one snapshot does without."""

    field_name: common.ShortText
    """Field of the output that is absent."""
    reason: ExclusionReason
    """Reason why it is absent."""
    message: common.ShortText = ""
    """Details for people."""


class JoinMeasure(ApiModel):
    """Counts at one left join; `in` equals `out`, or nothing is published."""

    child: common.ShortText
    """Field name of the source that was joined."""
    in_: Count = Field(alias="in")
    """Rows of the left side."""
    out: Count
    """Rows after the join."""
    matched: Count
    """Rows of the left side that found a match."""
    null_keys: Count
    """Rows of the left side whose key has a NULL component: they match nothing."""
    child_null_keys: Count | None = None
    """Rows of the right side whose key has a NULL component: they match nothing. Not counted for
    sources without joins of their own where a snapshot has more than 8 of these."""
    null_times: Count | None = None
    """Of an as-of join, rows of the left side with a key whose time is NULL, or NaN: they match
    nothing."""
    beyond_tolerance: Count | None = None
    """Of an as-of join, rows of the left side whose next row is beyond the tolerance."""
    left: common.ShortText = ""
    """Name of the DataSource that is the left side; empty for the root, whose rows are the
    output's."""
    rows: Count | None = None
    """Rows of the output that have the source, where it is not joined to the root: a row of the
    left side may be in none of them, or in many. Omitted inside arrays."""

    @property
    def label(self) -> str:
        """The child with the share of its left side's rows that it matched: `plane 98%`."""
        share = f" {self.matched / self.in_:.0%}" if self.in_ else ""
        return f"{self.child}{share}" + (f" of {self.left}" if self.left else "")

    @property
    def unmatched(self) -> int:
        """Rows of the left side that have a key, and a time where it counts, and no match."""
        return self.in_ - self.matched - self.null_keys - (self.null_times or 0)


class DataFindingKind(StrEnum):
    """Kind of a fault, or of a change, in the data of a source."""

    UNMATCHED = "UNMATCHED"
    """Rows have a key and find no match in the source."""
    NULL_KEYS = "NULL_KEYS"
    """Rows have a NULL in the key by which they are joined to the source, and match nothing."""
    NULL_TIMES = "NULL_TIMES"
    """Rows have no time as of which the source is joined to them, and match nothing."""
    EMPTY = "EMPTY"
    """Snapshots without a row, or files without a byte."""
    MISSING = "MISSING"
    """Intervals without a snapshot, or snapshots that do without the source."""
    NEVER_DUE = "NEVER_DUE"
    """Snapshots of the root that no run publishes, since they lie in no interval."""
    CHANGED = "CHANGED"
    """Files were written again after snapshots were published from them."""
    UNREAD = "UNREAD"
    """Files are named like those of the source, and no source of the output reads them."""
    NEW_COLUMNS = "NEW_COLUMNS"
    """Columns that the snapshot before did not have."""
    GONE_COLUMNS = "GONE_COLUMNS"
    """Columns that only the snapshot before had."""


MOST_DATA_SAMPLES = 5
"""Keys, times or names that one finding about data shows."""


NOT_COUNTED = "near misses are not counted"
"""Beginning of a text about rows without a match; of several snapshots, that of the last counts."""


class DataFinding(ApiModel):
    """Something in people's data that a run met; nothing that it stops for."""

    kind: DataFindingKind
    """Kind of the fault or change."""
    source: common.ShortText
    """Name of the DataSource."""
    field_name: common.ShortText = ""
    """Field of the output; empty for the root."""
    left: common.ShortText = ""
    """Name of the DataSource whose rows are counted, of a join."""
    count: Count
    """Rows, snapshots, intervals, files or columns."""
    of: Count | None = None
    """Number of all of them, where that is known."""
    snapshots: Count = 1
    """Published snapshots in which it was met."""
    first: common.TimestampText | None = None
    """The first of them."""
    last: common.TimestampText | None = None
    """The last of them."""
    samples: Annotated[tuple[common.ShortText, ...], MaxLen(MOST_DATA_SAMPLES), common.Atomic] = ()
    """Some keys, times, or names of files or columns."""
    about: common.ShortText = ""
    """More of it, for people."""
    fix: common.ShortText = ""
    """The fix, for people."""

    @property
    def without_values(self) -> DataFinding:
        """The finding without keys, which are values of the data."""
        has_keys = self.kind is DataFindingKind.UNMATCHED
        return self.model_copy(update={"samples": ()}) if has_keys else self

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """Equal for findings that are one in several snapshots."""
        return self.kind, self.source, self.field_name, self.left

    @property
    def is_of_listing(self) -> bool:
        """Whether it is about what sources list, which the next look finds again."""
        kinds = (DataFindingKind.CHANGED, DataFindingKind.NEVER_DUE, DataFindingKind.UNREAD)
        return self.kind in kinds or (self.kind is DataFindingKind.MISSING and not self.field_name)

    def merged(self, other: DataFinding) -> DataFinding:
        """This finding and the same one of other snapshots."""
        times = sorted(each for each in (self.first, self.last, other.first, other.last) if each)
        known = None not in (self.of, other.of)
        samples = dict.fromkeys((*self.samples, *other.samples))
        return other.model_copy(
            update={
                "count": self.count + other.count,
                "of": (self.of or 0) + (other.of or 0) if known else None,
                "snapshots": self.snapshots + other.snapshots,
                "first": times[0] if times else None,
                "last": times[-1] if times else None,
                "samples": tuple(samples)[:MOST_DATA_SAMPLES],
                "about": other.about or ("" if NOT_COUNTED in self.about else self.about),
            }
        )

    def __str__(self) -> str:
        is_role = self.field_name not in ("", self.source)
        where = f"{self.field_name} ({self.source})" if is_role else self.source
        number, s = f"{self.count:,}", "" if self.count == 1 else "s"
        rows = number if self.of is None else f"{number} of {self.of:,}"
        text = _DATA_TEXTS[self.kind].format(number=number, s=s, rows=rows, left=self.left)
        # Keys may be empty, or have blanks around them, or be of several columns.
        plain = (f"'{k}'" if not k or k != k.strip() or ", " in k else k for k in self.samples)
        shown = ", ".join(plain) + (", ..." if self.count > len(self.samples) else "")
        parts = [f"{text}: {shown}" if self.samples else text, self.about]
        if self.snapshots > 1 and self.first:
            parts[1] = f"in one of them {self.about}" if self.about else ""
            parts.insert(1, f"in {self.snapshots:,} snapshots, {self.first} to {self.last}")
        return f"{where}: " + "; ".join(filter(None, parts))

    @property
    def lines(self) -> tuple[str, ...]:
        """The finding, and what to do below it, where there is a fix of its own."""
        return (f"data    {self}", *([f"        fix: {self.fix}"] if self.fix else ()))


_DATA_TEXTS = {
    DataFindingKind.UNMATCHED: "{rows} rows of {left} have no match in it",
    DataFindingKind.NULL_KEYS: "{rows} rows of {left} have NULL as its key, and no match",
    DataFindingKind.NULL_TIMES: "{rows} rows of {left} have no time, and no match in it",
    DataFindingKind.EMPTY: "{number} snapshot{s} without rows",
    DataFindingKind.MISSING: "{number} snapshot{s} missing",
    DataFindingKind.NEVER_DUE: "{number} snapshot{s} never published",
    DataFindingKind.CHANGED: "{number} snapshot{s} changed after publication",
    DataFindingKind.UNREAD: "{number} file{s} read by no source",
    DataFindingKind.NEW_COLUMNS: "{number} column{s} new",
    DataFindingKind.GONE_COLUMNS: "{number} column{s} gone",
}


MOST_OLDER = 10_000
"""Snapshots of a history besides the newest."""


class SourceSnapshot(ApiModel):
    """The snapshot of one source that went into a published one."""

    field_name: common.ShortText
    """Field of the output; empty for the root."""
    source: common.ShortText
    """Name of the DataSource."""
    time: common.TimestampText
    """Time of the source's snapshot."""
    fingerprint: common.ShortText = ""
    """Hash over path, length, modification time and tag of the files read."""
    history: Annotated[Mapping[common.ShortText, common.ShortText], MaxLen(MOST_OLDER)] | None = (
        None
    )
    """Of a history, the hash of each snapshot before it that was read as well, by time."""

    @property
    def fingerprints(self) -> dict[common.EpochNanos, str]:
        """Hashes of all snapshots that were read, by time, newest last."""
        texts = {**(self.history or {}), self.time: self.fingerprint}
        return dict(sorted((common.parse_instant(time), text) for time, text in texts.items()))


class CheckResult(ApiModel):
    """Result of one expectation about a snapshot."""

    name: common.ShortText
    """Name of the check; `rootKey` for the uniqueness of the root's key."""
    mode: common.CheckMode
    """Effect of an unmet expectation."""
    holds: bool
    """Whether it is met; one that is not was published with a warning."""
    measured: common.ShortText = ""
    """The value measured instead, for people; empty when the expectation is met."""


MOST_DATA_FINDINGS = 500
"""Findings about data that a Report has: of five kinds a source for a hundred of them."""
DataFindings = Annotated[tuple[DataFinding, ...], MaxLen(MOST_DATA_FINDINGS), common.Atomic]
"""Faults and changes in people's data."""
JoinMeasures = Annotated[tuple[JoinMeasure, ...], MaxLen(50), ListType("map", keys=("child",))]
"""Joins as they stand in a status: at most 50 (rule R13)."""


class LatestSnapshot(ApiModel):
    """The newest published snapshot."""

    time: common.TimestampText
    """Snapshot time."""
    published_at: common.TimestampText
    """Time of publication."""
    partition: common.ShortText
    """Folder below `data/`."""
    rows: Count
    """Rows."""
    files: Count
    """Number of files."""
    bytes: Count
    """Size of the files."""
    sources: Annotated[tuple[SourceSnapshot, ...], MaxLen(50), common.Atomic] = ()
    """The snapshot taken of each source."""
    excluded: Annotated[tuple[Exclusion, ...], MaxLen(50), common.Atomic] = ()
    """Sources that it does without."""
    joins: JoinMeasures = ()
    """Counts at each join."""
    checks: Annotated[tuple[CheckResult, ...], MaxLen(50), common.Atomic] = ()
    """Result of each expectation."""
    warnings: Annotated[tuple[common.ShortText, ...], MaxLen(50), common.Atomic] = ()
    """Joins of which many rows had a NULL key (at least the `warnNullKeyRatio`), or which matched
    nothing although both sides have keys."""


class PublishedSnapshot(ApiModel):
    """One published snapshot, in short."""

    time: common.TimestampText
    """Snapshot time."""
    rows: Count
    """Rows."""


PublishedSnapshots = Annotated[tuple[PublishedSnapshot, ...], MaxLen(50), common.Atomic]
"""The newest published snapshots, newest first, as they stand in a status."""


class SnapshotReason(StrEnum):
    """Reason why a snapshot is published, left out, or failed."""

    NEW_SNAPSHOT = "NEW_SNAPSHOT"
    """The interval has no snapshot yet: it is published."""
    SNAPSHOT_MISSING = "SNAPSHOT_MISSING"
    """A source has no snapshot in its window."""
    JOIN_FIELD_MISSING = "JOIN_FIELD_MISSING"
    """A field of a join is absent, or has another type."""
    GROUP_BY_FIELD_MISSING = "GROUP_BY_FIELD_MISSING"
    """A field of a `groupBy` is absent."""
    RETENTION = "RETENTION"
    """`snapshotAutoDelete` would remove it at once."""
    INTERVAL_OPEN = "INTERVAL_OPEN"
    """Its interval has not ended, and `onlyClosedIntervals` is set."""
    INTERVAL_EXCLUDED = "INTERVAL_EXCLUDED"
    """Its interval lies in one of `excludeIntervals`."""
    ALREADY_PUBLISHED = "ALREADY_PUBLISHED"
    """Another run published it meanwhile."""
    LIMIT = "LIMIT"
    """Left for the next run by `--limit`."""
    EARLIER_FAILURE = "EARLIER_FAILURE"
    """Left for the next run because an earlier snapshot failed."""
    INTERRUPTED = "INTERRUPTED"
    """Left for the next run by Ctrl-C or SIGTERM."""
    LEASE_HELD = "LEASE_HELD"
    """Left to another run, which is at work on the output."""
    ROWS_MULTIPLIED = "ROWS_MULTIPLIED"
    """A join met a right key twice."""
    HISTORY_INCOMPATIBLE = "HISTORY_INCOMPATIBLE"
    """Structure or types contradict published snapshots."""
    CHECK_FAILED = "CHECK_FAILED"
    """An expectation about its rows does not hold."""
    SOURCE_FAILED = "SOURCE_FAILED"
    """A source could not be read."""
    PUBLICATION_FAILED = "PUBLICATION_FAILED"
    """The folder refused the snapshot."""
    FAILED = "FAILED"
    """Anything else; the message describes it."""


class SnapshotReport(ApiModel):
    """One snapshot that a run published."""

    time: common.TimestampText
    """Snapshot time."""
    partition: common.ShortText
    """Folder below `data/`, such as `snapshot_epoch=1577836800000`."""
    rows: Count
    """Rows published."""
    files: Count
    """Number of files."""
    bytes: Count
    """Size of the files."""
    seconds: Annotated[float, Ge(0)]
    """Wall time of weaving and publishing."""
    sequence: Count
    """Sequence number of the manifest entry."""
    replaces: Count | None = None
    """Sequence number of the entry whose version this one corrects; omitted for a first version."""
    sources: Annotated[tuple[SourceSnapshot, ...], MaxLen(2000), common.Atomic] = ()
    """The snapshot taken of each source."""
    joins: Annotated[tuple[JoinMeasure, ...], MaxLen(2000), common.Atomic] = ()
    """Counts at each join."""
    unmatched: Annotated[tuple[UnmatchedRows, ...], MaxLen(2000), common.Atomic] = ()
    """Rows that found no match, by join; without those whose `warnNoMatch` is false."""
    excluded: Annotated[tuple[Exclusion, ...], MaxLen(2000), common.Atomic] = ()
    """Sources that it does without."""
    checks: Annotated[tuple[CheckResult, ...], MaxLen(300), common.Atomic] = ()
    """Result of each expectation."""
    warnings: Annotated[tuple[common.MessageText, ...], MaxLen(2000), common.Atomic] = ()
    """Warnings about it, for people."""


class Unpublished(ApiModel):
    """One snapshot that a run did not publish, and why."""

    time: common.TimestampText
    """Snapshot time."""
    partition: common.ShortText
    """Folder it would have had."""
    reason: SnapshotReason
    """Reason."""
    message: common.MessageText = ""
    """Details for people."""
    resource: common.ShortText = ""
    """`Kind/name` of the resource at fault, where one is."""
    path: common.ShortText = ""
    """Field path inside it."""


class RunPhase(StrEnum):
    """Outcome of a run."""

    RUNNING = "RUNNING"
    """It has not ended."""
    SUCCEEDED = "SUCCEEDED"
    """Everything that was due is published, or nothing was due."""
    FAILED = "FAILED"
    """Something that was due is not published."""
    INTERRUPTED = "INTERRUPTED"
    """It was stopped by Ctrl-C or SIGTERM."""


class ManifestPointer(ApiModel):
    """Location of the authoritative record of an output."""

    uri: common.UriText
    """Folder of the output."""
    sequence: Count
    """Sequence number of the newest entry observed to change the data that readers see."""
    fixed: common.StringMap = Field(default_factory=dict)
    """Settings fixed for ever by the first publication, such as `dataFormat: PARQUET`; empty
    before."""


class Progress(ApiModel):
    """Progress of a run."""

    snapshot: Count
    """Number of the snapshot being woven, from 1."""
    snapshots: Count
    """Snapshots that the run will weave."""
    join: Count = 0
    """Number of the join being woven, from 1."""
    joins: Count = 0
    """Joins of this snapshot."""
    message: common.ShortText = ""
    """The same for people."""


class RegisteredTable(ApiModel):
    """The catalog table of an output (`registerTable`), as a run left it."""

    name: common.ShortText
    """Its name."""
    partitions: Count
    """Snapshots in it."""
    sequence: Count
    """Sequence number of the manifest entry up to which it covers the published snapshots."""


class Report(ApiModel):
    """Result of a run: written by the job, read by the operator and by `run -o json`."""

    format: int = REPORT_FORMAT
    """Format version."""
    output: common.ShortText
    """Name of the OutputDataset; `SkippingIndex/name` for a run of an index."""
    uid: Annotated[str, StringConstraints(max_length=64)] = ""
    """UID of the resource in the cluster; empty on a laptop."""
    run_id: common.ShortText
    """Identity of this run: in a cluster the name of its application, elsewhere `storageRunId`."""
    storage_run_id: common.ShortText = ""
    """Identity under which it writes: part of every file name and manifest entry; never reused."""
    attempt: Count | None = None
    """Number of the attempt, as its submitter counts them."""
    phase: RunPhase
    """Outcome."""
    started_at: common.TimestampText
    """Start time."""
    finished_at: common.TimestampText | None = None
    """End time."""
    plan_hash: common.ShortText = ""
    """Hash of the join tree."""
    manifest: ManifestPointer | None = None
    """The output's manifest after the run."""
    progress: Progress | None = None
    """Progress, while it runs."""
    snapshots: Annotated[tuple[SnapshotReport, ...], MaxLen(100_000), common.Atomic] = ()
    """Snapshots it published, in the order of publication."""
    skipped: Annotated[tuple[Unpublished, ...], MaxLen(100_000), common.Atomic] = ()
    """Snapshots it left out, and the reasons."""
    failed: Annotated[tuple[Unpublished, ...], MaxLen(100_000), common.Atomic] = ()
    """Snapshots that failed, and the reasons."""
    findings: Annotated[tuple[Finding, ...], MaxLen(10_000), common.Atomic] = ()
    """Findings of validation and preflight."""
    data_findings: DataFindings = ()
    """Faults and changes in the data; they stop nothing."""
    message: common.MessageText = ""
    """The reason of a failure, for people."""
    reason: common.ShortText = ""
    """The same for machines, such as `SourceNotReadable`; empty for a run that succeeded."""
    retryable: bool | None = None
    """Whether it is worth trying again with nothing changed; omitted for a run that succeeded."""
    seen: Annotated[tuple[SeenSource, ...], MaxLen(4000), common.Atomic] = ()
    """Every source as the run saw it."""
    snapshot_count: Count | None = None
    """Number of snapshots published by any run; omitted when that is not known."""
    newest: LatestSnapshot | None = None
    """The newest of them."""
    published: PublishedSnapshots = ()
    """The newest of them in short, newest first."""
    registered: RegisteredTable | None = None
    """The catalog table, where the output has one and it could be brought up to date."""
    collected: CollectedFiles | None = None
    """Removed files of deleted and replaced snapshots; omitted if there are none, now or later."""
    index: IndexFacts | None = None
    """State of the index after a run of it."""
    removed: Removed | None = None
    """Data that a run removed because the resource is being deleted."""
    truncated: Annotated[tuple[common.ShortText, ...], MaxLen(100), common.Atomic] = ()
    """Parts left out because the Report must fit into a ConfigMap, for people."""
    tool_version: common.ShortText = ""
    """Version of Snaploom."""
    spark_version: common.ShortText = ""
    """Version of Spark."""
    accelerator: common.ShortText = ""
    """Accelerator of Spark with its version, such as `COMET 1.2.0`; empty without one."""
    fallbacks: Lines = ()
    """Reasons why Spark did something itself in spite of the accelerator; at most 50."""
    session: common.StringMap = Field(default_factory=dict)
    """Settings that the job made in its Spark session (rule W4)."""

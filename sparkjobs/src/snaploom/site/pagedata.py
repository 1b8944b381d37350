"""The data of an output's page, frozen before any of it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snaploom.models.finding import Finding
from snaploom.models.report import JoinMeasure
from snaploom.models.times import EpochNanos
from snaploom.planning.picture import Picture
from snaploom.planning.retention import Removal
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.records import Ended


@dataclass(frozen=True)
class Column:
    """One column of a source, or one field of a schema."""

    name: str
    """Its path, such as `customer.data.name`."""
    type: str
    """Its type as Spark names it, such as `decimal(10,2)`."""


@dataclass(frozen=True)
class Node:
    """One source of the output, as declared and as the newest snapshot has it."""

    number: int
    """Number in the join tree; the root is 0."""
    field_name: str
    """Field of the output; empty for the root."""
    source: str
    parent: str
    """Field of the output that it is joined to; empty at the root, and below it."""
    relationship: str
    """Name of the DataRelationship; empty at the root."""
    kind: str = ""
    """The kind of data read, such as `parquet`; empty where declarations are not at hand."""
    keys: tuple[str, ...] = ()
    """Components of the key, each with both sides."""
    group_by: tuple[str, ...] = ()
    """Columns by which its rows are collected into an array."""
    columns: tuple[Column, ...] = ()
    """Its columns in the newest snapshot, or as declared."""
    taken: str = ""
    """Time of its snapshot that the newest one has, ISO 8601."""
    left_out: str = ""
    """Why the newest snapshot does without it; empty where it does not."""
    measure: JoinMeasure | None = None
    """The counts at its join in the newest snapshot."""

    @property
    def title(self) -> str:
        """Its name for readers."""
        return self.field_name or self.source


@dataclass(frozen=True)
class Gap:
    """Intervals without a snapshot, between two that have one."""

    start: EpochNanos
    end: EpochNanos
    """Not included."""
    intervals: int
    """How many; one at least."""
    is_bounded: bool = False
    """Whether there may be more, since counting stopped."""


@dataclass(frozen=True)
class Freshness:
    """Age of the newest publication, against `run.freshness`."""

    published: EpochNanos | None
    """When a snapshot was published last; None before the first."""
    expires: EpochNanos | None
    """When the output is stale; None where no age is declared, or nothing is published."""
    is_declared: bool = False


@dataclass(frozen=True)
class SchemaChange:
    """Differences between the schemas of two successive snapshots."""

    time: EpochNanos
    """The first snapshot with the new schema."""
    added: tuple[Column, ...] = ()
    removed: tuple[Column, ...] = ()
    retyped: tuple[tuple[Column, str], ...] = ()
    """Columns whose type changed, with the type before."""
    model: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckHistory:
    """Results of one expectation in all live snapshots."""

    name: str
    mode: str
    expression: str
    """As declared; empty where it is not declared any more."""
    met: int
    """Snapshots that met it."""
    unmet: int
    """Snapshots that were published although they did not."""
    last_unmet: EpochNanos | None = None
    """The newest of these."""
    measured: str = ""
    """The value measured instead in that one."""


@dataclass(frozen=True)
class LineageLine:
    """Where one column of the output comes from, as far as declarations show."""

    column: str
    """Path in the output."""
    type: str
    source: str
    """Name of the DataSource."""
    origin: str
    """Its column there, after the transformers of the source."""
    through: str
    """The steps in between, for people; empty where values are taken as they are."""
    places: tuple[str, ...] = ()
    """Datasets that the source reads, as lineage names them."""


@dataclass(frozen=True)
class IndexState:
    """One declared SkippingIndex on the output, or on a source of it."""

    name: str
    target: str
    indexes: tuple[str, ...]
    """The facts kept about each file, such as `id MIN_MAX`."""
    phase: str = ""
    """State as committed; empty where it was not looked at."""
    refreshed: EpochNanos | None = None
    """When its rows were brought up to date."""
    files: int | None = None
    """Files about which there are rows; None where that was not looked at."""
    bytes: int = 0
    coverage: tuple[tuple[str, int, int], ...] = ()
    """By index, files that it covers and files that it does not."""
    reads: int | None = None
    """Reads that queries tried it for, as sessions recorded; None where nothing is recorded."""
    files_considered: int = 0
    files_dropped: int = 0
    bytes_considered: int = 0
    bytes_dropped: int = 0
    problem: str = ""
    """Why its state is not shown."""


@dataclass(frozen=True)
class RunOutcome:
    """One run, from its Report."""

    run: str
    started: str
    phase: str
    message: str
    failed: tuple[tuple[str, str, str], ...] = ()
    """Snapshot time, reason and message of each failure."""


@dataclass(frozen=True)
class OutputPage:
    """Everything that the page of one output shows."""

    name: str
    folder: str
    now: EpochNanos
    """Instant of the observation; ages are measured to it."""
    is_present: bool = False
    """Whether that is the present, so that ages go on growing while the page is looked at."""
    picture: Picture | None = None
    """Drawing of the join tree; None where there is none."""
    nodes: tuple[Node, ...] = ()
    snapshots: tuple[SnapshotRecord, ...] = ()
    ended: tuple[Ended, ...] = ()
    """Versions that were deleted or replaced, in the order in which they were."""
    revoked: int = 0
    """Runs that may commit nothing any more, since they crashed or were superseded."""
    gaps: tuple[Gap, ...] = ()
    going: tuple[Removal, ...] = ()
    """Snapshots that retention would delete at the next publication, if nothing were added."""
    freshness: Freshness = Freshness(None, None)
    schema_changes: tuple[SchemaChange, ...] = ()
    """Newest first."""
    checks: tuple[CheckHistory, ...] = ()
    lineage: tuple[LineageLine, ...] = ()
    indexes: tuple[IndexState, ...] = ()
    runs: tuple[RunOutcome, ...] = ()
    """Runs of which a Report is at hand, newest first."""
    findings: tuple[Finding, ...] = ()
    problem: str = ""
    """The reason why published snapshots are not shown; empty where they are."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Fixed or declared facts about the folder, for people, by name."""

    @property
    def newest(self) -> SnapshotRecord | None:
        """The newest live snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def total_bytes(self) -> int:
        """Size of all live files."""
        return sum(size_of(record) for record in self.snapshots)

    @property
    def is_stale(self) -> bool:
        """Whether `run.freshness` has run out."""
        if self.freshness.expires is None:
            return self.freshness.is_declared and self.freshness.published is None
        return self.now >= self.freshness.expires

    @property
    def errors(self) -> int:
        """Findings that stop a run."""
        return sum(finding.is_error for finding in self.findings)


def size_of(record: SnapshotRecord) -> int:
    """Bytes of a snapshot's files."""
    return sum(file.bytes for file in record.files)

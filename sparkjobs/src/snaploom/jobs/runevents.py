"""Events of a run: small frozen objects, emitted in the order in which things happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.jobs.lineageinput import WovenColumns
from snaploom.jobs.published.runestimate import Estimate
from snaploom.models.report import (
    LatestSnapshot,
    ManifestPointer,
    PublishedSnapshot,
    SnapshotReport,
    Unpublished,
)
from snaploom.models.runfacts import CollectedFiles
from snaploom.models.times import EpochNanos


@dataclass(frozen=True)
class RunPlanned:
    """It is known what will be visited."""

    output: str
    snapshots: int
    joins: int


@dataclass(frozen=True)
class RunEstimated:
    """A backfill was estimated."""

    output: str
    estimate: Estimate


@dataclass(frozen=True)
class LeaseAwaited:
    """Another run is at work on the output, and is waited for."""

    holder: str
    """Its id."""


@dataclass(frozen=True)
class SnapshotStarted:
    """A snapshot is being woven."""

    number: int
    snapshots: int
    time: EpochNanos


@dataclass(frozen=True)
class JoinPlanned:
    """One more join is part of the snapshot's Spark plan."""

    number: int
    joins: int
    field_name: str


@dataclass(frozen=True)
class TasksDone:
    """How far Spark is with the snapshot."""

    done: int
    tasks: int


@dataclass(frozen=True)
class SnapshotPublished:
    """A snapshot is live."""

    report: SnapshotReport
    columns: WovenColumns | None = None
    """Its columns, and those that it was woven from; None where nobody kept them."""


@dataclass(frozen=True)
class ManifestRead:
    """State of the folder after a publication of this run."""

    manifest: ManifestPointer
    """Where the record is."""
    newest: LatestSnapshot | None
    """The newest published snapshot."""
    published: tuple[PublishedSnapshot, ...]
    """The newest published snapshots, newest first, as far as a status has room."""
    count: int
    """Number of published snapshots."""


@dataclass(frozen=True)
class SnapshotLeftOut:
    """A snapshot was skipped or failed."""

    outcome: Unpublished
    is_failure: bool


@dataclass(frozen=True)
class FilesCollected:
    """Files of snapshots that are not published any more are removed."""

    collected: CollectedFiles


@dataclass(frozen=True)
class IndexFollowed:
    """A skipping index knows what was published."""

    label: str
    """The resource."""
    done: tuple[str, ...]
    """Changes to it, in a few words each."""


@dataclass(frozen=True)
class Warned:
    """Something that a person should know, and that stops nothing."""

    message: str


@dataclass(frozen=True)
class OfOutput:
    """An event of one of several outputs that are woven at a time."""

    output: str
    event: Event


Event = (
    RunPlanned
    | RunEstimated
    | LeaseAwaited
    | SnapshotStarted
    | JoinPlanned
    | TasksDone
    | SnapshotPublished
    | ManifestRead
    | SnapshotLeftOut
    | FilesCollected
    | IndexFollowed
    | Warned
    | OfOutput
)
EmitEvent = Callable[[Event], None]
"""Takes an event; must not raise and must not block."""

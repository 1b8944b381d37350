"""The Report of a run that has not ended: how far it is, and what it has published so far."""

from __future__ import annotations

from snaploom.jobs.runevents import (
    Event,
    JoinPlanned,
    LeaseAwaited,
    ManifestRead,
    RunPlanned,
    SnapshotLeftOut,
    SnapshotPublished,
    SnapshotStarted,
)
from snaploom.models.report import Progress, Report, RunPhase, SnapshotReport, Unpublished


class RunningReport:
    """Takes events, gives Reports; not for several threads at once."""

    def __init__(self, report: Report) -> None:
        """Begin with a Report in the phase RUNNING."""
        self._start = report.model_copy(update={"phase": RunPhase.RUNNING})
        self._progress: Progress | None = None
        self._snapshots: list[SnapshotReport] = []
        self._skipped: list[Unpublished] = []
        self._failed: list[Unpublished] = []
        self._read: ManifestRead | None = None

    def take(self, event: Event) -> None:
        """Something happened."""
        match event:
            case RunPlanned(_, snapshots, joins) if snapshots:
                self._progress = _progress(0, snapshots, 0, joins)
            case LeaseAwaited(holder) if self._progress is not None:
                message = f"waiting for run {holder}, which is at work on this output"
                self._progress = self._progress.model_copy(update={"message": message})
            case SnapshotStarted(number, snapshots, _):
                joins = 0 if self._progress is None else self._progress.joins
                self._progress = _progress(number, snapshots, 0, joins)
            case JoinPlanned(number, joins, _) if self._progress is not None:
                at = self._progress
                self._progress = _progress(at.snapshot, at.snapshots, number, joins)
            case SnapshotPublished(report):
                self._snapshots.append(report)
            case ManifestRead():
                self._read = event
            case SnapshotLeftOut(outcome, is_failure):
                (self._failed if is_failure else self._skipped).append(outcome)

    def take_files(self, done: int, files: int) -> None:
        """So many files of an index are done."""
        self._progress = Progress(snapshot=0, snapshots=0, message=f"file {done} of {files}")

    @property
    def report(self) -> Report:
        """The Report so far."""
        read = self._read
        published = (
            {
                "manifest": read.manifest,
                "newest": read.newest,
                "published": read.published,
                "snapshot_count": read.count,
            }
            if read is not None
            else {}
        )
        return self._start.model_copy(
            update={
                **published,
                "progress": self._progress,
                "snapshots": tuple(self._snapshots),
                "skipped": tuple(self._skipped),
                "failed": tuple(self._failed),
            }
        )


def _progress(snapshot: int, snapshots: int, join: int, joins: int) -> Progress:
    message = f"snapshot {snapshot} of {snapshots}" if snapshot else f"{snapshots} snapshots due"
    if join:
        message += f", join {join} of {joins}"
    return Progress(snapshot=snapshot, snapshots=snapshots, join=join, joins=joins, message=message)

"""Records what a run does: emits events at once, and builds the Report at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from snaploom.errors import (
    CheckFailed,
    HistoryIncompatible,
    Interrupted,
    LeaseNotObtained,
    PublicationError,
    RowsMultiplied,
    SnaploomError,
    SnapshotMissing,
    SourceError,
    StorageError,
)
from snaploom.jobs.lineageinput import WovenColumns
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.runevents import (
    EmitEvent,
    FilesCollected,
    ManifestRead,
    RunPlanned,
    SnapshotLeftOut,
    SnapshotPublished,
    Warned,
)
from snaploom.models.finding import Finding, InvalidDeclarations
from snaploom.models.report import (
    RegisteredTable,
    Report,
    RunPhase,
    SnapshotReason,
    SnapshotReport,
    Unpublished,
)
from snaploom.models.runfacts import CollectedFiles
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import PlannedSnapshot, RunPlan
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.runcleanup import Swept
from snaploom.storage.statussummary import manifest_pointer, newest_snapshot, published_snapshots
from snaploom.version import VERSION

LONGEST_MESSAGE = 32_768
"""Characters that the Report takes for one message."""


@dataclass(frozen=True)
class SessionFacts:
    """Facts about the session for the Report; read before the run, which Spark may not survive."""

    version: str
    """Version of Spark."""
    settings: Mapping[str, str]
    """Settings that results depend on."""


NO_SESSION = SessionFacts("", {})
"""Of a run for which Spark was not started."""


class RunRecord:
    """The outcome of every planned snapshot of one run."""

    def __init__(
        self,
        bundle: Bundle,
        run_id: str,
        emit: EmitEvent,
        clock: Callable[[], EpochNanos],
        session: SessionFacts = NO_SESSION,
    ) -> None:
        """Nothing has happened yet.

        Args:
            bundle: the output, and what it refers to.
            run_id: of the run.
            emit: takes the events.
            clock: the wall clock.
            session: facts about the session.
        """
        self.observations = Observations()
        """Observations of folder and sources."""
        self._session = session
        self._bundle = bundle
        self._output = bundle.output
        self._run_id = run_id
        self._emit = emit
        self._clock = clock
        self._started = clock()
        self._plan_hash = ""
        self._findings: tuple[Finding, ...] = ()
        self._published: list[SnapshotReport] = []
        self._skipped: list[Unpublished] = []
        self._failed: list[Unpublished] = []
        self._stopped_by: SnaploomError | None = None
        self._cause: type[SnaploomError] | None = None
        self.registered: RegisteredTable | None = None
        """The catalog table, once it is up to date."""
        self.collected: CollectedFiles | None = None
        """Files of ended snapshots: removed, and waiting."""

    def plan(self, plan: RunPlan, due: int) -> None:
        """It is known what will be visited.

        Args:
            plan: what was planned.
            due: number of snapshots to publish.
        """
        self._plan_hash = plan.hash
        self._findings = plan.findings
        self._emit(RunPlanned(self._output.name, due, len(plan.tree.joins)))

    def publish(
        self,
        record: SnapshotRecord,
        seconds: float,
        warnings: Sequence[str],
        columns: WovenColumns | None = None,
    ) -> None:
        """A snapshot is live.

        Args:
            record: as the manifest has it.
            seconds: wall time of weaving and publishing.
            warnings: what a person should know about it.
            columns: its columns, and those that it was woven from.
        """
        report = SnapshotReport(
            time=format_instant(record.time),
            partition=record.partition,
            rows=record.rows,
            files=len(record.files),
            bytes=sum(file.bytes for file in record.files),
            seconds=round(seconds, 3),
            sequence=record.seq,
            replaces=record.replaces,
            sources=record.sources,
            joins=record.joins,
            excluded=record.excluded,
            checks=record.checks,
            warnings=tuple(clipped(warning) for warning in warnings),
        )
        self._published.append(report)
        for warning in warnings:
            self.warn(f"{report.time}: {warning}")
        self._emit(SnapshotPublished(report, columns))

    def show_published(self) -> None:
        """Emit the state of the manifest as last read."""
        state = self.observations.state
        if state is not None:
            uri = self._output.spec.output_folder.folder_uri
            pointer = manifest_pointer(uri, state)
            published, count = published_snapshots(state), len(state.live)
            self._emit(ManifestRead(pointer, newest_snapshot(state), published, count))

    def leave_out(
        self, planned: PlannedSnapshot, reason: SnapshotReason, message: str, *, warn: bool = False
    ) -> None:
        """A snapshot is skipped, or left for the next run."""
        outcome = _unpublished(planned, reason, message)
        self._skipped.append(outcome)
        self._emit(SnapshotLeftOut(outcome, is_failure=False))
        if warn:
            self.warn(f"{outcome.time} is skipped: {message}")

    def fail(
        self,
        planned: PlannedSnapshot,
        reason: SnapshotReason,
        message: str,
        cause: type[SnaploomError],
        *,
        resource: str = "",
        path: str = "",
    ) -> None:
        """A snapshot that was due cannot be published, because of a field of a resource."""
        self._cause = self._cause or cause
        outcome = _unpublished(planned, reason, message, resource, path)
        self._failed.append(outcome)
        self._emit(SnapshotLeftOut(outcome, is_failure=True))

    def give_up(
        self,
        remaining: Sequence[PlannedSnapshot],
        error: SnaploomError,
        reason: SnapshotReason | None = None,
    ) -> None:
        """The first of the remaining snapshots failed, or the run is to end; the rest is left.

        Args:
            remaining: the snapshots that were due and are not done, the failed one first.
            error: what went wrong.
            reason: the same for machines; omitted, that of the kind of error.
        """
        if isinstance(error, Interrupted | LeaseNotObtained):
            is_interrupted = isinstance(error, Interrupted)
            left = SnapshotReason.INTERRUPTED if is_interrupted else SnapshotReason.LEASE_HELD
            self.stop(error)
            for planned in remaining:
                self.leave_out(planned, left, error.message)
            return
        self.fail(
            remaining[0],
            reason or reason_of(error),
            str(error),
            type(error),
            resource=error.resource or self._output.identity,
            path=error.path or "",
        )
        for planned in remaining[1:]:
            self.leave_out(planned, SnapshotReason.EARLIER_FAILURE, f"after: {error.message}")

    def stop(self, error: SnaploomError) -> None:
        """The run ends early, for a reason that is not one snapshot's."""
        self._stopped_by = error
        self._cause = type(error)
        if isinstance(error, InvalidDeclarations):
            known = set(self._findings)
            self._findings += tuple(f for f in error.findings if f not in known)

    def collect(self, swept: Swept) -> None:
        """Files of ended snapshots are removed, or wait."""
        if not swept.files and not swept.waiting:
            return
        self.collected = CollectedFiles(
            snapshots=swept.snapshots,
            files=swept.files,
            bytes=swept.bytes,
            waiting=swept.waiting,
        )
        if swept.files:
            self._emit(FilesCollected(self.collected))

    def warn(self, message: str) -> None:
        """Something that a person should know, and that stops nothing."""
        self._emit(Warned(message))

    def report(self) -> Report:
        """All of it, now that the run has ended."""
        state, cause = self.observations.state, self._cause
        folder = self._output.spec.output_folder.folder_uri
        return Report(
            output=self._output.name,
            uid=self._output.metadata.uid or "",
            run_id=self._run_id,
            storage_run_id=self._run_id,
            phase=self._phase(),
            started_at=format_instant(self._started),
            finished_at=format_instant(self._clock()),
            plan_hash=self._plan_hash,
            snapshots=tuple(self._published),
            skipped=tuple(self._skipped),
            failed=tuple(self._failed),
            manifest=None if state is None else manifest_pointer(folder, state),
            findings=self._findings,
            message=self._message(),
            reason="" if cause is None else cause.reason,
            retryable=None if cause is None else cause.retryable,
            seen=self.observations.sources(self._bundle),
            snapshot_count=None if state is None else len(state.live),
            newest=None if state is None else newest_snapshot(state),
            published=() if state is None else published_snapshots(state),
            registered=self.registered,
            collected=self.collected,
            session=dict(self._session.settings),
            tool_version=VERSION,
            spark_version=self._session.version,
        )

    def _phase(self) -> RunPhase:
        if isinstance(self._stopped_by, Interrupted):
            return RunPhase.INTERRUPTED
        return RunPhase.FAILED if self._stopped_by or self._failed else RunPhase.SUCCEEDED

    def _message(self) -> str:
        if self._stopped_by is not None:
            return clipped(str(self._stopped_by))
        return self._failed[0].message if self._failed else ""


def clipped(message: str) -> str:
    """A message no longer than the Report takes."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


def _unpublished(
    planned: PlannedSnapshot,
    reason: SnapshotReason,
    message: str,
    resource: str = "",
    path: str = "",
) -> Unpublished:
    return Unpublished(
        time=format_instant(planned.time),
        partition=planned.partition,
        reason=reason,
        message=clipped(message),
        resource=resource,
        path=path,
    )


_REASONS: tuple[tuple[type[SnaploomError], SnapshotReason], ...] = (
    (RowsMultiplied, SnapshotReason.ROWS_MULTIPLIED),
    (HistoryIncompatible, SnapshotReason.HISTORY_INCOMPATIBLE),
    (SnapshotMissing, SnapshotReason.SNAPSHOT_MISSING),
    (CheckFailed, SnapshotReason.CHECK_FAILED),
    (SourceError, SnapshotReason.SOURCE_FAILED),
    (PublicationError, SnapshotReason.PUBLICATION_FAILED),
    (StorageError, SnapshotReason.PUBLICATION_FAILED),
)


def reason_of(error: SnaploomError) -> SnapshotReason:
    """Why a snapshot failed, in the Report's words."""
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)), SnapshotReason.FAILED
    )

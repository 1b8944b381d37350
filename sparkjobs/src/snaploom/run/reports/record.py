"""Records what a run does and observes, and builds its Reports."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from snaploom import errors
from snaploom.files.listed import SparkNeeded
from snaploom.files.objectstore import ObjectStore
from snaploom.installed import VERSION
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.datarelationship import UnmatchedRows
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding, InvalidDeclarations
from snaploom.models.report import (
    MOST_DATA_FINDINGS,
    CollectedFiles,
    DataFinding,
    Progress,
    RegisteredTable,
    Report,
    RunPhase,
    SeenSource,
    SnapshotReason,
    SnapshotReport,
    Unpublished,
)
from snaploom.output.entries import SnapshotRecord
from snaploom.output.gc import Swept
from snaploom.output.history import manifest_pointer, newest_snapshot, published_snapshots
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.plan import PlannedSnapshot, RunPlan
from snaploom.run import runevents
from snaploom.run.reports.writer import keep_run
from snaploom.sources.registry import declared

_log = logging.getLogger(__name__)


# Observations of folder and sources during a run, also of one that fails early.


class Observations:
    """Listings and schemas observed during a run."""

    def __init__(self) -> None:
        self.state: FolderState | None = None
        """State of the output's folder when it was last looked at."""
        self.listings: dict[str, SourceSnapshots] = {}
        self._schemas: dict[str, tuple[EpochNanos, str]] = {}

    def see_schema(self, source: str, time: EpochNanos, fingerprint: str) -> None:
        """A snapshot of a source has a schema; that of the newest one counts."""
        known = self._schemas.get(source)
        if known is None or known[0] <= time:
            self._schemas[source] = time, fingerprint

    def sources(self, bundle: Bundle) -> tuple[SeenSource, ...]:
        """Observations of the sources of a bundle that were looked at."""
        seen = (self._source(source) for source in bundle.data_sources)
        below = (self._below(source) for source in bundle.data_sources)
        found = {one.source: one for one in (*below, *seen) if one is not None}
        return tuple(found[name] for name in sorted(found))

    def _source(self, source: DataSource) -> SeenSource | None:
        listing = self.listings.get(source.name)
        if listing is None:
            return None
        schema = self._schemas.get(source.name)
        return _seen(source.name, listing, None if schema is None else schema[1])

    def _below(self, source: DataSource) -> SeenSource | None:
        listing = self.listings.get(source.name)
        below = declared(source).snapshots_of
        return None if below is None or listing is None else _seen(below, listing, None)


def _seen(name: str, listing: SourceSnapshots, schema: str | None) -> SeenSource:
    return SeenSource(
        source=name,
        latest_snapshot=format_instant(listing.times[-1]) if listing.times else None,
        snapshots=len(listing.times) if listing.times or listing.is_empty else None,
        schema_fingerprint=schema,
    )


# Records what a run does: emits events at once, and builds the Report at the end.

LONGEST_MESSAGE = 32_768
"""Characters that the Report takes for one message."""


@dataclass(frozen=True)
class SessionFacts:
    """Facts about the session for the Report; read before the run, which Spark may not survive."""

    version: str
    settings: Mapping[str, str]
    """Settings that results depend on."""
    accelerator: str = ""
    """Name and version of the accelerator; empty without one."""
    fallbacks: Callable[[], tuple[str, ...]] = tuple
    """Returns the reasons why Spark did something itself so far."""


NO_SESSION = SessionFacts("", {})
"""Of a run for which Spark was not started."""


class RunRecord:
    """The outcome of every planned snapshot of one run."""

    def __init__(
        self,
        bundle: Bundle,
        run_id: str,
        emit: runevents.EmitEvent,
        clock: Callable[[], EpochNanos],
        session: SessionFacts = NO_SESSION,
    ) -> None:
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
        self._stopped_by: errors.SnaploomError | None = None
        self._cause: type[errors.SnaploomError] | None = None
        self._data: dict[tuple[str, ...], DataFinding] = {}
        self.sample: tuple[str, ...] = ()
        """Rows of the newest snapshot that was published, as JSON."""
        self.registered: RegisteredTable | None = None
        """The catalog table, once it is up to date."""
        self.collected: CollectedFiles | None = None
        """Files of ended snapshots: removed, and waiting."""

    def plan(self, plan: RunPlan, due: int) -> None:
        """It is known what will be visited."""
        self._plan_hash = plan.hash
        self._findings = plan.findings
        self._emit(runevents.RunPlanned(self._output.name, due, len(plan.tree.joins)))

    def find(self, findings: Iterable[DataFinding]) -> None:
        """Something in people's data is wrong, or new; what several snapshots show is one."""
        for each in findings:
            known = self._data.get(each.subject)
            self._data[each.subject] = each if known is None else known.merged(each)

    def publish(
        self,
        record: SnapshotRecord,
        seconds: float,
        warnings: Sequence[str],
        columns: runevents.WovenColumns | None = None,
        unmatched: tuple[UnmatchedRows, ...] = (),
    ) -> None:
        """A snapshot is live."""
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
            unmatched=unmatched,
            excluded=record.excluded,
            checks=record.checks,
            warnings=tuple(clipped(warning) for warning in warnings),
        )
        self._published.append(report)
        self._session.fallbacks()  # Spark forgets queries of long ago
        for warning in warnings:
            self.warn(f"{report.time}: {warning}")
        self._emit(runevents.SnapshotPublished(report, columns))

    def show_published(self) -> None:
        """Emit the state of the manifest as last read."""
        state = self.observations.state
        if state is not None:
            uri = self._output.spec.output_folder.folder_uri
            pointer = manifest_pointer(uri, state)
            published, count = published_snapshots(state), len(state.live)
            self._emit(runevents.ManifestRead(pointer, newest_snapshot(state), published, count))

    def leave_out(
        self, planned: PlannedSnapshot, reason: SnapshotReason, message: str, *, warn: bool = False
    ) -> None:
        """A snapshot is skipped, or left for the next run."""
        outcome = _unpublished(planned, reason, message)
        self._skipped.append(outcome)
        self._emit(runevents.SnapshotLeftOut(outcome, is_failure=False))
        if warn:
            self.warn(f"{outcome.time} is skipped: {message}")

    def fail(
        self,
        planned: PlannedSnapshot,
        reason: SnapshotReason,
        message: str,
        cause: type[errors.SnaploomError],
        *,
        resource: str = "",
        path: str = "",
    ) -> None:
        """A snapshot that was due cannot be published, because of a field of a resource."""
        self._cause = self._cause or cause
        outcome = _unpublished(planned, reason, message, resource, path)
        self._failed.append(outcome)
        self._emit(runevents.SnapshotLeftOut(outcome, is_failure=True))

    def give_up(
        self,
        remaining: Sequence[PlannedSnapshot],
        error: errors.SnaploomError,
        reason: SnapshotReason | None = None,
    ) -> None:
        """The first of the remaining snapshots failed, or the run is to end; the rest is left.

        `remaining` are the snapshots that were due and are not done, the failed one first.
        """
        if isinstance(error, errors.Interrupted | errors.LeaseNotObtained):
            is_interrupted = isinstance(error, errors.Interrupted)
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

    def stop(self, error: errors.SnaploomError) -> None:
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
        self.collected = CollectedFiles.model_validate(swept, from_attributes=True)
        if swept.files:
            self._emit(runevents.FilesCollected(self.collected))

    def warn(self, message: str) -> None:
        """Something that a person should know, and that stops nothing."""
        self._emit(runevents.Warned(message))

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
            data_findings=tuple(self._data.values())[:MOST_DATA_FINDINGS],
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
            accelerator=self._session.accelerator,
            fallbacks=self._session.fallbacks(),
        )

    def kept_report(self, store: Callable[[], ObjectStore]) -> Report:
        """As `report`, and keep it in the output's folder, which is known to be the output's."""
        report, state = self.report(), self.observations.state
        if state is not None and state.seq:
            try:
                keep_run(store(), report, self.sample)
            except (SparkNeeded, errors.SnaploomError) as error:
                _log.info("the run is not kept in the output's folder: %s", error)
        return report

    def _phase(self) -> RunPhase:
        if isinstance(self._stopped_by, errors.Interrupted):
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


_REASONS: tuple[tuple[type[errors.SnaploomError], SnapshotReason], ...] = (
    (errors.RowsMultiplied, SnapshotReason.ROWS_MULTIPLIED),
    (errors.HistoryIncompatible, SnapshotReason.HISTORY_INCOMPATIBLE),
    (errors.SnapshotMissing, SnapshotReason.SNAPSHOT_MISSING),
    (errors.CheckFailed, SnapshotReason.CHECK_FAILED),
    (errors.SourceError, SnapshotReason.SOURCE_FAILED),
    (errors.PublicationError, SnapshotReason.PUBLICATION_FAILED),
    (errors.StorageError, SnapshotReason.PUBLICATION_FAILED),
)


def reason_of(error: errors.SnaploomError) -> SnapshotReason:
    """Return the Report's reason of a failed snapshot."""
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)), SnapshotReason.FAILED
    )


# The Report of a run that has not ended: how far it is, and what it has published so far.


class RunningReport:
    """Takes events, gives Reports; not for several threads at once."""

    def __init__(self, report: Report) -> None:
        self._start = report.model_copy(update={"phase": RunPhase.RUNNING})
        self._progress: Progress | None = None
        self._snapshots: list[SnapshotReport] = []
        self._skipped: list[Unpublished] = []
        self._failed: list[Unpublished] = []
        self._read: runevents.ManifestRead | None = None

    def take(self, event: runevents.Event) -> None:
        match event:
            case runevents.RunPlanned(_, snapshots, joins) if snapshots:
                self._progress = _progress(0, snapshots, 0, joins)
            case runevents.LeaseAwaited(holder) if self._progress is not None:
                message = f"waiting for run {holder}, which is at work on this output"
                self._progress = self._progress.model_copy(update={"message": message})
            case runevents.SnapshotStarted(number, snapshots, _):
                joins = 0 if self._progress is None else self._progress.joins
                self._progress = _progress(number, snapshots, 0, joins)
            case runevents.JoinPlanned(number, joins, _) if self._progress is not None:
                at = self._progress
                self._progress = _progress(at.snapshot, at.snapshots, number, joins)
            case runevents.SnapshotPublished(report):
                self._snapshots.append(report)
            case runevents.ManifestRead():
                self._read = event
            case runevents.SnapshotLeftOut(outcome, is_failure):
                (self._failed if is_failure else self._skipped).append(outcome)

    def take_files(self, done: int, files: int) -> None:
        """So many files of an index are done."""
        self._progress = Progress(snapshot=0, snapshots=0, message=f"file {done} of {files}")

    @property
    def report(self) -> Report:
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

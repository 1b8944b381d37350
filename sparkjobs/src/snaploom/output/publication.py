"""Publication of a snapshot: stage, promote file by file, commit, and clean up."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from snaploom import errors
from snaploom.files.objectstore import STORE_FAILURES, ObjectInfo, ObjectStore, refuse_links
from snaploom.models.common import EpochNanos
from snaploom.models.report import CheckResult, Exclusion, JoinMeasure, SourceSnapshot
from snaploom.output import layout, manifest
from snaploom.output.entries import Entry, FileRecord, ModelNode, Publish, SnapshotRecord
from snaploom.output.folder import CrashPoint, Folder, Run
from snaploom.output.gc import Garbage, GarbageKind, collect_garbage, find_garbage
from snaploom.output.state import FolderState

_log = logging.getLogger(__name__)


# Steps of every publication: stage, promote file by file, commit, and clean up.

LEFTOVER_GRACE = 3600 * 1_000_000_000
"""Nanoseconds after which files of an unknown run in our partition are taken for those of a dead
one: the default of `readerGrace` (rule P22). Younger ones may be of a run that races with us."""

Counted = TypeVar("Counted")


@dataclass
class Work:
    """One version of a snapshot on its way into a folder, and its cleanup on failure."""

    folder: Folder
    run: Run
    time: EpochNanos
    partition: str
    attempt: str = field(default_factory=layout.new_attempt)
    """Distinguishes the files from those of any other work of the same run."""
    promoted: list[str] = field(default_factory=list)
    """Files that have, or are just getting, their final names."""
    is_committing: bool = False
    """Whether an entry may have been written."""
    remarks: tuple[str, ...] = ()
    """Returned by the last revalidation of the entry."""

    @property
    def store(self) -> ObjectStore:
        return self.folder.store

    @property
    def staging(self) -> str:
        """Return the folder that the writer writes to."""
        return layout.staging_prefix(self.run.run_id, self.attempt)

    @contextmanager
    def cleaning_up(self) -> Iterator[None]:
        """Remove the work's files if the block fails, unless they are or may be published."""
        try:
            yield
        except BaseException as failure:
            self._abandon(failure)
            raise
        self.clean_staging()

    def stage(self, write: Callable[[str], Counted]) -> tuple[Counted, list[ObjectInfo]]:
        """Call the writer as `publish` does; returns its counts and its files of data.

        Raises:
            NotAPlainFile: a link is where it would write (local disks only).
        """
        self.run.reached(CrashPoint.BEFORE_STAGING)
        refuse_links(self.store, [self.staging.removesuffix("/")])
        counted = write(f"{self.store.uri}{self.staging}")
        staged = self._staged_files()
        self.run.reached(CrashPoint.AFTER_STAGING)
        return counted, staged

    def clear_partition(self, grace: int = LEFTOVER_GRACE) -> tuple[Garbage, ...]:
        """Remove dead runs' files after `grace` nanoseconds; returns those too young or foreign."""
        prefix = layout.partition_prefix(self.partition)
        state = self.folder.log.read()
        found = find_garbage(self.store, state, self.run.clock(), grace, prefix)
        # Tombstoned files are left to gc, which knows how long readers may hold on to them.
        uncommitted = [item for item in found if item.kind is GarbageKind.UNCOMMITTED]
        removed = {item.key for item in collect_garbage(self.folder, uncommitted, self.run)}
        return tuple(item for item in found if item.key not in removed)

    def promote(self, staged: list[ObjectInfo]) -> tuple[FileRecord, ...]:
        """Give staged files their final names one by one; `RunRevoked` if they are gone."""
        files = []
        for number, info in enumerate(staged):
            key = layout.published_key(
                self.partition, self.run.run_id, self.attempt, number, info.key
            )
            self.promoted.append(key)  # before the move: an interrupted one is removed as well
            try:
                self.store.move_if_absent(info.key, key)
            except errors.ObjectNotFound:
                refuse_revoked(self.folder.log.read(), self.run)
                raise
            files.append(FileRecord(path=key, bytes=info.size))
            self.run.reached(CrashPoint.DURING_PROMOTION)
        self.run.reached(CrashPoint.AFTER_PROMOTION)
        return tuple(files)

    def commit(self, build: Callable[[FolderState], Entry | None]) -> FolderState:
        """Commit the entry; arguments, result and errors are those of `ManifestLog.commit`."""
        self.is_committing = True
        state = self.folder.commit(build, self.run)
        self.run.reached(CrashPoint.AFTER_COMMIT)
        return state

    def is_committed(self, state: FolderState) -> bool:
        """Whether an entry up to this state is ours, also if what it published has ended since."""
        record = state.live.get(self.time)
        if self.promoted:
            # Names are never used twice, so that one of them stands for all.
            ended = (t for t in state.ended if t.time == self.time)
            versions = (record, *map(state.records.tombstone, ended))
            name = self.promoted[0]
            return any(version is not None and version.has(name) for version in versions)
        return record is not None and record.run_id == self.run.run_id and not record.files

    def discard(self) -> None:
        """Remove our own files: promoted ones by name, staging by its prefix."""
        try:
            self.store.delete(self.promoted)
        except STORE_FAILURES as error:
            _warn_of_files(self.run, error)
        self.clean_staging()

    def clean_staging(self) -> None:
        """Remove the rest of staging; the outcome stands, so that a failure is a warning."""
        remove_staged(self.store, self.run, self.staging)

    def _abandon(self, failure: BaseException) -> None:
        try:
            if self.is_committing and not _is_definite(failure) and not self._settle():
                self.clean_staging()
            else:
                self.discard()
        except STORE_FAILURES as error:
            _warn_of_files(self.run, error)

    def _settle(self) -> bool:
        """Ensure that no entry of ours can land any more; whether our files are dead.

        The answer to a put may still be under way. Revoking ourselves takes the number that it
        wants, or finds our entry there.
        """
        revoked = self.folder.revoke((self.run.run_id,), self.run, unless=self.is_committed)
        return not self.is_committed(revoked)

    def _staged_files(self) -> list[ObjectInfo]:
        staged = []
        for info in self.store.list(self.staging):
            name = info.key.removeprefix(self.staging)
            if any(not layout.is_data_file(part) for part in name.split("/")):
                continue
            if "/" in name:
                raise errors.PublicationError(
                    "the writer left a file in a subfolder of staging",
                    found=name,
                    expected="files directly below the folder it was given",
                )
            staged.append(info)
        return sorted(staged, key=lambda info: info.key)


def remove_staged(store: ObjectStore, run: Run, prefix: str) -> None:
    """Remove everything below a staging prefix; a failure is a warning."""
    try:
        store.delete([info.key for info in store.list(prefix)])
        store.prune(prefix)
    except STORE_FAILURES as error:
        _warn_of_files(run, error)


def _warn_of_files(run: Run, error: errors.StorageError | errors.FolderNotWritable) -> None:
    _log.warning("run %s leaves files for snaploom gc: %s", run.run_id, error.message)


def refuse_revoked(state: FolderState, run: Run) -> None:
    """Raise `RunRevoked` for a run that may not commit any more."""
    if run.run_id in state.revoked:
        raise errors.RunRevoked(
            f"run {run.run_id} was taken for dead and revoked by another run",
            found="a revocation in the manifest log",
        )


def _is_definite(failure: BaseException) -> bool:
    unknown = (manifest.CommitOutcomeUnknown, errors.Interrupted)
    return isinstance(failure, errors.SnaploomError) and not isinstance(failure, unknown)


# Publication of one snapshot at a time that has no live one, by one entry of the log.


@dataclass(frozen=True)
class SnapshotTarget:
    """A snapshot to publish, as planned."""

    time: EpochNanos
    partition: str
    """Folder below `data/`, escaped as Spark does: `snapshot_epoch=1577836800000`."""
    plan_hash: str
    model: tuple[ModelNode, ...]


@dataclass(frozen=True)
class WriteResult:
    """Report of the writer about the files that it put into staging."""

    rows: int
    schema: str
    """The schema as a JSON document, stored by its content."""
    sources: tuple[SourceSnapshot, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    joins: tuple[JoinMeasure, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    warnings: tuple[str, ...] = ()
    """Joins of which many rows had a NULL key, for people."""
    spark_version: str = ""


Written = TypeVar("Written", bound=WriteResult)
Written_co = TypeVar("Written_co", bound=WriteResult, covariant=True)


@dataclass(frozen=True)
class Published(Generic[Written_co]):
    """The snapshot is live, by this publication."""

    record: SnapshotRecord
    result: Written_co
    remarks: tuple[str, ...] = ()
    """Returned by the last revalidation."""
    leftovers: tuple[Garbage, ...] = ()
    """Unreferenced files in its partition, which readers that ignore the manifest see until they
    are collected."""


@dataclass(frozen=True)
class AlreadyPublished:
    """Another run, `record.run_id`, published the snapshot; this run's files are removed."""

    record: SnapshotRecord


Revalidate = Callable[[FolderState, SnapshotRecord], Iterable[str] | None]
"""Raises what speaks against publishing the record on top of the state, such as
`HistoryIncompatible`, and returns remarks for people. Called with every state that the commit is
tried on."""


def publish(
    folder: Folder,
    run: Run,
    target: SnapshotTarget,
    write: Callable[[str], Written],
    revalidate: Revalidate,
    *,
    leftover_grace: int = LEFTOVER_GRACE,
) -> Published[Written] | AlreadyPublished:
    """Publish one snapshot exactly once, also under concurrent attempts.

    Args:
        folder: from `prepare_folder`.
        run: the run that publishes.
        target: the snapshot.
        write: writes the data flat below the URI it is given, which ends in `/`; names that begin
            with `_` or `.` are not data. Not called when the snapshot is live already.
        revalidate: the last word before each attempt to commit.
        leftover_grace: nanoseconds after which another run's uncommitted files in the partition
            are removed, the run being revoked first.

    Raises:
        RunRevoked: another run took this one for dead; run again.
        CommitOutcomeUnknown: the store stopped answering; running again finds out.
    """
    state = folder.read()
    refuse_revoked(state, run)
    if target.time in state.live:
        return AlreadyPublished(state.live[target.time])
    work = Work(folder, run, target.time, target.partition)
    with work.cleaning_up():
        result, staged = work.stage(write)
        leftovers = work.clear_partition(leftover_grace)
        for item in leftovers:
            _log.warning("%s%s: %s", folder.store.uri, item.key, item.why)
        files = work.promote(staged)
        schema_hash = manifest.store_schema(folder.store, result.schema)
        model_hash = manifest.store_model(folder.store, target.model)
        draft = Draft(run, target, result, files, schema_hash, model_hash)
        state = work.commit(lambda state: draft.entry(state, work, revalidate))
        if not work.is_committed(state):
            work.discard()
            return AlreadyPublished(state.live[target.time])
        manifest.store_merged_model(folder.store, state)
        return Published(state.live[target.time], result, work.remarks, leftovers)


@dataclass(frozen=True)
class Draft:
    """All of the entry except its number and time."""

    run: Run
    target: SnapshotTarget
    result: WriteResult
    files: tuple[FileRecord, ...]
    schema_hash: str
    model_hash: str

    def entry(self, state: FolderState, work: Work, revalidate: Revalidate) -> Publish | None:
        """The entry on top of a state; None when the snapshot is live there already."""
        run, target = self.run, self.target
        if target.time in state.live:
            return None
        refuse_revoked(state, run)
        head = run.head(state)
        record = self.record(head["seq"], head["written_at"])
        work.remarks = tuple(revalidate(state, record) or ())
        return Publish(**head, snapshot=record, model=target.model)

    def record(self, seq: int, now: EpochNanos) -> SnapshotRecord:
        """The record of the version for the entry that publishes it."""
        run, target, result = self.run, self.target, self.result
        return SnapshotRecord(
            time=target.time,
            partition=target.partition,
            seq=seq,
            run_id=run.run_id,
            created_at=now,
            plan_hash=target.plan_hash,
            schema_hash=self.schema_hash,
            model_hash=self.model_hash,
            rows=result.rows,
            sources=result.sources,
            excluded=result.excluded,
            joins=result.joins,
            checks=result.checks,
            warnings=result.warnings,
            files=self.files,
            tool_version=run.tool_version,
            spark_version=result.spark_version,
        )

"""Publication of one snapshot: stage, promote file by file, commit one entry of the log.

Until the entry is written nothing is published, and everything written so far carries the run's
id in its name; after it everything is. Whatever ends the work in between removes what it wrote,
except when the commit may have happened: then the log is asked first, and while it cannot be
asked nothing is removed (ruling D26). A process that is killed leaves files for `snaploom gc`.

Who writes the data is not known here: `write` is given a URI, writes files below it by whatever
means, and returns what it counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from snaploom.errors import (
    FolderNotWritable,
    Interrupted,
    ObjectNotFound,
    PublicationError,
    RunRevoked,
    SnaploomError,
    StorageError,
)
from snaploom.models.report import Exclusion, JoinMeasure, SourceSnapshot
from snaploom.models.times import EpochNanos, format_instant
from snaploom.storage import layout
from snaploom.storage.documents import store_merged_model, store_model, store_schema
from snaploom.storage.entries import FileRecord, ModelNode, Publish, Revoke, SnapshotRecord
from snaploom.storage.folder import Folder
from snaploom.storage.gc import Garbage, GarbageKind, collect_garbage, find_garbage
from snaploom.storage.manifest import CommitOutcomeUnknown
from snaploom.storage.objectstore import STORE_FAILURES, ObjectInfo, ObjectStore
from snaploom.storage.run import CrashPoint, Run
from snaploom.storage.state import FolderState

LEFTOVER_GRACE = 3600 * 1_000_000_000
"""Nanoseconds after which files of an unknown run in our partition are taken for those of a dead
one: the default of `readerGrace` (ruling D4). Younger ones may be of a run that races with us."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SnapshotTarget:
    """What is to be published, as planned."""

    time: EpochNanos
    """Snapshot time."""
    partition: str
    """Folder below `data/`, escaped as Spark does: `snapshot_epoch=1577836800000`."""
    plan_hash: str
    """Hash of the join tree."""
    model: tuple[ModelNode, ...]
    """The data model of the run, root first."""


@dataclass(frozen=True)
class WriteResult:
    """What the writer tells about the files that it put into staging."""

    rows: int
    """Rows written."""
    schema: str
    """The schema as a JSON document, stored by its content."""
    sources: tuple[SourceSnapshot, ...] = ()
    """The snapshot taken of each source."""
    excluded: tuple[Exclusion, ...] = ()
    """Sources that it does without."""
    joins: tuple[JoinMeasure, ...] = ()
    """What was counted at each join."""
    spark_version: str = ""
    """Version of Spark."""


@dataclass(frozen=True)
class Published:
    """The snapshot is live, by this publication."""

    record: SnapshotRecord
    leftovers: tuple[Garbage, ...] = ()
    """Unreferenced files in its partition, which readers that ignore the manifest see until they
    are collected."""


@dataclass(frozen=True)
class AlreadyPublished:
    """The snapshot is live by the run that `record.run_id` names; what this one wrote is gone."""

    record: SnapshotRecord


Revalidate = Callable[[FolderState, SnapshotRecord], None]
"""Raises what speaks against publishing the record on top of the state, such as
`HistoryIncompatible`. Called with every state that the commit is tried on."""


def publish(
    folder: Folder,
    run: Run,
    target: SnapshotTarget,
    write: Callable[[str], WriteResult],
    revalidate: Revalidate,
    *,
    leftover_grace: int = LEFTOVER_GRACE,
) -> Published | AlreadyPublished:
    """Publish one snapshot exactly once, whoever else tries.

    Args:
        folder: from `prepare_folder`.
        run: who publishes.
        target: what.
        write: writes the data flat below the URI it is given, which ends in `/`; names that begin
            with `_` or `.` are not data. Not called when the snapshot is live already.
        revalidate: the last word before each attempt to commit.
        leftover_grace: nanoseconds after which another run's uncommitted files in the partition
            are removed, the run being revoked first.

    Raises:
        RunRevoked: another run took this one for dead; run again.
        CommitOutcomeUnknown: the store stopped answering; running again finds out.
        FolderNotWritable: the folder refuses writes.
        PublicationError: the writer left files in subfolders.
        Exception: whatever `write` and `revalidate` raise.
    """
    state = folder.log.read()
    _refuse_revoked(state, run)
    if target.time in state.live:
        return AlreadyPublished(state.live[target.time])
    work = _Work(folder, run, target)
    try:
        result = _stage_promote_commit(work, write, revalidate, leftover_grace)
    except BaseException as failure:
        work.abandon(failure)
        raise
    work.clean_staging()
    return result


@dataclass
class _Work:
    """One publication in progress, and what it must remove if it fails."""

    folder: Folder
    run: Run
    target: SnapshotTarget
    attempt: str = field(default_factory=layout.new_attempt)
    promoted: list[str] = field(default_factory=list)
    is_committing: bool = False

    @property
    def store(self) -> ObjectStore:
        return self.folder.store

    @property
    def staging(self) -> str:
        return layout.staging_prefix(self.run.run_id, self.attempt)

    def is_ours(self, record: SnapshotRecord | None) -> bool:
        """Whether a live version is the one of this very publication."""
        if record is None or record.run_id != self.run.run_id:
            return False
        return {file.path for file in record.files} == set(self.promoted)

    def abandon(self, failure: BaseException) -> None:
        """Remove what was written, unless it is, or may be, published."""
        try:
            if self.is_committing and not _is_definite(failure) and not self._settle():
                self.clean_staging()
            else:
                self.discard()
        except STORE_FAILURES as error:
            self._leave(error)

    def discard(self) -> None:
        """Remove our own files: promoted ones by name, staging by its prefix."""
        try:
            self.store.delete(self.promoted)
        except STORE_FAILURES as error:
            self._leave(error)
        self.clean_staging()

    def clean_staging(self) -> None:
        """Remove what is left in staging; the outcome stands, so that a failure is a warning."""
        try:
            self.store.delete([info.key for info in self.store.list(self.staging)])
            self.store.prune(self.staging)
        except STORE_FAILURES as error:
            self._leave(error)

    def _leave(self, error: StorageError | FolderNotWritable) -> None:
        _log.warning("run %s leaves files for snaploom gc: %s", self.run.run_id, error.message)

    def _settle(self) -> bool:
        """Make sure that no entry of ours can land any more; whether our files are dead.

        The answer to a put may still be under way. Revoking ourselves takes the number that it
        wants, or finds our entry there.
        """

        def revocation(state: FolderState) -> Revoke | None:
            if self._is_decided(state):
                return None
            return Revoke(
                seq=state.next_seq,
                run_id=self.run.run_id,
                written_at=self.run.clock(),
                tool_version=self.run.tool_version,
                run_ids=(self.run.run_id,),
            )

        state = self.folder.log.commit(revocation)
        return not self.is_ours(state.live.get(self.target.time))

    def _is_decided(self, state: FolderState) -> bool:
        return self.run.run_id in state.revoked or self.is_ours(state.live.get(self.target.time))


def _is_definite(failure: BaseException) -> bool:
    """Whether a failed commit surely wrote nothing; an interruption may come at any moment."""
    unknown = (CommitOutcomeUnknown, Interrupted)
    return isinstance(failure, SnaploomError) and not isinstance(failure, unknown)


def _stage_promote_commit(
    work: _Work, write: Callable[[str], WriteResult], revalidate: Revalidate, leftover_grace: int
) -> Published | AlreadyPublished:
    work.run.reached(CrashPoint.BEFORE_STAGING)
    result = write(f"{work.store.uri}{work.staging}")
    staged = _staged_files(work)
    work.run.reached(CrashPoint.AFTER_STAGING)
    leftovers = _clear_partition(work, leftover_grace)
    files = _promote(work, staged)
    work.run.reached(CrashPoint.AFTER_PROMOTION)
    schema_hash = store_schema(work.store, result.schema)
    model_hash = store_model(work.store, work.target.model)
    draft = _Draft(work, result, files, schema_hash, model_hash)
    work.is_committing = True
    state = work.folder.log.commit(lambda state: draft.entry(state, revalidate))
    work.run.reached(CrashPoint.AFTER_COMMIT)
    record = state.live[work.target.time]
    if not work.is_ours(record):
        work.discard()
        return AlreadyPublished(record)
    store_merged_model(work.store, state)
    return Published(record, leftovers)


def _staged_files(work: _Work) -> list[ObjectInfo]:
    staged = []
    for info in work.store.list(work.staging):
        name = info.key.removeprefix(work.staging)
        if any(not layout.is_data_file(part) for part in name.split("/")):
            continue
        if "/" in name:
            raise PublicationError(
                "the writer left a file in a subfolder of staging",
                found=name,
                expected="files directly below the folder it was given",
            )
        staged.append(info)
    return sorted(staged, key=lambda info: info.key)


def _clear_partition(work: _Work, grace: int) -> tuple[Garbage, ...]:
    """Remove what dead runs left where we publish; what is too young or not ours is returned."""
    prefix = layout.partition_prefix(work.target.partition)
    state = work.folder.log.read()
    found = find_garbage(work.store, state, work.run.clock(), grace, prefix)
    # Tombstoned files are left to gc, which knows how long readers may hold on to them.
    uncommitted = [item for item in found if item.kind is GarbageKind.UNCOMMITTED]
    removed = {item.key for item in collect_garbage(work.folder, uncommitted, work.run)}
    kept = tuple(item for item in found if item.key not in removed)
    for item in kept:
        _log.warning("%s%s: %s", work.store.uri, item.key, item.why)
    return kept


def _promote(work: _Work, staged: list[ObjectInfo]) -> tuple[FileRecord, ...]:
    files = []
    for number, info in enumerate(staged):
        key = layout.published_key(
            work.target.partition, work.run.run_id, work.attempt, number, info.key
        )
        work.promoted.append(key)  # before the move: an interrupted one is removed as well
        try:
            work.store.move_if_absent(info.key, key)
        except ObjectNotFound:
            _refuse_revoked(work.folder.log.read(), work.run)
            raise
        files.append(FileRecord(path=key, bytes=info.size))
        work.run.reached(CrashPoint.DURING_PROMOTION)
    return tuple(files)


@dataclass(frozen=True)
class _Draft:
    """All of the entry except its number and time."""

    work: _Work
    result: WriteResult
    files: tuple[FileRecord, ...]
    schema_hash: str
    model_hash: str

    def entry(self, state: FolderState, revalidate: Revalidate) -> Publish | None:
        """The entry on top of a state; None when the snapshot is live there already."""
        run, target = self.work.run, self.work.target
        if target.time in state.live:
            return None
        _refuse_revoked(state, run)
        now = run.clock()
        record = self._record(state.next_seq, now)
        revalidate(state, record)
        return Publish(
            seq=state.next_seq,
            run_id=run.run_id,
            written_at=now,
            tool_version=run.tool_version,
            snapshot=record,
            model=target.model,
        )

    def _record(self, seq: int, now: EpochNanos) -> SnapshotRecord:
        run, target, result = self.work.run, self.work.target, self.result
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
            files=self.files,
            tool_version=run.tool_version,
            spark_version=result.spark_version,
        )


def _refuse_revoked(state: FolderState, run: Run) -> None:
    if run.run_id in state.revoked:
        raise RunRevoked(
            f"run {run.run_id} was taken for dead and revoked by another run",
            found="a revocation in the manifest log",
            hint="run again; nothing was published by this run since, and nothing is lost",
        )


def describe(outcome: Published | AlreadyPublished) -> str:
    """One line for people and logs."""
    record = outcome.record
    when = format_instant(record.time)
    if isinstance(outcome, AlreadyPublished):
        return f"snapshot {when} was already published by run {record.run_id}"
    return f"snapshot {when} is published: {record.rows} rows in {len(record.files)} files"

"""Publication of one snapshot at a time that has no live one, by one entry of the log.

How it is staged, promoted, committed and cleaned up is in `snaploom.storage.stagedcommit`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from snaploom.models.report import CheckResult, Exclusion, JoinMeasure, SourceSnapshot
from snaploom.models.times import EpochNanos, format_instant
from snaploom.storage.entries import FileRecord, ModelNode, Publish, SnapshotRecord
from snaploom.storage.folder import Folder
from snaploom.storage.gc import Garbage
from snaploom.storage.schemadocuments import store_merged_model, store_model, store_schema
from snaploom.storage.stagedcommit import LEFTOVER_GRACE, Work, refuse_revoked
from snaploom.storage.state import FolderState
from snaploom.storage.writeridentity import Run

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SnapshotTarget:
    """A snapshot to publish, as planned."""

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
    """Report of the writer about the files that it put into staging."""

    rows: int
    """Rows written."""
    schema: str
    """The schema as a JSON document, stored by its content."""
    sources: tuple[SourceSnapshot, ...] = ()
    """The snapshot taken of each source."""
    excluded: tuple[Exclusion, ...] = ()
    """Sources that it does without."""
    joins: tuple[JoinMeasure, ...] = ()
    """Counts at each join."""
    checks: tuple[CheckResult, ...] = ()
    """Result of each expectation."""
    warnings: tuple[str, ...] = ()
    """Joins of which many rows had a NULL key, for people."""
    spark_version: str = ""
    """Version of Spark."""


Written = TypeVar("Written", bound=WriteResult)
Written_co = TypeVar("Written_co", bound=WriteResult, covariant=True)


@dataclass(frozen=True)
class Published(Generic[Written_co]):
    """The snapshot is live, by this publication."""

    record: SnapshotRecord
    result: Written_co
    """Returned by the writer."""
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
        FolderNotWritable: the folder refuses writes.
        PublicationError: the writer left files in subfolders.
        Exception: any error of `write` and `revalidate`.
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
        schema_hash = store_schema(folder.store, result.schema)
        model_hash = store_model(folder.store, target.model)
        draft = Draft(run, target, result, files, schema_hash, model_hash)
        state = work.commit(lambda state: draft.entry(state, work, revalidate))
        if not work.is_committed(state):
            work.discard()
            return AlreadyPublished(state.live[target.time])
        store_merged_model(folder.store, state)
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
        now = run.clock()
        record = self.record(state.next_seq, now)
        work.remarks = tuple(revalidate(state, record) or ())
        return Publish(
            seq=state.next_seq,
            run_id=run.run_id,
            written_at=now,
            tool_version=run.tool_version,
            snapshot=record,
            model=target.model,
        )

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


def describe(outcome: Published[WriteResult] | AlreadyPublished) -> str:
    """One line for people and logs."""
    record = outcome.record
    when = format_instant(record.time)
    if isinstance(outcome, AlreadyPublished):
        return f"snapshot {when} was already published by run {record.run_id}"
    return f"snapshot {when} is published: {record.rows} rows in {len(record.files)} files"

"""Replacement of the live version of a snapshot by other files with the same rows (rules P2, P20).

One entry makes the new version live and ends the old one. Readers that pinned an older manifest
find the old files until `readerGrace` has passed and they are removed; readers that list folders
see both versions until then, which the caller of a replacement must accept (rule P20).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.errors import PublicationError, SnapshotChanged
from snaploom.models.times import format_instant
from snaploom.storage.entries import (
    FileRecord,
    Replace,
    SnapshotRecord,
    TombstoneRecord,
)
from snaploom.storage.folder import Folder
from snaploom.storage.stagedcommit import LEFTOVER_GRACE, Work, refuse_revoked
from snaploom.storage.state import FolderState, tombstone_of
from snaploom.storage.writeridentity import Run

REPLACED = "REPLACED"
"""Rule in the tombstone of a version that another one replaced."""


@dataclass(frozen=True)
class Rewrite:
    """Report of the writer about the files that it put into staging."""

    rows: int
    """Rows in them, counted from the files."""
    spark_version: str = ""
    """Version of Spark."""


@dataclass(frozen=True)
class Replaced:
    """The new version is live, and the old one has ended."""

    record: SnapshotRecord
    """The new version."""
    ended: TombstoneRecord
    """The old version."""


def replace_version(
    folder: Folder,
    run: Run,
    version: SnapshotRecord,
    write: Callable[[str], Rewrite],
    *,
    message: str = "",
    leftover_grace: int = LEFTOVER_GRACE,
) -> Replaced:
    """Replace the live version of a snapshot, exactly once, by files with the same rows.

    Sources, joins, schema, data model and plan of the new version are those of the old one.

    Args:
        folder: from `open_folder`.
        run: the run that replaces.
        version: the live version.
        write: writes the data flat below the URI it is given, which ends in `/`; names that begin
            with `_` or `.` are not data. Not called when the version is not live any more.
        message: why, for people.
        leftover_grace: nanoseconds after which another run's uncommitted files in the partition
            are removed, the run being revoked first.

    Raises:
        SnapshotChanged: the version was replaced or deleted by another run; nothing is changed.
        RunRevoked: another run took this one for dead.
        CommitOutcomeUnknown: the store stopped answering; the manifest shows which version is live.
        FolderNotWritable: the folder refuses writes.
        PublicationError: the new files have another number of rows, or lie in subfolders.
        Exception: any error of `write`.
    """
    state = folder.read()
    refuse_revoked(state, run)
    refuse_changed(state, version)
    work = Work(folder, run, version.time, version.partition)
    with work.cleaning_up():
        rewrite, staged = work.stage(write)
        _refuse_other_rows(version, rewrite)
        work.clear_partition(leftover_grace)
        draft = _Draft(run, version, rewrite, work.promote(staged), message)
        committed = work.commit(draft.entry)
    return Replaced(committed.live[version.time], committed.tombstones[-1])


@dataclass(frozen=True)
class _Draft:
    run: Run
    version: SnapshotRecord
    rewrite: Rewrite
    files: tuple[FileRecord, ...]
    message: str

    def entry(self, state: FolderState) -> Replace:
        refuse_revoked(state, self.run)
        refuse_changed(state, self.version)
        seq, now = state.next_seq, self.run.clock()
        record = self.version.model_copy(
            update={
                "seq": seq,
                "run_id": self.run.run_id,
                "created_at": now,
                "files": self.files,
                "tool_version": self.run.tool_version,
                "spark_version": self.rewrite.spark_version,
            }
        )
        return Replace(
            seq=seq,
            run_id=self.run.run_id,
            written_at=now,
            tool_version=self.run.tool_version,
            snapshot=record,
            replaced=tombstone_of(self.version, seq=seq, rule=REPLACED, deleted_at=now),
            # Every version that was ever live left its data model in the history.
            model=next(m.nodes for m in state.models if m.model_hash == self.version.model_hash),
            message=self.message,
        )


def refuse_changed(state: FolderState, version: SnapshotRecord) -> None:
    """Raise `SnapshotChanged` if a version that is to be replaced is not live any more."""
    live = state.live.get(version.time)
    if live == version:
        return
    raise SnapshotChanged(
        f"snapshot {format_instant(version.time)} changed while it was rewritten",
        found=f"version {live.seq} by run {live.run_id}" if live else "no live version: deleted",
        expected=f"version {version.seq} by run {version.run_id}",
        hint="look at 'snaploom snapshots' and start again; the folder is as the other run left it",
    )


def _refuse_other_rows(version: SnapshotRecord, rewrite: Rewrite) -> None:
    if rewrite.rows != version.rows:
        raise PublicationError(
            f"the rewritten files of snapshot {format_instant(version.time)} are not published",
            found=f"{rewrite.rows:,} rows in them",
            expected=f"the {version.rows:,} rows of the snapshot",
            hint="the snapshot is as it was; check that nobody changed its files",
        )

"""Replacement and restatement: another version takes the place of a live one (rules P2, P20)."""

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.errors import PublicationError, SnapshotChanged
from snaploom.models.common import format_instant
from snaploom.output import publication
from snaploom.output.entries import Replace, SnapshotRecord, TombstoneRecord
from snaploom.output.folder import Folder, Run
from snaploom.output.manifest import store_model, store_schema
from snaploom.output.state import FolderState, tombstone_of

# Replacement of the live version of a snapshot by other files with the same rows (rules P2, P20).

REPLACED = "REPLACED"
"""Rule in the tombstone of a version that another one replaced."""


@dataclass(frozen=True)
class Rewrite:
    """Report of the writer about the files that it put into staging."""

    rows: int
    """Rows in them, counted from the files."""
    spark_version: str = ""


@dataclass(frozen=True)
class Replaced:
    """The new version is live, and the old one has ended."""

    record: SnapshotRecord
    ended: TombstoneRecord


def replace_version(
    folder: Folder,
    run: Run,
    version: SnapshotRecord,
    write: Callable[[str], Rewrite],
    *,
    message: str = "",
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

    Raises:
        SnapshotChanged: the version was replaced or deleted by another run; nothing is changed.
        RunRevoked: another run took this one for dead.
        CommitOutcomeUnknown: the store stopped answering; the manifest shows which version is live.
    """
    state = folder.read()
    publication.refuse_revoked(state, run)
    refuse_changed(state, version)
    work = publication.Work(folder, run, version.time, version.partition)
    with work.cleaning_up():
        rewrite, staged = work.stage(write)
        if rewrite.rows != version.rows:
            raise PublicationError(
                f"the rewritten files of snapshot {format_instant(version.time)} are not published",
                found=f"{rewrite.rows:,} rows in them",
                expected=f"the {version.rows:,} rows of the snapshot",
                hint="the snapshot is as it was; check that nobody changed its files",
            )
        work.clear_partition()
        files = work.promote(staged)

        def entry(state: FolderState) -> Replace:
            publication.refuse_revoked(state, run)
            refuse_changed(state, version)
            head = run.head(state)
            seq, now = head["seq"], head["written_at"]
            record = version.model_copy(
                update={
                    "seq": seq,
                    "run_id": run.run_id,
                    "created_at": now,
                    "files": files,
                    "tool_version": run.tool_version,
                    "spark_version": rewrite.spark_version,
                }
            )
            return Replace(
                **head,
                snapshot=record,
                replaced=tombstone_of(version, seq=seq, rule=REPLACED, deleted_at=now),
                # Every version that was ever live left its data model in the history.
                model=next(m.nodes for m in state.models if m.model_hash == version.model_hash),
                message=message,
            )

        committed = work.commit(entry)
    return Replaced(committed.live[version.time], committed.tombstones[-1])


def refuse_changed(state: FolderState, version: SnapshotRecord) -> None:
    """Raise `SnapshotChanged` if a version that is to be replaced is not live any more."""
    live = state.live.get(version.time)
    if live == version:
        return
    raise SnapshotChanged(
        f"snapshot {format_instant(version.time)} changed while it was rewritten",
        found=f"version {live.seq} by run {live.run_id}" if live else "no live version: deleted",
        expected=f"version {version.seq} by run {version.run_id}",
    )


# Restatement: a corrected version of a snapshot takes the place of the live one (rule P20).

RESTATED = "RESTATED"
"""Rule in the tombstone of a version that a corrected one replaced."""


def restate(
    folder: Folder,
    run: Run,
    target: publication.SnapshotTarget,
    write: Callable[[str], publication.Written],
    revalidate: publication.Revalidate,
    *,
    reason: str = "",
) -> publication.Published[publication.Written]:
    """Replace the live version of a snapshot by a corrected one, exactly once.

    Args:
        folder: from `prepare_folder`.
        run: the run that restates.
        target: the snapshot; its time has a live version.
        write: as for `publish`.
        revalidate: the last word before each attempt to commit.
        reason: why, for people; kept with the new version.

    Raises:
        RunRevoked: another run took this one for dead; run again.
        CommitOutcomeUnknown: the store stopped answering; the manifest shows which version is live.
    """
    state = folder.read()
    publication.refuse_revoked(state, run)
    version = state.live.get(target.time)
    if version is None:
        raise SnapshotChanged(
            f"snapshot {format_instant(target.time)} cannot be restated",
            found="no live version: it was never published, or deleted",
            expected="a published snapshot",
        )
    work = publication.Work(folder, run, target.time, version.partition)
    with work.cleaning_up():
        result, staged = work.stage(write)
        work.clear_partition()
        files = work.promote(staged)
        schema_hash = store_schema(folder.store, result.schema)
        model_hash = store_model(folder.store, target.model)
        draft = publication.Draft(run, target, result, files, schema_hash, model_hash)

        def entry(state: FolderState) -> Replace:
            publication.refuse_revoked(state, run)
            refuse_changed(state, version)
            head = run.head(state)
            seq, now = head["seq"], head["written_at"]
            record = draft.record(seq, now).model_copy(
                update={
                    "partition": version.partition,
                    "replaces": version.seq,
                    "reason": reason,
                }
            )
            work.remarks = tuple(revalidate(state, record) or ())
            return Replace(
                **head,
                snapshot=record,
                replaced=tombstone_of(version, seq=seq, rule=RESTATED, deleted_at=now),
                model=target.model,
                message=reason,
            )

        state = work.commit(entry)
        return publication.Published(state.live[target.time], result, work.remarks)

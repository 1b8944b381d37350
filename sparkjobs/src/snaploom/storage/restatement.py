"""Restatement: a corrected version of a snapshot takes the place of the live one (rule P20).

Unlike `snaploom.storage.replacement`, whose new files hold the same rows, everything about the new
version may differ: rows, schema, sources, data model. One entry makes it live and ends the old one,
whose files stay for readers of an older manifest until `readerGrace` has passed and `gc` runs.
"""

from __future__ import annotations

from collections.abc import Callable

from snaploom.errors import SnapshotChanged
from snaploom.models.times import format_instant
from snaploom.storage.entries import Replace
from snaploom.storage.folder import Folder
from snaploom.storage.publication import Draft, Published, Revalidate, SnapshotTarget, Written
from snaploom.storage.replacement import refuse_changed
from snaploom.storage.schemadocuments import store_model, store_schema
from snaploom.storage.stagedcommit import LEFTOVER_GRACE, Work, refuse_revoked
from snaploom.storage.state import FolderState, tombstone_of
from snaploom.storage.writeridentity import Run

RESTATED = "RESTATED"
"""Rule in the tombstone of a version that a corrected one replaced."""


def restate(
    folder: Folder,
    run: Run,
    target: SnapshotTarget,
    write: Callable[[str], Written],
    revalidate: Revalidate,
    *,
    reason: str = "",
    leftover_grace: int = LEFTOVER_GRACE,
) -> Published[Written]:
    """Replace the live version of a snapshot by a corrected one, exactly once.

    Args:
        folder: from `prepare_folder`.
        run: the run that restates.
        target: the snapshot; its time has a live version.
        write: as for `publish`.
        revalidate: the last word before each attempt to commit.
        reason: why, for people; kept with the new version.
        leftover_grace: as for `publish`.

    Raises:
        SnapshotChanged: there is no live version, or another run replaced or deleted it meanwhile.
        RunRevoked: another run took this one for dead; run again.
        CommitOutcomeUnknown: the store stopped answering; the manifest shows which version is live.
        FolderNotWritable: the folder refuses writes.
        Exception: any error of `write` and `revalidate`.
    """
    state = folder.read()
    refuse_revoked(state, run)
    version = state.live.get(target.time)
    if version is None:
        raise SnapshotChanged(
            f"snapshot {format_instant(target.time)} cannot be restated",
            found="no live version: it was never published, or deleted",
            expected="a published snapshot",
            hint="'snaploom snapshots' lists them; 'snaploom run' publishes what is due",
        )
    work = Work(folder, run, target.time, version.partition)
    with work.cleaning_up():
        result, staged = work.stage(write)
        work.clear_partition(leftover_grace)
        files = work.promote(staged)
        schema_hash = store_schema(folder.store, result.schema)
        model_hash = store_model(folder.store, target.model)
        draft = Draft(run, target, result, files, schema_hash, model_hash)

        def entry(state: FolderState) -> Replace:
            refuse_revoked(state, run)
            refuse_changed(state, version)
            seq, now = state.next_seq, run.clock()
            record = draft.record(seq, now).model_copy(
                update={
                    "partition": version.partition,
                    "replaces": version.seq,
                    "reason": reason,
                }
            )
            work.remarks = tuple(revalidate(state, record) or ())
            return Replace(
                seq=seq,
                run_id=run.run_id,
                written_at=now,
                tool_version=run.tool_version,
                snapshot=record,
                replaced=tombstone_of(version, seq=seq, rule=RESTATED, deleted_at=now),
                model=target.model,
                message=reason,
            )

        state = work.commit(entry)
        return Published(state.live[target.time], result, work.remarks)

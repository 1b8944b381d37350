"""Deletion of old snapshots after a publication: a tombstone in the log; files follow later.

Ages are measured to the run's present, but never to a later one than the store's own (rule P18):
a clock that is days ahead must not end what is not old.
"""

from __future__ import annotations

from collections.abc import Collection

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import settings_of
from snaploom.planning.retention import HeldSnapshot, Removal, removals_before
from snaploom.storage.entries import Tombstone
from snaploom.storage.folder import Folder
from snaploom.storage.runcleanup import store_present
from snaploom.storage.state import FolderState, first_ended, tombstone_of
from snaploom.storage.writeridentity import Run


def delete_old_snapshots(
    folder: Folder,
    run: Run,
    output: OutputDataset,
    now: EpochNanos,
    coming: Collection[EpochNanos] = (),
) -> tuple[EpochNanos, ...]:
    """End every snapshot that `snapshotAutoDelete` does not keep; the times that went.

    Args:
        folder: where.
        run: who deletes.
        output: whose rules.
        now: the instant to which ages are measured, unless the store's clock is behind it.
        coming: snapshots that the run has still to publish.

    Readers that pinned an older manifest keep their files until `readerGrace` has passed and a run
    or `gc` removes them; planning never weaves an ended snapshot again.
    """
    gone: tuple[Removal, ...] = ()

    def tombstone(state: FolderState) -> Tombstone | None:
        """Ends as many as one entry has room for."""
        nonlocal gone
        gone = _removals(output, state, store_present(folder.store, state, now), coming)
        if not gone:
            return None
        seq, moment = state.next_seq, run.clock()
        return Tombstone(
            seq=seq,
            run_id=run.run_id,
            written_at=moment,
            tool_version=run.tool_version,
            snapshots=first_ended(
                tombstone_of(
                    state.live[removal.time], seq=seq, rule=removal.rule.value, deleted_at=moment
                )
                for removal in gone
            ),
        )

    times: list[EpochNanos] = []
    state = folder.log.read()
    while _removals(output, state, store_present(folder.store, state, now), coming):
        state = folder.commit(tombstone, run)
        ended = [removal.time for removal in gone if removal.time not in state.versions]
        if not ended:
            break
        times.extend(ended)
    return tuple(times)


def _removals(
    output: OutputDataset, state: FolderState, now: EpochNanos, coming: Collection[EpochNanos]
) -> tuple[Removal, ...]:
    periods = settings_of(output.spec.data_model.root_data_source.snapshot_filter).intervals
    held = [HeldSnapshot(version.time, version.created_at) for version in state.timeline]
    rules = output.spec.output_folder.snapshot_auto_delete
    return removals_before(coming, rules, held, now, periods)

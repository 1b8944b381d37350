"""A new snapshot against every published one, and the deletion of old ones (rules P25, P26)."""

import logging
from collections.abc import Collection

from snaploom.errors import HistoryIncompatible, StorageError
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import CheckMode, EpochNanos, format_instant
from snaploom.models.outputdataset import OutputDataset
from snaploom.output import history
from snaploom.output.entries import SnapshotRecord, Tombstone
from snaploom.output.folder import Folder, Run
from snaploom.output.gc import store_present
from snaploom.output.state import FolderState, first_ended, tombstone_of
from snaploom.plan.history import continued, merge_structures, structure_of
from snaploom.plan.intervals import settings_of
from snaploom.plan.retention import HeldSnapshot, Removal, removals_before
from snaploom.plan.tree import JoinTree
from snaploom.types.merge import common_fields, conflicts_with
from snaploom.types.schemas import path_text, split_path

_log = logging.getLogger(__name__)

MOST_SHOWN = 20
"""Columns that one warning names."""


# A new snapshot against every published one: its structure and its types (rules P25, P26).


def compare_structure(output: OutputDataset, state: FolderState, tree: JoinTree) -> tuple[str, ...]:
    """Warnings from everything ever published: swaps, contradictions published nevertheless."""
    published = continued(history.structure_of(version.nodes) for version in state.models)
    merge = merge_structures(published, structure_of(tree))
    if merge.conflicts and _refuses(output):
        raise HistoryIncompatible(
            "the join tree contradicts what is published",
            resource=output.identity,
            path="spec.dataModel",
            found="; ".join(str(conflict) for conflict in merge.conflicts),
            expected="every field joined where it was, and grouped as it was",
        )
    return (*map(_break_of, merge.conflicts), *map(str, merge.swaps))


class SchemaHistory:
    """Schemas of published snapshots, for comparison."""

    def __init__(self, store: ObjectStore) -> None:
        self._documents = history.SchemaDocuments(store)

    def schemas(self, state: FolderState) -> list[tuple[EpochNanos, str]]:
        """Those of the live snapshots by time, as `StructType.json()` gives them."""
        return [(at.time, self._documents.get(at.schema_hash)) for at in state.timeline]

    def compare(
        self, output: OutputDataset, state: FolderState, time: EpochNanos, schema: str
    ) -> tuple[str, ...]:
        """Compare a schema (as `StructType.json()` gives it) with those of the live snapshots.

        Returns:
            Contradictions that are published nevertheless.

        Raises:
            HistoryIncompatible: types that cannot be read together, naming both snapshots, and
                that is refused.
        """
        others = [one for one in self.schemas(state) if one[0] != time]
        return refuse_conflicts(output, others, time, schema)

    def compare_record(
        self, output: OutputDataset, state: FolderState, record: SnapshotRecord
    ) -> tuple[str, ...]:
        """The same for a snapshot that is about to be committed."""
        schema = self._documents.get(record.schema_hash)
        return self.compare(output, state, record.time, schema)

    def gone_columns(self, state: FolderState, record: SnapshotRecord) -> tuple[str, ...]:
        """A warning about columns of sources that the snapshot before has and this one has not."""
        before = [one for one in state.timeline if one.time < record.time][-1:]
        for one in before:
            was, now = map(self._documents.get, (one.schema_hash, record.schema_hash))
            removed = (split_path(each.path) for each in common_fields(was, now).removed)
            # A whole source that is left out, or no longer declared, is reported as that.
            gone = [path_text(path) for path in removed if path is not None and path[1:]]
            if gone:
                columns = ", ".join(f"`{path}`" for path in gone[:MOST_SHOWN])
                more = f" and {len(gone) - MOST_SHOWN} more" * (len(gone) > MOST_SHOWN)
                return (
                    f"columns of snapshot {format_instant(one.time)} are gone, and NULL from here "
                    f"on: {columns}{more}",
                )
        return ()

    def store_merged(self, folder: Folder) -> None:
        """Write the merged schema for readers that ignore the log; it is not needed by ours."""
        try:
            history.store_merged_schema(folder.store, folder.log.read(), self._documents)
        except StorageError as error:
            _log.warning("the merged schema is not up to date: %s", error.message)


def refuse_conflicts(
    output: OutputDataset, others: list[tuple[EpochNanos, str]], time: EpochNanos, schema: str
) -> tuple[str, ...]:
    """Contradictions with schemas of other snapshots that are published nevertheless."""
    conflicts = conflicts_with(others, time, schema)
    if conflicts and _refuses(output):
        raise HistoryIncompatible(
            "the types of this snapshot and of published ones have nothing in common",
            resource=output.identity,
            found="; ".join(map(str, conflicts)),
            expected="types that are equal or widen (byte, short, integer, long; float, "
            "double; decimals)",
            hint="declare the column in schemaFields where its type is inferred, as of CSV, or "
            f"cast it in a virtual source, so that snapshot {format_instant(time)} agrees with the "
            "others, publish to a new folder, or allow the break "
            "(outputFolder.incompatibleSchema: WARN)",
        )
    return tuple(map(_break_of, conflicts))


def _refuses(output: OutputDataset) -> bool:
    return output.spec.output_folder.incompatible_schema is CheckMode.FAIL


def _break_of(conflict: object) -> str:
    return f"it cannot be read together with older or newer snapshots: {conflict}"


# Deletion of old snapshots after a publication: a tombstone in the log; files follow later.


def delete_old_snapshots(
    folder: Folder,
    run: Run,
    output: OutputDataset,
    now: EpochNanos,
    coming: Collection[EpochNanos] = (),
) -> tuple[EpochNanos, ...]:
    """End every snapshot that `snapshotAutoDelete` does not keep; the times that went.

    Ages are measured to `now`, unless the store's clock is behind it; `coming` are snapshots that
    the run has still to publish.

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
        head = run.head(state)
        seq, moment = head["seq"], head["written_at"]
        ended = (
            tombstone_of(
                state.live[removal.time], seq=seq, rule=removal.rule.value, deleted_at=moment
            )
            for removal in gone
        )
        return Tombstone(**head, snapshots=first_ended(ended))

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

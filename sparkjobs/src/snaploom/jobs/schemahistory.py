"""Types of a new snapshot against those of every published one (`join.md` section 2.7, N15)."""

from __future__ import annotations

from snaploom.errors import HistoryIncompatible
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.typemerge import merge_schemas
from snaploom.storage import layout
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.state import FolderState


class SchemaHistory:
    """Schemas of published snapshots; documents are read once, since they never change."""

    def __init__(self, store: ObjectStore) -> None:
        """Nothing is read yet."""
        self._store = store
        self._known: dict[str, str] = {}

    def refuse(
        self, output: OutputDataset, state: FolderState, time: EpochNanos, schema: str
    ) -> None:
        """Compare a schema (as `StructType.json()` gives it) with those of all live snapshots.

        Raises:
            HistoryIncompatible: types that cannot be read together, naming both snapshots.
        """
        history = [
            (at.time, self._document(at.schema_hash))
            for at in state.schema_history
            if at.time != time
        ]
        merged = merge_schemas([*history, (time, schema)])
        if merged.conflicts:
            raise HistoryIncompatible(
                "the types of this snapshot and of published ones have nothing in common",
                resource=output.identity,
                found="; ".join(str(conflict) for conflict in merged.conflicts),
                expected="types that are equal or widen (byte, short, integer, long; float, "
                "double; decimals)",
                hint=f"cast the column in a virtual source, so that snapshot "
                f"{format_instant(time)} agrees with the others, or publish to a new folder",
            )

    def refuse_record(
        self, output: OutputDataset, state: FolderState, record: SnapshotRecord
    ) -> None:
        """The same for a snapshot that is about to be committed.

        Raises:
            HistoryIncompatible: types that cannot be read together, naming both snapshots.
        """
        self.refuse(output, state, record.time, self._document(record.schema_hash))

    def _document(self, schema_hash: str) -> str:
        if schema_hash not in self._known:
            key = layout.schema_key(schema_hash)
            self._known[schema_hash] = self._store.get(key).decode("utf-8")
        return self._known[schema_hash]

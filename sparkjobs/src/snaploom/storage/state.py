"""The state of an output folder: a pure fold over the entries of its manifest log.

`apply` refuses an entry that contradicts the ones before it, which the log asks before it writes
and again when it reads: no entry can make two versions of a snapshot time live, publish for a
revoked run, or change what is fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from snaploom.errors import ManifestCorrupt
from snaploom.models.times import EpochNanos, format_instant
from snaploom.storage.entries import (
    Claim,
    Configure,
    Entry,
    FolderIdentity,
    FolderSettings,
    ModelNode,
    Publish,
    Replace,
    Revoke,
    SnapshotRecord,
    Tombstone,
    TombstoneRecord,
    corrupt,
)
from snaploom.storage.layout import manifest_key


@dataclass(frozen=True)
class DataModelVersion:
    """One data model that some snapshot was published with."""

    model_hash: str
    """Hash of its document; `SnapshotRecord.model_hash` refers to it."""
    first_seen: int
    """Sequence number of the first entry that carried it."""
    nodes: tuple[ModelNode, ...]
    """Its sources, root first."""


@dataclass(frozen=True)
class SchemaAt:
    """Which schema a snapshot has."""

    time: EpochNanos
    schema_hash: str
    model_hash: str


@dataclass(frozen=True)
class FolderState:
    """What is committed up to one sequence number."""

    seq: int = 0
    """Sequence number of the last entry folded in; zero before the first."""
    settings: FolderSettings | None = None
    """What is fixed; None until the folder is configured."""
    identity: FolderIdentity | None = None
    """Whose folder it is; None until the folder is configured."""
    live: Mapping[EpochNanos, SnapshotRecord] = field(default_factory=dict)
    """The one live version of each snapshot time."""
    tombstones: tuple[TombstoneRecord, ...] = ()
    """Versions that ended, in the order in which they did."""
    revoked: frozenset[str] = frozenset()
    """Runs that may not commit any more."""
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """The newest claim of each scope."""
    models: tuple[DataModelVersion, ...] = ()
    """Every data model ever published, by first appearance: the history H of `join.md` 2.7.

    Models of snapshots that were deleted stay: what was once promised to readers is not forgotten.
    """

    @property
    def next_seq(self) -> int:
        """The sequence number of the entry that may follow."""
        return self.seq + 1

    @cached_property
    def snapshots(self) -> tuple[SnapshotRecord, ...]:
        """Live snapshots by time."""
        return tuple(self.live[time] for time in sorted(self.live))

    @cached_property
    def schema_history(self) -> tuple[SchemaAt, ...]:
        """Schemas of live snapshots by snapshot time, which is not the order of commits (N15)."""
        return tuple(SchemaAt(s.time, s.schema_hash, s.model_hash) for s in self.snapshots)

    @cached_property
    def tombstoned_times(self) -> frozenset[EpochNanos]:
        """Snapshot times that had a version and have no live one: planning leaves them alone."""
        return frozenset(t.time for t in self.tombstones if t.time not in self.live)

    @cached_property
    def live_files(self) -> frozenset[str]:
        """Keys of every file that a reader of this state may open."""
        return frozenset(file.path for record in self.live.values() for file in record.files)

    @cached_property
    def tombstoned_files(self) -> Mapping[str, TombstoneRecord]:
        """Keys of files that are dead by name, each with the tombstone that says so."""
        return {file.path: ended for ended in self.tombstones for file in ended.files}

    @cached_property
    def merged_model(self) -> Mapping[str, ModelNode]:
        """Every source of the history by field name in lower case.

        Its place (parent and groupBy) is the first one published, which compatibility keeps fixed;
        its source and relationship are the latest, since those may be swapped (N7).
        """
        merged: dict[str, ModelNode] = {}
        for version in self.models:
            for node in version.nodes:
                first = merged.setdefault(node.field_name.casefold(), node)
                merged[node.field_name.casefold()] = first.model_copy(
                    update={"source": node.source, "relationship": node.relationship}
                )
        return merged


EMPTY = FolderState()
"""The state before the first entry."""


def apply(state: FolderState, entry: Entry) -> FolderState:
    """The state after one more entry.

    Raises:
        ManifestCorrupt: the entry does not follow the state, or contradicts it.
    """
    return fold(state, (entry,))


def fold(state: FolderState, entries: Iterable[Entry]) -> FolderState:
    """The state after more entries; one copy of the collections for all of them.

    Raises:
        ManifestCorrupt: an entry does not follow the ones before it, or contradicts them.
    """
    folding = _Folding(state)
    for entry in entries:
        folding.add(entry)
    return folding.result()


class _Folding:
    """Collections under construction; never seen outside `fold`."""

    def __init__(self, state: FolderState) -> None:
        self._state = state
        self._live = dict(state.live)
        self._tombstones = list(state.tombstones)
        self._revoked = set(state.revoked)
        self._claims = dict(state.claims)
        self._models = {version.model_hash: version for version in state.models}

    def result(self) -> FolderState:
        return replace(
            self._state,
            live=self._live,
            tombstones=tuple(self._tombstones),
            revoked=frozenset(self._revoked),
            claims=self._claims,
            models=tuple(self._models.values()),
        )

    def add(self, entry: Entry) -> None:
        expected = self._state.next_seq
        if entry.seq != expected:
            raise corrupt(manifest_key(expected), f"it says that it is entry {entry.seq}")
        match entry:
            case Publish():
                self._start(entry, entry.snapshot, entry.model)
            case Replace():
                if entry.replaced.time != entry.snapshot.time:
                    raise _contradiction(entry, "it replaces a snapshot of another time")
                self._end(entry, entry.replaced)
                self._start(entry, entry.snapshot, entry.model)
            case Tombstone():
                for ended in entry.snapshots:
                    self._end(entry, ended)
            case Claim():
                self._claims[entry.scope] = entry
            case Revoke():
                self._revoked.update(entry.run_ids)
            case Configure():
                self._configure(entry)
        self._state = replace(self._state, seq=entry.seq)

    def _start(self, entry: Entry, record: SnapshotRecord, model: tuple[ModelNode, ...]) -> None:
        if self._state.settings is None:
            raise _contradiction(entry, "it publishes into a folder that is not configured")
        if entry.run_id in self._revoked:
            raise _contradiction(entry, f"it publishes for the revoked run {entry.run_id}")
        if record.seq != entry.seq or record.run_id != entry.run_id:
            raise _contradiction(entry, "its snapshot names another entry or run")
        if record.time in self._live:
            raise _contradiction(entry, f"{format_instant(record.time)} is live already")
        self._live[record.time] = record
        version = DataModelVersion(record.model_hash, entry.seq, model)
        self._models.setdefault(record.model_hash, version)

    def _end(self, entry: Entry, ended: TombstoneRecord) -> None:
        record = self._live.get(ended.time)
        if record is None or record.seq != ended.published_seq or record.files != ended.files:
            raise _contradiction(entry, f"it ends {format_instant(ended.time)}, which is not live")
        if ended.seq != entry.seq:
            raise _contradiction(entry, "its tombstone names another entry")
        del self._live[ended.time]
        self._tombstones.append(ended)

    def _configure(self, entry: Configure) -> None:
        if self._state.settings not in (None, entry.settings):
            raise _contradiction(entry, "it changes settings that are fixed")
        self._state = replace(self._state, settings=entry.settings, identity=entry.identity)


def tombstone_of(
    record: SnapshotRecord, *, seq: int, rule: str, deleted_at: EpochNanos
) -> TombstoneRecord:
    """The tombstone by which entry `seq` ends a live version."""
    return TombstoneRecord(
        time=record.time,
        partition=record.partition,
        published_seq=record.seq,
        seq=seq,
        rule=rule,
        deleted_at=deleted_at,
        files=record.files,
    )


def _contradiction(entry: Entry, found: str) -> ManifestCorrupt:
    return corrupt(manifest_key(entry.seq), found)

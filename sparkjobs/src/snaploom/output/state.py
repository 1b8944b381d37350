"""The state of an output folder: a pure fold over its log, with records fetched on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeVar, overload

from snaploom.errors import ManifestCorrupt
from snaploom.models.common import EpochNanos, TimeOffset, format_instant
from snaploom.output.documents import corrupt
from snaploom.output.entries import (
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
    parse_record,
)
from snaploom.output.layout import manifest_key, partition_of

# Records of published versions, fetched on first access.

Held = TypeVar("Held")
Item = TypeVar("Item")


class Version(NamedTuple):
    """Index entry of a live version; its fields mean the same as `SnapshotRecord`'s."""

    time: EpochNanos
    seq: int
    created_at: EpochNanos
    partition: str
    schema_hash: str
    model_hash: str

    @staticmethod
    def of(record: SnapshotRecord) -> Version:
        return Version(*(getattr(record, name) for name in Version._fields))


class Ended(NamedTuple):
    """Index entry of a version that ended: a `TombstoneRecord` without files."""

    time: EpochNanos
    partition: str
    published_seq: int
    seq: int
    rule: str
    deleted_at: EpochNanos

    @staticmethod
    def of(tombstone: TombstoneRecord) -> Ended:
        return Ended(*(getattr(tombstone, name) for name in Ended._fields))


def _read_nothing(seq: int) -> SnapshotRecord:
    raise corrupt(manifest_key(seq), "no record, in a state that was not read from a folder")


class Records:
    """Records by the sequence number of their entry; shared by all states of one log.

    It only ever grows, by what is immutable, so that a state that holds it is immutable in effect.
    """

    def __init__(self, load: Callable[[int], SnapshotRecord] = _read_nothing) -> None:
        self._load = load
        self._parsed: dict[int, SnapshotRecord] = {}
        self._lines: dict[int, bytes] = {}

    def read_by(self, load: Callable[[int], SnapshotRecord]) -> Records:
        """Share the records, but load unknown ones in another way."""
        records = Records(load)
        records._parsed, records._lines = self._parsed, self._lines
        return records

    def remember(self, record: SnapshotRecord) -> None:
        """Keep the record of an entry that is written."""
        self._parsed[record.seq] = record

    def remember_line(self, seq: int, line: bytes) -> None:
        """Keep a record as JSON, to be parsed when it is looked at."""
        self._lines[seq] = line

    def line(self, seq: int) -> bytes | None:
        """A record as JSON, if it is at hand."""
        if seq not in self._lines and seq in self._parsed:
            self._lines[seq] = self._parsed[seq].dump_json().encode()
        return self._lines.get(seq)

    def at(self, seq: int, time: EpochNanos) -> SnapshotRecord:
        """The record that entry `seq` published for a snapshot time.

        Raises:
            ManifestCorrupt: the entry is gone, damaged, or another folder's that took its place.
        """
        if seq not in self._parsed:
            line = self._lines.get(seq)
            self._parsed[seq] = (
                self._load(seq) if line is None else parse_record(line, manifest_key(seq))
            )
        record = self._parsed[seq]
        if (record.seq, record.time) != (seq, time):
            raise corrupt(manifest_key(seq), f"it does not publish {format_instant(time)}")
        return record

    def live(self, version: Version) -> SnapshotRecord:
        """The record of a live version; `ManifestCorrupt` if the index differs."""
        record = self.at(version.seq, version.time)
        if Version.of(record) != version:
            raise corrupt(manifest_key(version.seq), "another version than a checkpoint has")
        return record

    def tombstone(self, ended: Ended) -> TombstoneRecord:
        """The tombstone of a version that ended, with its files."""
        files = self.at(ended.published_seq, ended.time).files
        return TombstoneRecord(**ended._asdict(), files=files)


class LiveRecords(Mapping[EpochNanos, SnapshotRecord]):
    """The record of each live version by snapshot time; looking at one fetches it."""

    def __init__(self, versions: Mapping[EpochNanos, Version], records: Records) -> None:
        self._versions = versions
        self._records = records

    def __getitem__(self, time: EpochNanos) -> SnapshotRecord:
        return self._records.live(self._versions[time])

    def __contains__(self, time: object) -> bool:
        return time in self._versions

    def __iter__(self) -> Iterator[EpochNanos]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


class Fetched(Sequence[Item]):
    """A sequence whose members are fetched when looked at."""

    def __init__(self, held: Sequence[Held], fetch: Callable[[Held], Item]) -> None:
        self._length = len(held)
        self._fetch_at: Callable[[int], Item] = lambda index: fetch(held[index])

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(map(self._fetch_at, range(*index.indices(self._length))))
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._fetch_at(index)

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


# The state of an output folder: a pure fold over the entries of its manifest log.

ENDED_TOGETHER = 100_000
"""Versions and files that one entry ends at most: a version takes some 230 bytes and a file 130, so
that it is less than half as long as an entry may be (`parsing.ENTRY`). More take more entries."""


@dataclass(frozen=True)
class DataModelVersion:
    """A data model that some snapshot was published with."""

    model_hash: str
    """Hash of its document; `SnapshotRecord.model_hash` refers to it."""
    first_seen: int
    """Sequence number of the first entry that carried it."""
    nodes: tuple[ModelNode, ...]
    """Its sources, root first."""


@dataclass(frozen=True)
class FolderState:
    """Committed state of a folder up to one sequence number."""

    seq: int = 0
    """Sequence number of the last entry folded in; zero before the first."""
    settings: FolderSettings | None = None
    """Fixed settings; None until the folder is configured."""
    identity: FolderIdentity | None = None
    """Owner of the folder; None until the folder is configured."""
    reader_grace: TimeOffset | None = None
    """Time for which readers may use a pinned manifest; None until it is declared."""
    versions: Mapping[EpochNanos, Version] = field(default_factory=dict)
    """The one live version of each snapshot time, in short."""
    ended: tuple[Ended, ...] = ()
    """Versions that ended, in the order in which they did, in short."""
    revoked: frozenset[str] = frozenset()
    """Runs that may not commit any more."""
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """The newest claim of each scope."""
    models: tuple[DataModelVersion, ...] = ()
    """Every data model ever published, by first appearance: the history (rule P25).

    Models of snapshots that were deleted stay: what was once promised to readers is not forgotten.
    """
    records: Records = field(default_factory=Records, compare=False, repr=False)
    """Whole records of all these versions."""

    @property
    def next_seq(self) -> int:
        """The sequence number of the entry that may follow."""
        return self.seq + 1

    @cached_property
    def changed_at(self) -> int:
        """Number of the newest entry that changed what readers see; zero before the first."""
        started = (version.seq for version in self.versions.values())
        return max((*started, *(ended.seq for ended in self.ended)), default=0)

    @cached_property
    def live(self) -> Mapping[EpochNanos, SnapshotRecord]:
        """The record of the one live version of each snapshot time."""
        return LiveRecords(self.versions, self.records)

    @cached_property
    def tombstones(self) -> Sequence[TombstoneRecord]:
        """Versions that ended, in the order in which they did, with their files."""
        return Fetched(self.ended, self.records.tombstone)

    @cached_property
    def timeline(self) -> tuple[Version, ...]:
        """Live versions by snapshot time, in short."""
        return tuple(self.versions[time] for time in sorted(self.versions))

    @cached_property
    def snapshots(self) -> Sequence[SnapshotRecord]:
        """Live snapshots by time."""
        return Fetched(self.timeline, self.records.live)

    @cached_property
    def tombstoned_times(self) -> frozenset[EpochNanos]:
        """Snapshot times that had a version and have no live one: planning skips them."""
        return frozenset(t.time for t in self.ended if t.time not in self.versions)

    @cached_property
    def live_files(self) -> frozenset[str]:
        """Keys of every file that a reader of this state may open."""
        return frozenset(file.path for record in self.snapshots for file in record.files)

    @cached_property
    def tombstoned_files(self) -> Mapping[str, TombstoneRecord]:
        """Keys of files that are dead by name, each with its tombstone."""
        return {file.path: ended for ended in self.tombstones for file in ended.files}

    def is_live(self, key: str) -> bool:
        """Whether a reader of this state may open a file."""
        partition = partition_of(key)
        if partition not in self._live_keys:
            self._live_keys[partition] = frozenset(
                file.path
                for version in self._live_in.get(partition, ())
                for file in self.records.live(version).files
            )
        return key in self._live_keys[partition]

    def tombstone_of(self, key: str) -> TombstoneRecord | None:
        """The tombstone by which a file is dead, if there is one."""
        partition = partition_of(key)
        if partition not in self._dead_keys:
            found = self._dead_keys[partition] = {}
            for ended in map(self.records.tombstone, self._ended_in.get(partition, ())):
                for file in ended.files:
                    found.setdefault(file.path, ended)
        return self._dead_keys[partition].get(key)

    @cached_property
    def _live_keys(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def _dead_keys(self) -> dict[str, dict[str, TombstoneRecord]]:
        return {}

    @cached_property
    def _live_in(self) -> Mapping[str, Sequence[Version]]:
        found: dict[str, list[Version]] = {}
        for version in self.versions.values():
            found.setdefault(version.partition, []).append(version)
        return found

    @cached_property
    def _ended_in(self) -> Mapping[str, Sequence[Ended]]:
        found: dict[str, list[Ended]] = {}
        for ended in self.ended:
            found.setdefault(ended.partition, []).append(ended)
        return found

    @cached_property
    def merged_model(self) -> Mapping[str, ModelNode]:
        """Every source of the history by field name in lower case.

        Its place (parent and groupBy) is the first one published, which compatibility keeps fixed;
        its source and relationship are the latest, since those may be swapped.
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
    """The state after one more entry; `ManifestCorrupt` if that does not follow."""
    return fold(state, (entry,))


def fold(state: FolderState, entries: Iterable[Entry]) -> FolderState:
    """The state after more entries, copied once; `ManifestCorrupt` if one does not follow."""
    folding = _Folding(state)
    for entry in entries:
        folding.add(entry)
    return folding.result(is_written=True)


def apply_unwritten(state: FolderState, entry: Entry) -> FolderState:
    """State after an entry that is about to be written, and may lose to another one.

    Its record is in no state until it is passed to `records.remember`: the number may become that
    of another record. Raises as `apply`.
    """
    folding = _Folding(state)
    folding.add(entry)
    return folding.result(is_written=False)


class _Folding:
    def __init__(self, state: FolderState) -> None:
        self._state = state
        # The state before the first entry is shared by all folders, their records are not.
        self._records = Records() if state.records is EMPTY.records else state.records
        self._new: dict[int, SnapshotRecord] = {}
        self._versions = dict(state.versions)
        self._ended = list(state.ended)
        self._revoked = set(state.revoked)
        self._claims = dict(state.claims)
        self._models = {version.model_hash: version for version in state.models}

    def result(self, *, is_written: bool) -> FolderState:
        if is_written:
            for record in self._new.values():
                self._records.remember(record)
        return replace(
            self._state,
            versions=self._versions,
            ended=tuple(self._ended),
            records=self._records,
            revoked=frozenset(self._revoked),
            claims=self._claims,
            models=tuple(self._models.values()),
        )

    def add(self, entry: Entry) -> None:
        expected = self._state.next_seq
        if entry.seq != expected:
            raise corrupt(manifest_key(expected), f"its seq is {entry.seq}")
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
        if record.time in self._versions:
            raise _contradiction(entry, f"{format_instant(record.time)} is live already")
        self._versions[record.time] = Version.of(record)
        self._new[record.seq] = record
        version = DataModelVersion(record.model_hash, entry.seq, model)
        self._models.setdefault(record.model_hash, version)

    def _end(self, entry: Entry, ended: TombstoneRecord) -> None:
        version = self._versions.get(ended.time)
        if (
            version is None
            or version.seq != ended.published_seq
            or (self._new.get(version.seq) or self._records.live(version)).files != ended.files
        ):
            raise _contradiction(entry, f"it ends {format_instant(ended.time)}, which is not live")
        if ended.seq != entry.seq:
            raise _contradiction(entry, "its tombstone names another entry")
        del self._versions[ended.time]
        self._ended.append(Ended.of(ended))

    def _configure(self, entry: Configure) -> None:
        fixed, settings = self._state.settings, entry.settings
        moved = settings.model_copy(update={"table": None})
        # The table in a folder may move to a catalog (`output.tablemove`), and no other way.
        if fixed not in (None, settings, moved):
            raise _contradiction(entry, "it changes settings that are fixed")
        self._state = replace(
            self._state,
            settings=settings,
            identity=entry.identity,
            reader_grace=entry.reader_grace or self._state.reader_grace,
        )


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


def first_ended(tombstones: Iterable[TombstoneRecord]) -> tuple[TombstoneRecord, ...]:
    """Tombstones that fit into one entry, from the first on: at least one."""
    taken: list[TombstoneRecord] = []
    room = ENDED_TOGETHER
    for tombstone in tombstones:
        room -= 1 + len(tombstone.files)
        if taken and room < 0:
            break
        taken.append(tombstone)
    return tuple(taken)


def _contradiction(entry: Entry, found: str) -> ManifestCorrupt:
    return corrupt(manifest_key(entry.seq), found)

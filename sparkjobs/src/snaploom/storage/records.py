"""Records of published versions, fetched on first access.

A folder may have 100,000 snapshots. What decides about a commit is little of each: its time, its
number, its partition, its hashes. That is the index, which the state of a folder holds; the whole
record stands in the entry that published it, which never changes, and is read and parsed for those
that are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, overload

from snaploom.models.times import EpochNanos, format_instant
from snaploom.storage.documentparser import corrupt
from snaploom.storage.entries import SnapshotRecord, TombstoneRecord, parse_record
from snaploom.storage.layout import manifest_key

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
        """The index entry of a record."""
        return Version(
            record.time,
            record.seq,
            record.created_at,
            record.partition,
            record.schema_hash,
            record.model_hash,
        )


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
        """The index entry of a tombstone."""
        return Ended(
            tombstone.time,
            tombstone.partition,
            tombstone.published_seq,
            tombstone.seq,
            tombstone.rule,
            tombstone.deleted_at,
        )


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

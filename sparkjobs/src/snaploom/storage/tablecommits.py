"""Publication in an Iceberg table: the table's commit first, the entry of our log after it.

Readers of the table know nothing of our log, so that its commit is the publication. What an entry
will say is put beside the log before (`commits/<hash>.json`); the table's snapshot names it. From
that the entry is written: by the run itself, or, when it died in between, by whoever comes next
(`catch_up`). Entries follow in the order of the table's history, so that the first commit found in
the log, from the newest back, tells that all older ones are there too.

A run is revoked in the table before it is in the log: a run that committed to the table before it
was revoked there is published, and one that did not never will be. So no entry can be due for a
run that the log has revoked.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from pydantic import JsonValue

from snaploom.errors import ObjectNotFound, PublicationError, RunRevoked, SnaploomError
from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos, format_instant
from snaploom.storage import layout
from snaploom.storage.documents import put_content, store_model, store_schema
from snaploom.storage.entries import (
    MANIFEST_FORMAT,
    Entry,
    FileRecord,
    FolderSettings,
    Publish,
    Replace,
    SnapshotRecord,
    Tombstone,
    check_format,
    corrupt,
    entry_from,
)
from snaploom.storage.history import with_partition
from snaploom.storage.icebergtable import (
    COMMIT,
    RUN_ID,
    SNAPSHOT_TIME,
    VERSIONS,
    IcebergTable,
    TableChange,
    TableLibrary,
    TableVersion,
)
from snaploom.storage.manifest import (
    COMMIT_ATTEMPTS,
    CommitContended,
    CommitOutcomeUnknown,
    ManifestLog,
)
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.singleput import pause
from snaploom.storage.state import FolderState, tombstone_of

ICEBERG = "ICEBERG"
"""The data format of a folder that has a table."""
CHANGES = (Publish, Replace, Tombstone)
"""Entries that change what readers see, and so are a commit of the table first."""

_NO_COLUMNS = '{"type":"struct","fields":[]}'
_log = logging.getLogger(__name__)


def has_table(settings: FolderSettings | None) -> bool:
    """Whether a folder's snapshots are in an Iceberg table as well."""
    return settings is not None and settings.data_format == ICEBERG


@dataclass(frozen=True)
class TableCommits:
    """The table of one output, beside its log."""

    store: ObjectStore
    log: ManifestLog
    library: TableLibrary | None
    """Makes versions of the table; None where nothing is going to be published."""
    reached: Callable[[], None] = lambda: None
    """Called when the table's commit is there and the log does not know it; for tests."""

    def begin(self, settings: FolderSettings) -> None:
        """Make the table, if there is none: before any run has files that could be revoked.

        Raises:
            PublicationError: there is nothing that could write to the table.
        """
        table = IcebergTable(self.store)
        if table.read() is None:
            column = with_partition(_NO_COLUMNS, settings)
            name = settings.partition_field_name
            table.put(1, self._library().created(self.store.uri, column, name))

    def commit(self, build: Callable[[FolderState], Entry | None]) -> FolderState:
        """Publish what an entry says: in the table, then in the log.

        Arguments, result and errors are those of `ManifestLog.commit`; and

        Raises:
            HistoryIncompatible: columns contradict those that the table has.
            PublicationError: there is nothing that could write to the table.
        """
        table = IcebergTable(self.store)
        for attempt in range(COMMIT_ATTEMPTS):
            version = table.read()
            if version is None:
                raise corrupt(f"{self.store.uri}{VERSIONS}", "no table, though one was begun")
            state = self.catch_up()
            entry = build(state)
            if entry is None:
                return state
            if not isinstance(entry, CHANGES):
                raise AssertionError(f"not for the table: {entry.action}")
            _refuse_revoked(version, entry.run_id)
            if self._put(table, version, state, entry):
                state = self._follow()
                if isinstance(entry, Tombstone) or _Meant(entry, "").is_version_of(state):
                    return state
            pause(attempt)
        raise CommitContended(
            f"other writers took {COMMIT_ATTEMPTS} versions in a row of the table in "
            f"{self.store.uri}",
            hint="run again",
        )

    def catch_up(self) -> FolderState:
        """Write the entries of all commits of the table that the log lacks; the state then.

        Raises:
            ManifestCorrupt: what a commit means is not there any more.
        """
        state = self.log.read()
        version = IcebergTable(self.store).read()
        if version is None:
            return state
        due: list[_Meant] = []
        for made in version.history():
            meant = _meant(self.store, made.commit)
            if meant.is_version_of(state):
                break
            due.append(meant)
        for meant in reversed(due):
            state = self.log.commit(partial(self._entry, meant))
        return state

    def revoke(self, run_ids: frozenset[str], now: EpochNanos) -> None:
        """Let runs publish nothing any more, before the log says so; what they did is in the log.

        Args:
            run_ids: the runs.
            now: by the clock of who revokes.
        """
        IcebergTable(self.store).revoke(run_ids, now // NANOS_PER_MILLISECOND)
        self.catch_up()

    def _follow(self) -> FolderState:
        """The state after the table's commit, which stands whatever comes of the log's."""
        self.reached()
        try:
            return self.catch_up()
        except SnaploomError as error:
            raise CommitOutcomeUnknown(
                f"the table in {self.store.uri} has the commit, and the log does not: "
                f"{error.message}",
                hint="run again: what was published is recognised",
            ) from error

    def _put(
        self,
        table: IcebergTable,
        version: TableVersion,
        state: FolderState,
        entry: Publish | Replace | Tombstone,
    ) -> bool:
        """Whether the table has the commit; False when another one was faster."""
        library = self._library()
        settings = state.settings
        assert settings is not None  # a folder is configured before anything is published
        schema = self._schema(entry, settings)
        change = TableChange(
            schema=schema,
            field_name=settings.partition_field_name,
            added=_added(entry),
            ended=_ended(entry),
            summary={
                RUN_ID: entry.run_id,
                SNAPSHOT_TIME: " ".join(map(format_instant, _times(entry))),
                COMMIT: self._store_meaning(entry),
            },
        )
        changed = library.changed(self.store.uri, version.number, change)
        return changed is not None and table.put(version.number + 1, changed)

    def _library(self) -> TableLibrary:
        if self.library is None:
            raise PublicationError(
                f"{self.store.uri} is an Iceberg table, which this command does not write to",
                hint="nothing was changed; 'snaploom run' and 'snaploom restate' write to it",
            )
        return self.library

    def _schema(self, entry: Publish | Replace | Tombstone, settings: FolderSettings) -> str:
        if isinstance(entry, Tombstone):
            return ""
        key = layout.schema_key(entry.snapshot.schema_hash)
        return with_partition(self.store.get(key).decode(), settings)

    def _store_meaning(self, entry: Publish | Replace | Tombstone) -> str:
        """Put down what a commit means, schema included: `metadata/` may be lost."""
        schema = ""
        if not isinstance(entry, Tombstone):
            schema = self.store.get(layout.schema_key(entry.snapshot.schema_hash)).decode()
        told: JsonValue = {"format": MANIFEST_FORMAT, "entry": entry.dump(), "schema": schema}
        content = json.dumps(told, sort_keys=True, ensure_ascii=False).encode() + b"\n"
        name = layout.content_hash(content)
        put_content(self.store, layout.commit_key(name), content)
        return name

    def _entry(self, meant: _Meant, state: FolderState) -> Entry | None:
        entry = meant.on_top_of(state)
        if isinstance(entry, Publish | Replace):
            # They are there, unless `metadata/` was lost.
            store_schema(self.store, meant.schema)
            store_model(self.store, entry.model)
        if entry is not None:
            _log.debug("entry %d follows the table", entry.seq)
        return entry


@dataclass(frozen=True)
class Told:
    """What the history of a table tells of an output."""

    live: tuple[tuple[SnapshotRecord, str], ...]
    """What is live, by time: each with its schema. Numbers of entries are those of a lost log."""
    files: frozenset[str]
    """Keys of all files that were ever in the table."""


def told_by_table(store: ObjectStore) -> Told:
    """What a table's history tells by itself; nothing is written.

    Raises:
        ManifestCorrupt: what a commit means is not there any more.
    """
    version = IcebergTable(store).read()
    history = () if version is None else version.history()
    live: dict[EpochNanos, tuple[SnapshotRecord, str]] = {}
    files: set[str] = set()
    for meant in reversed([_meant(store, made.commit) for made in history]):
        entry = meant.entry
        if isinstance(entry, Tombstone):
            for one in entry.snapshots:
                live.pop(one.time, None)
        else:
            live[entry.snapshot.time] = entry.snapshot, meant.schema
            files.update(file.path for file in entry.snapshot.files)
    return Told(tuple(live[time] for time in sorted(live)), frozenset(files))


def _meant(store: ObjectStore, commit: str) -> _Meant:
    """What a commit of the table means.

    Raises:
        ManifestCorrupt: that is not there any more.
    """
    key = layout.commit_key(commit)
    name = f"{store.uri}{key}"
    try:
        content = store.get(key)
    except ObjectNotFound as error:
        raise corrupt(name, "nothing, though the table's history names it") from error
    check_format(content, name)
    raw = json.loads(content)
    entry = entry_from(raw.get("entry"), name)
    if not isinstance(entry, CHANGES):
        raise corrupt(name, f"an entry to {entry.action}")
    return _Meant(entry, str(raw.get("schema", "")))


@dataclass(frozen=True)
class _Meant:
    """What a commit of the table means."""

    entry: Publish | Replace | Tombstone
    """As it was drafted: numbers in it are those of the log at that time."""
    schema: str
    """Of the snapshot; empty where it ends some."""

    def is_version_of(self, state: FolderState) -> bool:
        """Whether a state has the version, live or ended; never for one that ends some."""
        if isinstance(self.entry, Tombstone):
            return False
        wanted = self.entry.snapshot
        numbers = [ended.published_seq for ended in state.ended if ended.time == wanted.time]
        if wanted.time in state.versions:
            numbers.append(state.versions[wanted.time].seq)
        return any(_same(state.records.at(seq, wanted.time), wanted) for seq in numbers)

    def on_top_of(self, state: FolderState) -> Publish | Replace | Tombstone | None:
        """The entry that is to follow a state; None when the state has it."""
        seq, entry = state.next_seq, self.entry
        if isinstance(entry, Tombstone):
            ends = [
                one.model_copy(update={"published_seq": state.live[one.time].seq, "seq": seq})
                for one in entry.snapshots
                if one.time in state.live and state.live[one.time].files == one.files
            ]
            update = {"seq": seq, "snapshots": tuple(ends)}
            return entry.model_copy(update=update) if ends else None
        if self.is_version_of(state):
            return None
        record = entry.snapshot.model_copy(update={"seq": seq})
        if isinstance(entry, Publish):
            return entry.model_copy(update={"seq": seq, "snapshot": record})
        live = state.live[record.time]
        if record.replaces is not None:
            record = record.model_copy(update={"replaces": live.seq})
        told = entry.replaced
        ended = tombstone_of(live, seq=seq, rule=told.rule, deleted_at=told.deleted_at)
        return entry.model_copy(update={"seq": seq, "snapshot": record, "replaced": ended})


def _same(record: SnapshotRecord, other: SnapshotRecord) -> bool:
    """Whether two records are of one version: names of files are never used twice (D28)."""
    told = (record.run_id, record.created_at, record.files)
    return told == (other.run_id, other.created_at, other.files)


def _refuse_revoked(version: TableVersion, run_id: str) -> None:
    if run_id in version.revoked:
        raise RunRevoked(
            f"run {run_id} was taken for dead and revoked by another run",
            found="a revocation in the table",
            hint="run again; nothing was published by this run since, and nothing is lost",
        )


def _times(entry: Publish | Replace | Tombstone) -> tuple[EpochNanos, ...]:
    if isinstance(entry, Tombstone):
        return tuple(one.time for one in entry.snapshots)
    return (entry.snapshot.time,)


def _added(entry: Publish | Replace | Tombstone) -> dict[str, tuple[FileRecord, ...]]:
    if isinstance(entry, Tombstone):
        return {}
    return {_value(entry.snapshot.partition): entry.snapshot.files}


def _ended(entry: Publish | Replace | Tombstone) -> tuple[str, ...]:
    if isinstance(entry, Publish):
        return ()
    ended = entry.snapshots if isinstance(entry, Tombstone) else (entry.replaced,)
    return tuple(_value(one.partition) for one in ended)


def _value(partition: str) -> str:
    """Value of the partition column, from a folder such as `t=2020-01-01T00%3A00%3A00Z`."""
    return unquote(partition.partition("=")[2])

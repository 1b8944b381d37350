"""History of an output's Iceberg table: the meaning of each commit, the newest first.

A table's snapshot names its meaning by hash (`commits/<hash>.json`). Snapshots that the table has
forgotten (`storage.tableexpiry`) are named in pages beside it, each of which names the one before,
so that the whole history can be read however short the table's own is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.errors import ObjectNotFound
from snaploom.models.times import EpochNanos, format_instant
from snaploom.storage import layout
from snaploom.storage.documentparser import (
    MANIFEST_FORMAT,
    MEANING,
    corrupt,
    get_bounded,
    parse_versioned,
)
from snaploom.storage.entries import (
    Publish,
    Replace,
    SnapshotRecord,
    Tombstone,
    entry_from,
)
from snaploom.storage.icebergtable import IcebergTable, TableVersion
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.schemadocuments import put_content, read_schema
from snaploom.storage.state import FolderState, tombstone_of

_HASH = re.compile(r"[0-9a-f]{64}")
CHANGES = (Publish, Replace, Tombstone)
"""Entries that change what readers see, and so are a commit of the table first."""


def commits_of(store: ObjectStore, version: TableVersion) -> Iterator[str]:
    """Hashes of all commits of ours in the table, newest first; else `ManifestCorrupt`."""
    for made in version.history():
        yield made.commit
    page = version.earlier
    while page:
        raw = _document(store, page)
        commits, page = raw.get("commits"), str(raw.get("before", ""))
        yield from reversed([str(one) for one in commits] if isinstance(commits, list) else [])


def store_page(store: ObjectStore, commits: Sequence[str], before: str) -> str:
    """Store a page of commits that the table forgets, the oldest first; returns its hash."""
    recorded: JsonValue = {"format": MANIFEST_FORMAT, "commits": list(commits), "before": before}
    return _put(store, recorded)


def store_meaning(store: ObjectStore, entry: Publish | Replace | Tombstone) -> str:
    """Store the meaning and schema of a commit, as `metadata/` may be lost; returns its hash."""
    schema = ""
    if not isinstance(entry, Tombstone):
        schema = read_schema(store, entry.snapshot.schema_hash)
    return _put(store, {"format": MANIFEST_FORMAT, "entry": entry.dump(), "schema": schema})


def _put(store: ObjectStore, document: JsonValue) -> str:
    content = json.dumps(document, sort_keys=True, ensure_ascii=False).encode() + b"\n"
    name = layout.content_hash(content)
    put_content(store, layout.commit_key(name), content)
    return name


@dataclass(frozen=True)
class TableHistory:
    """History of an output as its table records it."""

    live: tuple[tuple[SnapshotRecord, str], ...]
    """Live snapshots by time, each with its schema. Numbers of entries are those of a lost log."""
    files: frozenset[str]
    """Keys of all files that were ever in the table."""


def table_history(store: ObjectStore) -> TableHistory:
    """History of the output by its table, read only; `ManifestCorrupt` if incomplete."""
    version = IcebergTable(store).read()
    commits = () if version is None else commits_of(store, version)
    live: dict[EpochNanos, tuple[SnapshotRecord, str]] = {}
    files: set[str] = set()
    for meant in reversed([meaning_of(store, commit) for commit in commits]):
        entry = meant.entry
        if isinstance(entry, Tombstone):
            for one in entry.snapshots:
                live.pop(one.time, None)
        else:
            live[entry.snapshot.time] = entry.snapshot, meant.schema
            files.update(file.path for file in entry.snapshot.files)
    return TableHistory(tuple(live[time] for time in sorted(live)), frozenset(files))


def meaning_of(store: ObjectStore, commit: str) -> Meant:
    """Read the meaning of a table commit; `ManifestCorrupt` if it is missing."""
    raw = _document(store, commit)
    name = f"{store.uri}{layout.commit_key(commit)}"
    entry = entry_from(raw.get("entry"), name)
    if not isinstance(entry, CHANGES):
        raise corrupt(name, f"an entry to {entry.action}")
    return Meant(entry, str(raw.get("schema", "")))


def _document(store: ObjectStore, name: str) -> dict[str, JsonValue]:
    if not _HASH.fullmatch(name):
        raise corrupt(f"{store.uri}{layout.COMMITS}", f"no name of a commit: {name[:100]}")
    key = layout.commit_key(name)
    try:
        content = get_bounded(store, key, MEANING)
    except ObjectNotFound as error:
        recorded = "nothing, though the table's history names it"
        raise corrupt(f"{store.uri}{key}", recorded) from error
    # Pages name the one before, so that only names that follow from the content cannot go round.
    if layout.content_hash(content) != name:
        raise corrupt(f"{store.uri}{key}", "a document that does not match its name")
    return parse_versioned(content, f"{store.uri}{key}", MEANING)


@dataclass(frozen=True)
class Meant:
    """The meaning of a table commit."""

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
        """The entry that follows a state, if any; `ManifestCorrupt` if it replaces nothing."""
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
        if record.time not in state.live:
            raise corrupt(
                f"{layout.COMMITS}*",
                f"it replaces {format_instant(record.time)}, which is not live",
            )
        live = state.live[record.time]
        if record.replaces is not None:
            record = record.model_copy(update={"replaces": live.seq})
        recorded = entry.replaced
        ended = tombstone_of(live, seq=seq, rule=recorded.rule, deleted_at=recorded.deleted_at)
        return entry.model_copy(update={"seq": seq, "snapshot": record, "replaced": ended})


def _same(record: SnapshotRecord, other: SnapshotRecord) -> bool:
    recorded = (record.run_id, record.created_at, record.files)
    return recorded == (other.run_id, other.created_at, other.files)

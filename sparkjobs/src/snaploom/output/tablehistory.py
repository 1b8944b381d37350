"""The history of an output's Iceberg table, and the snapshots that it is to forget."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import cast

from pydantic import JsonValue

from snaploom.errors import ObjectNotFound, PublicationError
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos, format_instant
from snaploom.output import icebergtable, layout
from snaploom.output.documents import (
    MANIFEST_FORMAT,
    MEANING,
    corrupt,
    get_bounded,
    parse_versioned,
)
from snaploom.output.entries import (
    Publish,
    Replace,
    SnapshotRecord,
    Tombstone,
    TombstoneRecord,
    entry_from,
)
from snaploom.output.manifest import put_content, read_schema
from snaploom.output.state import FolderState, tombstone_of

# History of an output's Iceberg table: the meaning of each commit, the newest first.

_HASH = re.compile(r"[0-9a-f]{64}")
CHANGES = (Publish, Replace, Tombstone)
"""Entries that change what readers see, and so are a commit of the table first."""


def versions_of(
    entry: Publish | Replace | Tombstone,
) -> tuple[tuple[SnapshotRecord, ...], tuple[TombstoneRecord, ...]]:
    """Versions that an entry begins, one at most, and those that it ends."""
    match entry:
        case Publish():
            return (entry.snapshot,), ()
        case Replace():
            return (entry.snapshot,), (entry.replaced,)
        case Tombstone():
            return (), entry.snapshots


def commits_of(store: ObjectStore, version: icebergtable.TableVersion) -> Iterator[str]:
    """Hashes of all commits of ours in the table, newest first; else `ManifestCorrupt`."""
    last = version.properties.get(icebergtable.LAST_COMMIT, "")
    while last:
        yield last
        last = str(_document(store, last).get("before", ""))
    if icebergtable.OWNER not in version.properties:
        yield from filter(None, map(_commit, version.lineage()))
    page = version.properties.get(icebergtable.EARLIER, "")
    while page:
        raw = _document(store, page)
        commits, page = raw.get("commits"), str(raw.get("before", ""))
        yield from reversed([str(one) for one in commits] if isinstance(commits, list) else [])


def store_page(
    store: ObjectStore,
    version: icebergtable.TableVersion,
    snapshots: Sequence[Mapping[str, JsonValue]],
) -> str:
    """Store the commits of a table's oldest snapshots, the newest first; returns the page's hash.

    It follows the page that the table names.
    """
    commits: list[JsonValue] = [commit for one in reversed(snapshots) if (commit := _commit(one))]
    before = version.properties.get(icebergtable.EARLIER, "")
    return _put(store, {"format": MANIFEST_FORMAT, "commits": commits, "before": before})


def store_meaning(
    store: ObjectStore, entry: Publish | Replace | Tombstone, before: str | None = None
) -> str:
    """Store the meaning and schema of a commit, as `metadata/` may be lost; returns its hash.

    `before` is the commit before it, in a table of a catalog.
    """
    schema = ""
    if not isinstance(entry, Tombstone):
        schema = read_schema(store, entry.snapshot.schema_hash)
    chain: dict[str, JsonValue] = {} if before is None else {"before": before}
    content: dict[str, JsonValue] = {"entry": entry.dump(), "schema": schema, **chain}
    return _put(store, {"format": MANIFEST_FORMAT, **content})


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


def table_history(store: ObjectStore, version: icebergtable.TableVersion | None) -> TableHistory:
    """History of the output by its table, read only; `ManifestCorrupt` if incomplete."""
    commits = () if version is None else commits_of(store, version)
    live: dict[EpochNanos, tuple[SnapshotRecord, str]] = {}
    files: set[str] = set()
    for meant in reversed([meaning_of(store, commit) for commit in commits]):
        begun, ended = versions_of(meant.entry)
        for one in ended:
            live.pop(one.time, None)
        for record in begun:
            live[record.time] = record, meant.schema
            files.update(file.path for file in record.files)
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
        return any(self.publishes(state.records.at(seq, wanted.time)) for seq in numbers)

    def publishes(self, record: SnapshotRecord) -> bool:
        """Whether it published a version."""
        return not isinstance(self.entry, Tombstone) and _same(record, self.entry.snapshot)

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


# Expiry of snapshots of an output's Iceberg table before their files are removed.

MAIN = "main"
"""The branch of every table that readers see."""


class SnapshotsHeld(PublicationError):
    """A tag or branch of an output's table keeps snapshots whose files are to be removed."""


def shown_again(table: str, files: Sequence[str]) -> SnapshotsHeld:
    """The error of files that others let a table show again."""
    return SnapshotsHeld(
        f"the table {table} shows files that are to be removed",
        found=", ".join(files[:3]),
        expected="snapshots, tags and branches that show what is published",
        hint="restate what others rolled back or added, and let them drop their tags, "
        "branches and snapshots; until then the files stay",
    )


def forget(store: ObjectStore, ended: Collection[TombstoneRecord], now: int) -> bool:
    """Remove table snapshots that show ended versions, if any; `now` in milliseconds since 1970.

    Raises:
        SnapshotsHeld: a tag or another branch shows one.
        CommitOutcomeUnknown, FolderNotWritable: as `IcebergTable.append`.
    """
    table = icebergtable.IcebergTable(store)
    while (version := table.read()) is not None:
        forgotten = forgotten_by(store, version, ended)
        if not forgotten:
            return False
        page = store_page(store, version, forgotten)
        document = forgetful_document(version, store.uri, forgotten, page, now)
        if table.append(version.number + 1, json.dumps(document).encode()):
            return True
    return False


def remove_lists(store: ObjectStore, library: icebergtable.TableLibrary, margin: int) -> None:
    """Remove lists no version needs that are `margin` nanoseconds older than the newest version."""
    version = icebergtable.IcebergTable(store).read()
    put = None if version is None else store.head(icebergtable.version_key(version.number))
    if version is None or put is None:
        return
    icebergtable.refuse_foreign_places(store)
    needed = library.lists(store.uri, version.number)
    if needed is not None:
        remove_unneeded(store, needed, put.modified - margin)


def remove_unneeded(store: ObjectStore, needed: frozenset[str], horizon: int) -> None:
    """Remove lists of files that are not needed and older than a time, by the store's clock."""
    store.delete(
        info.key
        for info in list(store.list(icebergtable.VERSIONS))
        if info.key.endswith(".avro")
        and info.key.removeprefix(icebergtable.VERSIONS) not in needed
        and info.modified < horizon
    )


def forgetful_document(
    version: icebergtable.TableVersion,
    uri: str,
    forgotten: Collection[Mapping[str, JsonValue]],
    page: str,
    now: int,
) -> Mapping[str, JsonValue]:
    """Next version without some snapshots, naming their page; `now` in milliseconds since 1970."""
    gone = {icebergtable.number_of(one) for one in forgotten}
    before = version.document
    document = dict(icebergtable.next_document(version, uri, {icebergtable.EARLIER: page}, now))
    for key in ("snapshots", "statistics", "partition-statistics"):
        listed = before.get(key)
        if isinstance(listed, list):
            document[key] = [one for one in listed if _id(one) not in gone]
    log = before.get("snapshot-log")
    if isinstance(log, list):
        # A log with gaps is none: it begins after the last snapshot that is not there any more.
        lost = list(dropwhile(lambda one: _id(one) not in gone, reversed(log)))
        document["snapshot-log"] = log[len(lost) :]
    return document


def forgotten_by(
    store: ObjectStore, version: icebergtable.TableVersion, ended: Collection[TombstoneRecord]
) -> list[Mapping[str, JsonValue]]:
    """Snapshots of a table from before versions ended; `SnapshotsHeld` where one is held."""
    files = frozenset(file.path for one in ended for file in one.files)
    lineage = version.lineage()
    for snapshot in lineage:
        commit = _commit(snapshot)
        gone = versions_of(meaning_of(store, commit).entry)[1] if commit else ()
        if not files.isdisjoint(file.path for one in gone for file in one.files):
            forgotten = list(lineage)
            if forgotten:
                _refuse_held(store, version, forgotten)
            return forgotten
    return []


def unused_by(version: icebergtable.TableVersion) -> set[int]:
    """Snapshots of ours that no branch and no tag leads to, since others rolled the table back."""
    parents, ours = dict[JsonValue, JsonValue](), set[int]()
    for snapshot in version.snapshots():
        number = icebergtable.number_of(snapshot)
        parents[number] = snapshot.get("parent-snapshot-id")
        if number is not None and _commit(snapshot):
            ours.add(number)
    named = version.document.get("refs")
    heads = [_id(one) for one in named.values()] if isinstance(named, dict) else []
    for head in (version.newest, *heads):
        while head in parents:
            ours.discard(cast(int, head))
            head = parents.pop(head)
    return ours


def _refuse_held(
    store: ObjectStore,
    version: icebergtable.TableVersion,
    forgotten: Collection[Mapping[str, JsonValue]],
) -> None:
    gone = {icebergtable.number_of(one) for one in forgotten}
    kept = {icebergtable.number_of(one) for one in version.lineage()} - gone
    named = version.document.get("refs")
    refs = named if isinstance(named, dict) else {}
    held = sorted(name for name, one in refs.items() if name != MAIN and _id(one) not in kept)
    if held:
        raise SnapshotsHeld(
            f"the Iceberg table in {store.uri} has tags or branches that show ended snapshots",
            found=", ".join(held),
            expected="no tag or branch of an output's table but main",
        )


def _commit(snapshot: Mapping[str, JsonValue]) -> str:
    summary = snapshot.get("summary")
    return str(summary.get(icebergtable.COMMIT, "")) if isinstance(summary, dict) else ""


def _id(value: JsonValue) -> JsonValue:
    return icebergtable.number_of(value) if isinstance(value, dict) else None

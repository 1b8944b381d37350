"""Expiry of snapshots of an output's Iceberg table before their files are removed.

Retention is ours: when a snapshot of the output ended long enough ago, its files go (`storage.gc`,
`storage.runcleanup`). A snapshot of the table from before that ending shows these files, so
that the table forgets it first, and nobody is offered what cannot be read. With one such
snapshot go all that are older: readers who pinned them have had their grace as well.

It is one more version of the table, made by put-if-absent as all of them are. What the commits
meant is not forgotten: their hashes go to a page beside the table (`storage.tablehistory`).

Lists of files (`*.avro`) that no version needs are removed after that. Their names contain no run,
so that another proof is needed: a writer of a list before the newest version was there began from
an older one, and the number that he wants is taken.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import dropwhile

from pydantic import JsonValue

from snaploom.errors import PublicationError
from snaploom.storage.entries import Replace, Tombstone, TombstoneRecord
from snaploom.storage.icebergtable import (
    COMMIT,
    EARLIER,
    VERSIONS,
    IcebergTable,
    TableLibrary,
    TableVersion,
    next_document,
    number_of,
    refuse_foreign_places,
    version_key,
)
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.tablehistory import Meant, meaning_of, store_page

MAIN = "main"
"""The branch of every table that readers see."""


class SnapshotsHeld(PublicationError):
    """A tag or branch of an output's table keeps snapshots whose files are to be removed."""

    reason = "SnapshotsHeld"


def forget(store: ObjectStore, ended: Collection[TombstoneRecord], now: int) -> bool:
    """Remove table snapshots that show ended versions, if any; `now` in milliseconds since 1970.

    Raises:
        SnapshotsHeld: a tag or another branch shows one.
        CommitOutcomeUnknown, FolderNotWritable: as `IcebergTable.put`.
    """
    table = IcebergTable(store)
    files = frozenset(file.path for one in ended for file in one.files)
    while (version := table.read()) is not None:
        forgotten = _before_last_ending(store, version, files)
        if not forgotten:
            return False
        _refuse_held(store, version, forgotten)
        commits = [commit for one in reversed(forgotten) if (commit := _commit(one))]
        page = store_page(store, commits, version.earlier)
        document = forgetful_document(version, store.uri, forgotten, page, now)
        if table.put(version.number + 1, json.dumps(document).encode()):
            return True
    return False


def remove_lists(store: ObjectStore, library: TableLibrary, margin: int) -> None:
    """Remove lists no version needs that are `margin` nanoseconds older than the newest version."""
    version = IcebergTable(store).read()
    put = None if version is None else store.head(version_key(version.number))
    if version is None or put is None:
        return
    refuse_foreign_places(store)
    needed = library.lists(store.uri, version.number)
    if needed is None:
        return
    store.delete(
        info.key
        for info in list(store.list(VERSIONS))
        if info.key.endswith(".avro")
        and info.key.removeprefix(VERSIONS) not in needed
        and info.modified < put.modified - margin
    )


def forgetful_document(
    version: TableVersion,
    uri: str,
    forgotten: Collection[Mapping[str, JsonValue]],
    page: str,
    now: int,
) -> Mapping[str, JsonValue]:
    """Next version without some snapshots, naming their page; `now` in milliseconds since 1970."""
    gone = {number_of(one) for one in forgotten}
    before = version.document
    document = dict(next_document(version, uri, {EARLIER: page}, now))
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


def _before_last_ending(
    store: ObjectStore, version: TableVersion, files: frozenset[str]
) -> list[Mapping[str, JsonValue]]:
    lineage = version.lineage()
    for snapshot in lineage:
        commit = _commit(snapshot)
        if commit and not files.isdisjoint(_ended_by(meaning_of(store, commit))):
            return list(lineage)
    return []


def _ended_by(meant: Meant) -> Iterator[str]:
    match meant.entry:
        case Tombstone(snapshots=ended):
            yield from (file.path for one in ended for file in one.files)
        case Replace(replaced=one):
            yield from (file.path for file in one.files)


def _refuse_held(
    store: ObjectStore, version: TableVersion, forgotten: Collection[Mapping[str, JsonValue]]
) -> None:
    gone = {number_of(one) for one in forgotten}
    kept = {number_of(one) for one in version.lineage()} - gone
    named = version.document.get("refs")
    refs = named if isinstance(named, dict) else {}
    held = sorted(name for name, one in refs.items() if name != MAIN and _id(one) not in kept)
    if held:
        raise SnapshotsHeld(
            f"the Iceberg table in {store.uri} has tags or branches that show ended snapshots",
            found=", ".join(held),
            expected="no tag or branch of an output's table but main",
            hint="drop them (ALTER TABLE ... DROP TAG, DROP BRANCH); until then files of ended "
            "snapshots stay",
        )


def _commit(snapshot: Mapping[str, JsonValue]) -> str:
    summary = snapshot.get("summary")
    return str(summary.get(COMMIT, "")) if isinstance(summary, dict) else ""


def _id(value: JsonValue) -> JsonValue:
    return number_of(value) if isinstance(value, dict) else None

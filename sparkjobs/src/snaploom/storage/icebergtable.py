"""The Iceberg table of an output: its versions, each made by one put-if-absent.

A table of Iceberg's Hadoop kind is a folder in which `metadata/v<N>.metadata.json` with the
highest number is the truth. Iceberg commits by giving a file that name, which on a local disk or in
a bucket replaces what another writer committed a moment before. So Iceberg's library only makes the
next document (`TableLibrary`), which gets its name here, as entries of the manifest log do.

The table lies in a folder of its own inside the output's: Iceberg's `remove_orphan_files` takes
everything below a table's place for the table's, and would remove our manifest with the rest. Its
data files are those in `data/`, each once, whoever reads them.

```
iceberg/metadata/v<N>.metadata.json   versions of the table
iceberg/metadata/version-hint.text    hint: a version that was reached
iceberg/metadata/*.avro               lists of files, by Iceberg's library
```
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from pydantic import JsonValue

from snaploom.errors import ObjectNotFound
from snaploom.storage.entries import FileRecord, corrupt
from snaploom.storage.manifest import CommitOutcomeUnknown
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.singleput import put_once

TABLE = "iceberg/"
VERSIONS = f"{TABLE}metadata/"
HINT = f"{VERSIONS}version-hint.text"

RUN_ID = "snaploom.run-id"
"""In the summary of a snapshot of the table: the run that committed it."""
SNAPSHOT_TIME = "snaploom.snapshot-time"
"""Likewise: the time of the snapshot that it publishes, or the times of those that it ends."""
COMMIT = "snaploom.commit"
"""Likewise: the hash that names `commits/<hash>.json`."""
REVOKED = "snaploom.revoked-runs"
"""Property of the table: runs that may not commit to it any more (ruling D27)."""
EARLIER = "snaploom.earlier-commits"
"""Property of the table: the hash that names the page of commits it has forgotten last."""

_VERSION = re.compile(rf"{re.escape(VERSIONS)}v(\d+)\.metadata\.json")
KEPT_VERSIONS = 100
"""Versions that stay, as many as Iceberg itself remembers: each tells all snapshots anew."""

_log = logging.getLogger(__name__)


def version_key(number: int) -> str:
    """Key of one version of the table."""
    return f"{VERSIONS}v{number}.metadata.json"


@dataclass(frozen=True)
class TableCommitted:
    """A commit of ours in the table's history."""

    run_id: str
    """Run that made it."""
    commit: str
    """Hash of what it means, in `commits/`."""


@dataclass(frozen=True)
class TableVersion:
    """The table as one document tells it."""

    number: int
    """From 1."""
    document: Mapping[str, JsonValue] = field(repr=False)
    """Iceberg's table metadata."""

    @cached_property
    def revoked(self) -> frozenset[str]:
        """Runs that may not commit any more."""
        told = _texts(self.document.get("properties")).get(REVOKED, "")
        return frozenset(told.split())

    @cached_property
    def earlier(self) -> str:
        """Hash of the page of commits that the table has forgotten; empty where it knows all."""
        return _texts(self.document.get("properties")).get(EARLIER, "")

    def history(self) -> Iterator[TableCommitted]:
        """Commits of ours that the table still knows of, the newest first."""
        for snapshot in self.lineage():
            summary = _texts(snapshot.get("summary"))
            if RUN_ID in summary and COMMIT in summary:
                yield TableCommitted(summary[RUN_ID], summary[COMMIT])

    def lineage(self) -> Iterator[Mapping[str, JsonValue]]:
        """The table's snapshots that lead to what it holds now, the newest first."""
        listed = self.document.get("snapshots")
        snapshots = {one["snapshot-id"]: one for one in _objects(listed)}
        wanted = self.document.get("current-snapshot-id")
        while (snapshot := snapshots.get(wanted)) is not None:
            yield snapshot
            wanted = snapshot.get("parent-snapshot-id")


@dataclass(frozen=True)
class TableChange:
    """What the next version of a table has, and has not any more."""

    schema: str
    """Columns that the table must have, the partition's included, as `StructType.json()` gives it;
    empty where it stays as it is."""
    field_name: str
    """The partition column."""
    added: Mapping[str, tuple[FileRecord, ...]]
    """New files, by value of the partition column; their paths are relative to the output."""
    ended: tuple[str, ...]
    """Values of the partition column whose files so far go."""
    summary: Mapping[str, str]
    """What the table's snapshot tells of itself."""


class TableLibrary(Protocol):
    """Whoever knows Iceberg's formats; it commits nothing."""

    def created(self, folder: str, schema: str, field_name: str) -> bytes:
        """The first version of a table in an output folder: without rows.

        Args:
            folder: URI of the output.
            schema: of the partition column alone, as `StructType.json()` gives it.
            field_name: the partition column.
        """
        ...

    def changed(self, folder: str, number: int, change: TableChange) -> bytes | None:
        """The version after one; None where that is not the newest any more.

        Args:
            folder: URI of the output.
            number: of the version that is changed.
            change: what is to be different.

        Raises:
            HistoryIncompatible: the columns contradict those of the table.
        """
        ...

    def lists(self, folder: str, number: int) -> frozenset[str] | None:
        """Names of the lists of files that a version needs; None where it is not the newest."""
        ...


class IcebergTable:
    """The versions of one table."""

    def __init__(self, store: ObjectStore) -> None:
        """Nothing is read yet.

        Args:
            store: of the output's folder.
        """
        self._store = store

    def read(self) -> TableVersion | None:
        """The newest version; None before the first.

        Raises:
            ManifestCorrupt: it is no table metadata.
        """
        number = self._newest(self._hint())
        if not number:
            number = self._newest(self._listed())
        if not number:
            return None
        key = version_key(number)
        try:
            document = json.loads(self._store.get(key))
        except ValueError as error:
            raise corrupt(f"{self._store.uri}{key}", f"not JSON: {error}") from error
        if not isinstance(document, dict):
            raise corrupt(f"{self._store.uri}{key}", "no metadata of a table")
        return TableVersion(number, document)

    def put(self, number: int, document: bytes) -> bool:
        """Make a document the next version; whether it is, and not another writer's.

        Whoever read the table long ago may take the number of a version that is gone by now: what
        is published is what the newest version tells.

        Raises:
            CommitOutcomeUnknown: the store stopped answering; reading again finds out.
            FolderNotWritable: the store refuses it.
        """
        is_written = put_once(self._store, version_key(number), document, _unknown)
        if is_written:
            self._tidy(number)
        return is_written

    def revoke(self, run_ids: frozenset[str], now: int) -> None:
        """Let runs commit nothing to the table any more; those that did have done so for good.

        Args:
            run_ids: the runs.
            now: milliseconds since 1970.
        """
        while (version := self.read()) is not None and not run_ids <= version.revoked:
            revoked = {REVOKED: " ".join(sorted(version.revoked | run_ids))}
            document = next_document(version, self._store.uri, revoked, now)
            self.put(version.number + 1, json.dumps(document).encode())

    def _hint(self) -> int:
        try:
            return int(self._store.get(HINT))
        except (ObjectNotFound, ValueError):
            return 0

    def _listed(self) -> int:
        matches = (_VERSION.fullmatch(info.key) for info in self._store.list(VERSIONS))
        return max((int(match[1]) for match in matches if match), default=0)

    def _newest(self, number: int) -> int:
        """The last version from one on; zero where that one is not there."""
        if not number or self._store.head(version_key(number)) is None:
            return 0
        while self._store.head(version_key(number + 1)) is not None:
            number += 1
        return number

    def _tidy(self, number: int) -> None:
        """Leave a hint, and remove the version that nobody needs any more."""
        try:
            if self._hint() < number:
                self._store.put(HINT, str(number).encode())
            self._store.delete([version_key(number - KEPT_VERSIONS)])
        except STORE_FAILURES as error:
            _log.warning("no hint for version %d of the table: %s", number, error.message)


def next_document(
    version: TableVersion, uri: str, properties: Mapping[str, str], now: int
) -> Mapping[str, JsonValue]:
    """The version after one, with other properties, and the same otherwise.

    Args:
        version: the newest.
        uri: of the output's folder.
        properties: those that are added or changed.
        now: milliseconds since 1970; Iceberg refuses a version that is older than the one before.
    """
    before = version.document
    told = before.get("last-updated-ms")
    at = told if isinstance(told, int) else now
    log = before.get("metadata-log")
    here: JsonValue = {"timestamp-ms": at, "metadata-file": f"{uri}{version_key(version.number)}"}
    return {
        **before,
        "last-updated-ms": max(at, now),
        "properties": {**_texts(before.get("properties")), **properties},
        "metadata-log": [*(log if isinstance(log, list) else []), here],
    }


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    listed = value if isinstance(value, list) else []
    return [one for one in listed if isinstance(one, dict)]


def _texts(value: JsonValue) -> dict[str, str]:
    return {k: str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _unknown(message: str) -> CommitOutcomeUnknown:
    return CommitOutcomeUnknown(message, hint="run again: what was published is recognised")

"""The Iceberg table of an output: its versions, each made by one put-if-absent.

A table of Iceberg's Hadoop kind is a folder in which `metadata/v<N>.metadata.json` with the
highest number is the truth. Iceberg commits by giving a file that name, which on a local disk or in
a bucket replaces what another writer committed a moment before. So Iceberg's library only makes the
next document (`TableLibrary`), which gets its name here, as entries of the manifest log do.

The table lies in a folder of its own inside the output's: Iceberg's `remove_orphan_files` takes
everything below a table's place for the table's, and would remove our manifest with the rest. Its
data files are those in `data/`, each once, for every reader.

```
iceberg/metadata/v<N>.metadata.json   versions of the table
iceberg/metadata/version-hint.text    hint: a version that was reached
iceberg/metadata/*.avro               lists of files, by Iceberg's library
```
"""

import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol
from uuid import uuid4

from pydantic import JsonValue

from snaploom.confidential import visible
from snaploom.errors import ObjectNotFound, ObjectTooLarge, PublicationError, StorageError
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore, refuse_links
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos
from snaploom.output.documents import HINT as HINT_BOUNDS
from snaploom.output.documents import TABLE_VERSION, NumberedLog, corrupt, get_bounded, parse_object
from snaploom.output.entries import FileRecord
from snaploom.output.manifest import CommitOutcomeUnknown

_log = logging.getLogger(__name__)

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
"""Property of the table: runs that may not commit to it any more (rule P11)."""
EARLIER = "snaploom.earlier-commits"
"""Property of the table: the hash that names the page of commits it has forgotten last."""
LAST_COMMIT = "snaploom.last-commit"
"""Property of a table of a catalog: the hash of our last commit, whose document names the one
before it. So others may let the table forget snapshots."""
OWNER = "snaploom.folder"
"""Property of a table of a catalog: the URI of the output's folder."""
MOVED = "snaploom.moved-to"
"""Property of the last version of a folder's table: the catalog and name that it has moved to."""

_VERSION = re.compile(rf"{re.escape(VERSIONS)}v([0-9]{{1,18}})\.metadata\.json")
_HINTED = re.compile(rb"[0-9]{1,18}")
KEPT_VERSIONS = 100
"""Versions that stay, as many as Iceberg itself keeps: each lists all snapshots anew."""


def version_key(number: int) -> str:
    """Key of one version of the table."""
    return f"{VERSIONS}v{number}.metadata.json"


def copy_key() -> str:
    """A new key of a version for a catalog, which deletes that of a registration that lost."""
    return f"{VERSIONS}00000-{uuid4()}.metadata.json"


@dataclass(frozen=True)
class TableVersion:
    """The table as one metadata document describes it."""

    number: int
    """From 1; 0 for a table of a catalog, which has means of its own."""
    document: Mapping[str, JsonValue] = field(repr=False)
    """Iceberg's table metadata."""

    @cached_property
    def properties(self) -> Mapping[str, str]:
        return _texts(self.document.get("properties"))

    @cached_property
    def revoked(self) -> frozenset[str]:
        """Runs that may not commit any more."""
        return frozenset(self.properties.get(REVOKED, "").split())

    @property
    def newest(self) -> int | None:
        """Identity of the snapshot that readers see; None before the first."""
        return next((number_of(one) for one in self.lineage()), None)

    def snapshots(self) -> list[dict[str, JsonValue]]:
        """All snapshots of the table, whatever leads to them."""
        return _objects(self.document.get("snapshots"))

    def lineage(self) -> Iterator[Mapping[str, JsonValue]]:
        """The table's snapshots that lead to its current content, the newest first."""
        snapshots = {number_of(one): one for one in self.snapshots()}
        wanted = self.document.get("current-snapshot-id")
        # Each once: a line of parents that goes round is no lineage.
        while isinstance(wanted, int) and (snapshot := snapshots.pop(wanted, None)) is not None:
            yield snapshot
            wanted = snapshot.get("parent-snapshot-id")


@dataclass(frozen=True)
class TableChange:
    """The difference between a version of a table and the next."""

    schema: str
    """Columns that the table must have, the partition's included, as `StructType.json()` gives it;
    empty where it stays as it is."""
    field_name: str
    added: Mapping[str, tuple[FileRecord, ...]]
    """New files, by value of the partition column; their paths are relative to the output."""
    ended: tuple[str, ...]
    """Values of the partition column whose files so far go."""
    summary: Mapping[str, str]
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties to set; for a table of a catalog."""


class CatalogFailed(StorageError):
    """The catalog of an output's table refuses a request, or does not answer."""


class CatalogTable(Protocol):
    """A table of a catalog, which takes each change whole or not at all."""

    @property
    def name(self) -> str:
        """Catalog and name: `lake.shop.orders_wide`."""

    def read(self) -> TableVersion | None:
        """The newest version; None where there is no such table.

        Raises:
            CatalogFailed: the catalog refuses, or does not answer.
        """

    def create(
        self, folder: str, schema: str, field_name: str, properties: Mapping[str, str]
    ) -> None:
        """Make the table, without rows, unless it is there."""

    def commit(self, folder: str, base: TableVersion, change: TableChange) -> bool:
        """Commit a change, as a snapshot of the table; False if `base` is not the newest any more.

        Raises:
            HistoryIncompatible: the columns contradict those of the table; nothing is committed.
            PublicationError: the change cannot be made; nothing is committed.
            CommitOutcomeUnknown: it may be committed.
        """

    def forget(self, snapshots: Collection[int]) -> None:
        """Remove snapshots of the table, and no files."""

    def lists(self) -> frozenset[str]:
        """Names of the lists of files that the table needs."""

    def showing(self, files: Collection[str]) -> Mapping[int, frozenset[str]]:
        """Snapshots that show some files of the folder, by id, with these files by key."""

    def rows(self, field_name: str) -> Mapping[str, int]:
        """Rows that the newest snapshot shows, by value of the partition column."""

    def register(self, place: str) -> None:
        """Take a table in by the URI of its metadata, unless there is one of this name."""

    def drop(self) -> None:
        """Take the table out of the catalog; its files stay."""


class TableLibrary(Protocol):
    """Writes files of Iceberg's formats, and commits nothing but to tables of catalogs."""

    def of_catalog(self, name: str) -> CatalogTable:
        """The table with this name, the catalog's included; `PublicationError` without catalog."""

    def created(self, folder: str, schema: str, field_name: str) -> bytes:
        """First version of a table, without rows; the schema has only the partition column."""

    def changed(self, folder: str, number: int, change: TableChange) -> bytes | None:
        """Make the version after `number`; None where that is not the newest any more.

        Raises:
            HistoryIncompatible: the columns contradict those of the table.
        """

    def lists(self, folder: str, number: int) -> frozenset[str] | None:
        """Names of the lists of files that a version needs; None where it is not the newest."""


class IcebergTable:
    """The versions of one table."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._log = NumberedLog(store, version_key, TABLE_VERSION.length, CommitOutcomeUnknown)

    def read(self) -> TableVersion | None:
        """The newest version; None before the first, `ManifestCorrupt` if it is invalid."""
        number = self._newest(self._hint())
        if not number:
            matches = (_VERSION.fullmatch(info.key) for info in self.store.list(VERSIONS))
            number = self._newest(max((int(match[1]) for match in matches if match), default=0))
        if not number:
            return None
        key = version_key(number)
        name = f"{self.store.uri}{key}"
        document = parse_object(get_bounded(self.store, key, TABLE_VERSION), name, TABLE_VERSION)
        _refuse_elsewhere(document, name, self.store.uri)
        return TableVersion(number, document)

    def append(self, number: int, document: bytes) -> bool:
        """Publish a document as the next version; False if another writer's has its number.

        A writer that read the table long ago may take the number of a version that is gone by now:
        what is published is what the newest version lists.

        Raises:
            CommitOutcomeUnknown: the store stopped answering; reading again finds out.
            FolderNotWritable: the store refuses it.
        """
        is_written = self._log.append(number, document)
        if is_written:
            try:
                if self._hint() < number:
                    self.store.put(HINT, str(number).encode())
                self.store.delete([version_key(number - KEPT_VERSIONS)])
            except STORE_FAILURES as error:
                _log.warning("no hint for version %d of the table: %s", number, error.message)
        return is_written

    def revoke(self, run_ids: frozenset[str], now: EpochNanos) -> None:
        """Keep runs from committing to the table any more."""
        while (version := self.read()) is not None and not run_ids <= version.revoked:
            revoked = {REVOKED: " ".join(sorted(version.revoked | run_ids))}
            document = next_document(version, self.store.uri, revoked, now // NANOS_PER_MILLISECOND)
            self.append(version.number + 1, json.dumps(document).encode())

    def _hint(self) -> int:
        try:
            recorded = get_bounded(self.store, HINT, HINT_BOUNDS).strip()
        except (ObjectNotFound, ObjectTooLarge):
            return 0
        return int(recorded) if _HINTED.fullmatch(recorded) else 0

    def _newest(self, number: int) -> int:
        if not number or self.store.head(version_key(number)) is None:
            return 0
        while self.store.head(version_key(number + 1)) is not None:
            number += 1
        return number


def next_document(
    version: TableVersion, uri: str, properties: Mapping[str, str], now: int
) -> Mapping[str, JsonValue]:
    """Next version with changed properties; its time, in milliseconds, is never before the last.

    Raises:
        PublicationError: as `refuse_moved`.
    """
    refuse_moved(version, uri)
    before = version.document
    recorded = before.get("last-updated-ms")
    at = recorded if isinstance(recorded, int) else now
    log = before.get("metadata-log")
    here: JsonValue = {"timestamp-ms": at, "metadata-file": f"{uri}{version_key(version.number)}"}
    return {
        **before,
        "last-updated-ms": max(at, now),
        "properties": {**_texts(before.get("properties")), **properties},
        "metadata-log": [*(log if isinstance(log, list) else []), here],
    }


def refuse_moved(version: TableVersion, uri: str) -> None:
    """Refuse to put a version after the last one of a table that has moved to a catalog."""
    if (moved := version.properties.get(MOVED)) is not None:
        raise PublicationError(
            f"the table of {uri} has moved to a catalog, and is not written to any more",
            path="spec.outputFolder.table",
            found=f"the declaration by which it is in the folder, and its move to {visible(moved)}",
            expected=f"a declaration by which it is {visible(moved)}",
            hint="declare that table and run again; a move that was interrupted is ended by "
            "'snaploom migrate'",
        )


def refuse_foreign_places(store: ObjectStore) -> None:
    """Refuse a table whose files Iceberg's library may not open: it takes them by their paths.

    Raises:
        NotAPlainFile: one of them, or a folder on its way, is a link (local disks only).
        ManifestCorrupt: the newest version names places elsewhere, or classes.
    """
    IcebergTable(store).read()
    refuse_links(store, [info.key for info in list(store.list(VERSIONS))])


def is_below(place: str, folder: str) -> bool:
    """Whether a location, as Iceberg writes them, is in a folder, and climbs nowhere."""
    path, root = _without_slashes(place), _without_slashes(folder)
    return path.startswith(f"{root.rstrip('/')}/") and ".." not in path.split("/")


def _without_slashes(uri: str) -> str:
    """A URI as Hadoop's paths print it: `file:/x`, `file:///x` and `/x` are one place.

    `//x/y` and `file://x/y` are not: there `x` is a host.
    """
    local = re.match(r"(?:file:)?/(?!/)|(?:file:)?//(?=/)/+", uri)
    return f"/{uri[local.end() :]}" if local else uri


def number_of(snapshot: Mapping[str, JsonValue]) -> int | None:
    """Identity of a snapshot of the table; None where it has none."""
    found = snapshot.get("snapshot-id")
    return found if isinstance(found, int) else None


_PLACES = frozenset({
    "location", "manifest-list", "manifests", "metadata-file", "statistics-path", "key-metadata",
})  # fmt: skip
_PROPERTIES = re.compile(
    r"snaploom\.[a-z-]+|schema\.name-mapping\.default|owner|comment"
    r"|gc\.enabled|history\.expire\.[a-z-]+|commit\.[a-z.-]+|read\.[a-z.-]+"
    r"|write\.(parquet|update|delete|merge|metadata)\.[A-Za-z0-9_.-]+"
    r"|write\.(format\.default|distribution-mode|target-file-size-bytes|upsert\.enabled)"
)
"""Properties of a table that name no class and no place; what is not known is refused."""
_NAMED = frozenset({"write.metadata.path"})


def _refuse_elsewhere(document: Mapping[str, JsonValue], name: str, uri: str) -> None:
    properties = _texts(document.get("properties"))
    unknown = [k for k in properties if not _PROPERTIES.fullmatch(k) or k in _NAMED]
    if unknown:
        raise corrupt(name, f"the table property {min(unknown)}, which is not on the list")
    waiting: list[JsonValue] = [value for key, value in document.items() if key != "properties"]
    waiting.append({key: value for key, value in document.items() if key in _PLACES})
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
            for place in (value[key] for key in value.keys() & _PLACES):
                listed = place if isinstance(place, list) else [place]
                for one in listed:
                    if not isinstance(one, str) or not is_below(f"{one}/", f"{uri}{TABLE}"):
                        raise corrupt(name, f"a place that is not the table's: {str(one)[:200]}")


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    listed = value if isinstance(value, list) else []
    return [one for one in listed if isinstance(one, dict)]


def _texts(value: JsonValue) -> dict[str, str]:
    return {k: str(v) for k, v in value.items()} if isinstance(value, dict) else {}

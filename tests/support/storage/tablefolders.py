"""Output folders with a table, of Iceberg by a stand-in for its library, or of Delta.

So does one for a catalog, which keeps its tables as numbered documents in the output's store: a
store that dies takes its catalog along.
"""

import json
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from support.storage.faultystore import FaultyStore
from support.storage.folders import IDENTITY, SETTINGS, a_run, a_target, agrees, keys, writes

from snaploom.errors import ObjectAlreadyExists
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.output import layout
from snaploom.output.deltatable import delta_key
from snaploom.output.entries import FolderSettings
from snaploom.output.folder import Folder, Run, open_folder, prepare_folder
from snaploom.output.icebergtable import (
    VERSIONS,
    IcebergTable,
    TableChange,
    TableVersion,
)
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.publication import AlreadyPublished, Published, WriteResult, publish

CATALOG = "catalog/"


def catalog_key(number: int) -> str:
    """Key of a version of a table of the catalog."""
    return f"{CATALOG}v{number}.metadata.json"


def changed_document(
    store: ObjectStore, before: Mapping[str, Any], change: TableChange
) -> dict[str, Any]:
    """The next document of a table, whose list of files is written."""
    document: dict[str, Any] = dict(before)
    files = {k: v for k, v in document.get("files", {}).items() if k not in change.ended}
    for value, records in change.added.items():
        assert value not in files, "a partition holds one snapshot"
        files[value] = [record.path for record in records]
    snapshot = {
        "snapshot-id": secrets.randbits(60),
        "parent-snapshot-id": document.get("current-snapshot-id"),
        "summary": dict(change.summary),
        "files": files,
    }
    store.put_if_absent(f"{VERSIONS}{snapshot['snapshot-id']}.avro", b"files")
    document["files"] = files
    document["snapshots"] = [*document.get("snapshots", []), snapshot]
    document["current-snapshot-id"] = snapshot["snapshot-id"]
    return document


@dataclass
class PlainCatalogTable:
    """`CatalogTable` by the compare-and-swap of a store."""

    store: ObjectStore
    name: str
    before: Callable[[], None] = lambda: None

    def read(self) -> TableVersion | None:
        numbers = self._numbers()
        if not numbers:
            return None
        return TableVersion(0, json.loads(self.store.get(catalog_key(numbers[-1]))))

    def create(
        self, folder: str, schema: str, field_name: str, properties: Mapping[str, str]
    ) -> None:
        self._put(1, {"properties": dict(properties)})

    def commit(self, folder: str, base: TableVersion, change: TableChange) -> bool:
        number, found = self._numbers()[-1], self.read()
        if found.newest != base.newest:
            return False
        document = changed_document(self.store, found.document, change)
        document["properties"] = {**found.properties, **change.properties}
        self.before()
        try:
            return self._put(number + 1, document)
        except STORE_FAILURES as error:
            raise CommitOutcomeUnknown("the catalog does not answer") from error

    def forget(self, snapshots: Collection[int]) -> None:
        found = self.read()
        kept = [one for one in found.lineage() if one["snapshot-id"] not in snapshots]
        self._put(self._numbers()[-1] + 1, {**found.document, "snapshots": [*reversed(kept)]})

    def lists(self) -> frozenset[str]:
        found = self.read()
        return frozenset(f"{one['snapshot-id']}.avro" for one in found.lineage())

    def showing(self, files: Collection[str]) -> Mapping[int, frozenset[str]]:
        found = self.read()
        shown = {
            one["snapshot-id"]: frozenset(files) & {key for kept in one.get("files", {}).values()
                                                    for key in kept}
            for one in found.document.get("snapshots", [])
        }  # fmt: skip
        return {number: keys for number, keys in shown.items() if keys}

    def rows(self, field_name: str) -> Mapping[str, int]:
        """Ten in each file, as `writes` has it."""
        return {value: 10 * len(files) for value, files in files_of_table(self.store).items()}

    def register(self, place: str) -> None:
        self.before()
        self._put(1, json.loads(self.store.get(place.removeprefix(self.store.uri))))

    def drop(self) -> None:
        self.store.delete([catalog_key(number) for number in self._numbers()])

    def _numbers(self) -> list[int]:
        found = (info.key.partition(".")[0] for info in self.store.list(CATALOG))
        return sorted(int(key.removeprefix(f"{CATALOG}v")) for key in found)

    def _put(self, number: int, document: Mapping[str, Any]) -> bool:
        try:
            self.store.put_if_absent(catalog_key(number), json.dumps(document).encode())
        except ObjectAlreadyExists:
            return False
        return True


class PlainLibrary:
    """`TableLibrary` that keeps the files of the table in its document, by partition."""

    def __init__(self, store: ObjectStore, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called before each change is made, where rivals may come in between."""
        self.store = store
        self.before = before

    def of_catalog(self, name: str) -> PlainCatalogTable:
        return PlainCatalogTable(self.store, name, self.before)

    def created(self, folder: str, schema: str, field_name: str) -> bytes:
        return json.dumps({"uuid": secrets.token_hex(8), "properties": {}}).encode()

    def changed(self, folder: str, number: int, change: TableChange) -> bytes | None:
        version = IcebergTable(self.store).read()
        if version.number != number:
            return None
        document = changed_document(self.store, version.document, change)
        self.before()
        return json.dumps(document).encode()

    def lists(self, folder: str, number: int) -> frozenset[str] | None:
        version = IcebergTable(self.store).read()
        return frozenset(f"{one['snapshot-id']}.avro" for one in version.lineage())


class InterruptedStore(FaultyStore):
    """Calls `before` in front of each version of a Delta table but the first."""

    def __init__(self, inner: ObjectStore, before: Callable[[], None]) -> None:
        super().__init__(inner)
        self.before = before

    def put_if_absent(self, key: str, data: bytes) -> None:
        if key.startswith(layout.DELTA_LOG) and key != delta_key(1):
            self.before()
        super().put_if_absent(key, data)


def versions(store: ObjectStore) -> list[str]:
    """Keys of the versions of the table."""
    places = (VERSIONS, CATALOG, layout.DELTA_LOG)
    return [key for place in places for key in keys(store, place) if key.endswith(".json")]


def data_files(store: ObjectStore) -> set[str]:
    """Keys of all data files."""
    return keys(store) - keys(store, layout.DELTA_LOG)


def delta_actions(store: ObjectStore) -> list[dict[str, Any]]:
    """All actions of a Delta table, the oldest first."""
    documents = (store.get(key) for key in sorted(keys(store, layout.DELTA_LOG)))
    return [json.loads(line) for document in documents for line in document.splitlines()]


def files_of_table(store: ObjectStore) -> Mapping[str, list[str]]:
    """Files in the newest version, by value of the partition column."""
    if TABLE.data_format == "DELTA":
        live: dict[str, str] = {}
        for action in delta_actions(store):
            if "add" in action:
                (live[action["add"]["path"]],) = action["add"]["partitionValues"].values()
            live.pop(action.get("remove", {}).get("path"), None)
        found: dict[str, list[str]] = {}
        for path, value in live.items():
            found.setdefault(value, []).append(f"data/{unquote(path)}")
        return found
    version = PlainCatalogTable(store, "").read() or IcebergTable(store).read()
    files: Any = version.document.get("files", {})
    return dict(files)


TABLE = SETTINGS.model_copy(update={"data_format": "ICEBERG"})
DELTA = SETTINGS.model_copy(update={"data_format": "DELTA"})
OF_CATALOG = TABLE.model_copy(update={"table": "lake.shop.wide"})
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def table_folder(
    store: ObjectStore,
    before: Callable[[], None] = lambda: None,
    run: Run | None = None,
    settings: FolderSettings | None = None,
) -> Folder:
    """A folder to publish into; `before` is called before each change of the table is made."""
    library, chosen = PlainLibrary(store, before), settings or TABLE
    store = InterruptedStore(store, before) if chosen.data_format == "DELTA" else store
    return prepare_folder(store, chosen, IDENTITY, run or a_run(), library=library)


def opened(store: ObjectStore, before: Callable[[], None] = lambda: None) -> Folder:
    """A folder that is there."""
    inner = InterruptedStore(store, before) if TABLE.data_format == "DELTA" else store
    return open_folder(inner, PlainLibrary(store, before))


def woven(folder: Folder, schema: str = SCHEMA) -> Callable[[str], WriteResult]:
    """A writer of files with some columns."""

    def write(uri: str) -> WriteResult:
        return WriteResult(rows=writes(folder.store)(uri).rows, schema=schema)

    return write


def published_in_table(
    folder: Folder, number: int, run: Run | None = None, schema: str = SCHEMA
) -> Published | AlreadyPublished:
    """Publish the snapshot of a day."""
    return publish(folder, run or a_run(), a_target(number), woven(folder, schema), agrees)


def is_whole(store: ObjectStore) -> bool:
    """Whether table and log list the same files, all of which exist."""
    state = open_folder(store, PlainLibrary(store)).read()
    listed = {
        record.partition.partition("=")[2]: [file.path for file in record.files]
        for record in state.snapshots
    }
    there = set(keys(store, "data/"))
    return (
        listed == files_of_table(store) and {f for files in listed.values() for f in files} <= there
    )

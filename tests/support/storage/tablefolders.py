"""Output folders with an Iceberg table, whose versions a stand-in for Iceberg's library makes."""

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from support.storage.folders import IDENTITY, SETTINGS, a_run, a_target, agrees, keys, writes

from snaploom.files.objectstore import ObjectStore
from snaploom.output.folder import Folder, Run, open_folder, prepare_folder
from snaploom.output.icebergtable import VERSIONS, IcebergTable, TableChange
from snaploom.output.publication import AlreadyPublished, Published, WriteResult, publish


class PlainLibrary:
    """`TableLibrary` that keeps the files of the table in its document, by partition."""

    def __init__(self, store: ObjectStore, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called before each change is made, where rivals may come in between."""
        self.store = store
        self.before = before

    def created(self, folder: str, schema: str, field_name: str) -> bytes:
        return json.dumps({"uuid": secrets.token_hex(8), "properties": {}}).encode()

    def changed(self, folder: str, number: int, change: TableChange) -> bytes | None:
        version = IcebergTable(self.store).read()
        assert version is not None
        if version.number != number:
            return None
        document: dict[str, Any] = dict(version.document)
        files = {k: v for k, v in document.get("files", {}).items() if k not in change.ended}
        for value, records in change.added.items():
            assert value not in files, "a partition holds one snapshot"
            files[value] = [record.path for record in records]
        snapshot = {
            "snapshot-id": secrets.randbits(60),
            "parent-snapshot-id": document.get("current-snapshot-id"),
            "summary": dict(change.summary),
        }
        self.store.put_if_absent(f"{VERSIONS}{snapshot['snapshot-id']}.avro", b"files")
        document["files"] = files
        document["snapshots"] = [*document.get("snapshots", []), snapshot]
        document["current-snapshot-id"] = snapshot["snapshot-id"]
        self.before()
        return json.dumps(document).encode()

    def lists(self, folder: str, number: int) -> frozenset[str] | None:
        version = IcebergTable(self.store).read()
        assert version is not None
        return frozenset(f"{one['snapshot-id']}.avro" for one in version.lineage())


def files_of_table(store: ObjectStore) -> Mapping[str, list[str]]:
    """Files in the newest version, by value of the partition column."""
    version = IcebergTable(store).read()
    assert version is not None
    files: Any = version.document.get("files", {})
    return dict(files)


TABLE = SETTINGS.model_copy(update={"data_format": "ICEBERG"})
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def table_folder(
    store: ObjectStore, before: Callable[[], None] = lambda: None, run: Run | None = None
) -> Folder:
    """A folder to publish into; `before` is called before each change of the table is made."""
    library = PlainLibrary(store, before)
    return prepare_folder(store, TABLE, IDENTITY, run or a_run(), library=library)


def woven(folder: Folder) -> Callable[[str], WriteResult]:
    """A writer of files with a column."""

    def write(uri: str) -> WriteResult:
        return WriteResult(rows=writes(folder.store)(uri).rows, schema=SCHEMA)

    return write


def published_in_table(
    folder: Folder, number: int, run: Run | None = None
) -> Published | AlreadyPublished:
    """Publish the snapshot of a day."""
    return publish(folder, run or a_run(), a_target(number), woven(folder), agrees)


def is_whole(store: ObjectStore) -> bool:
    """Whether table and log list the same files, all of which exist."""
    state = open_folder(store).read()
    listed = {
        record.partition.partition("=")[2]: [file.path for file in record.files]
        for record in state.snapshots
    }
    there = set(keys(store, "data/"))
    return (
        listed == files_of_table(store) and {f for files in listed.values() for f in files} <= there
    )

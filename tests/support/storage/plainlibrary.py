"""A library of tables without Iceberg: versions are JSON that names files, with Iceberg's keys."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from snaploom.files.objectstore import ObjectStore
from snaploom.output.icebergtable import VERSIONS, IcebergTable, TableChange


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

"""Whether a table of Iceberg's has a version, by its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.declared.sources import READ_TIME, by_field, files, without_spark

from snaploom.files.listed import SparkNeeded
from snaploom.plan.intervals import READ_TIME as AS_OF_NOW
from snaploom.plan.intervals import SourceSnapshots

FULL: dict[str, Any] = {
    "format-version": 2, "current-snapshot-id": 7, "refs": {"main": {"snapshot-id": 7}},
}  # fmt: skip


def version(folder: Path, number: int, **changes: Any) -> Path:
    place = folder / "metadata"
    place.mkdir(exist_ok=True)
    path = place / f"v{number}.metadata.json"
    path.write_text(json.dumps({**FULL, **changes}))
    hint = place / "version-hint.text"
    if not hint.exists():
        hint.write_text(str(number))
    return path


def declared(folder: Path, **settings: Any) -> dict[str, Any]:
    return files("iceberg", f"file://{folder}", **settings)


EMPTY = {"current-snapshot-id": -1, "refs": {}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, AS_OF_NOW),
        ({"refs": None}, AS_OF_NOW),
        (EMPTY, SourceSnapshots()),
        ({"current-snapshot-id": None, "refs": {}}, SourceSnapshots()),
    ],
    ids=["versions", "format version 1", "no version", "none at all"],
)
def test_table_is_one_snapshot_once_it_has_a_version(tmp_path, document, expected) -> None:
    version(tmp_path, 3, **document)
    assert without_spark(declared(tmp_path, snapshot=READ_TIME)) == expected


def test_newest_document_counts_where_the_hint_is_behind(tmp_path) -> None:
    for number, changes in ((1, EMPTY), (2, EMPTY), (3, {})):
        version(tmp_path, number, **changes)
    assert without_spark(declared(tmp_path, snapshot=READ_TIME)) == AS_OF_NOW


def without_hint(folder: Path) -> None:
    (folder / "metadata/version-hint.text").unlink()


def odd_hint(folder: Path) -> None:
    (folder / "metadata/version-hint.text").write_text("00000-abc")


def hint_ahead(folder: Path) -> None:
    (folder / "metadata/version-hint.text").write_text("9")


def compressed(folder: Path) -> None:
    (folder / "metadata/v2.gz.metadata.json").write_bytes(b"")


def no_json(folder: Path) -> None:
    (folder / "metadata/v1.metadata.json").write_text("{")


def no_table(folder: Path) -> None:
    (folder / "metadata/v1.metadata.json").write_text("{}")


def contradiction(folder: Path) -> None:
    version(folder, 1, refs={})


@pytest.mark.parametrize(
    "change", [without_hint, odd_hint, hint_ahead, compressed, no_json, no_table, contradiction]
)
def test_odd_folder_is_left_to_the_library_of_iceberg(tmp_path, change) -> None:
    version(tmp_path, 1)
    change(tmp_path)
    with pytest.raises(SparkNeeded):
        without_spark(declared(tmp_path, snapshot=READ_TIME))


@pytest.mark.parametrize(
    "spec",
    [
        files("iceberg", "lake.db.levels"),
        files("iceberg", "/a/path/without/scheme"),
        files("iceberg", "file:///table", snapshot=by_field("day", "ISO8601_DATE")),
        files("delta", "file:///table"),
    ],
    ids=["name in a catalog", "no scheme", "snapshots by a column", "delta"],
)
def test_other_tables_are_left_to_spark(spec) -> None:
    assert without_spark(spec) is None


def test_table_on_another_store_is_left_to_spark() -> None:
    with pytest.raises(SparkNeeded):
        without_spark(files("iceberg", "hdfs://host/table"))

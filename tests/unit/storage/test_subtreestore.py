"""Checkpoints of subtrees: believed only as they were written, by the same versions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from snaploom.files.local import LocalObjectStore
from snaploom.output.caches import SubtreeStore

NAME = "a" * 64
OTHER = "b" * 64
RUN = "20240101T000000000Z-0123456789ab"


def opened(place: Path, version: str = "1") -> SubtreeStore:
    return SubtreeStore(LocalObjectStore(place, create=True), (version, "4"))


def written(place: Path, name: str = NAME) -> Path:
    """A subtree of one file; the file."""
    store = opened(place)
    uri = store.folder(name, RUN)
    file = Path(uri.removeprefix("file://")) / "part-0.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"rows")
    (file.parent / "_SUCCESS").write_bytes(b"")
    store.commit(name, uri, "{}", {(1, True): {"rows": 3}})
    return file


def test_subtree_is_found_with_its_counts_and_files(tmp_path: Path) -> None:
    file = written(tmp_path)
    found = opened(tmp_path).find(NAME)
    assert [(c.number, c.is_out, c.counts) for c in found.counts] == [(1, True, {"rows": 3})]
    assert [tmp_path / item.path for item in found.files] == [file]
    assert opened(tmp_path).find(OTHER) is None


@pytest.mark.parametrize("fault", ["version", "size", "absent", "signature", "format", "damaged"])
def test_subtree_that_is_not_as_it_was_written_is_not_believed(tmp_path: Path, fault: str) -> None:
    file, document = written(tmp_path), tmp_path / f"{NAME}.json"
    content = json.loads(document.read_text("utf-8"))
    match fault:
        case "size":
            file.write_bytes(b"more rows")
        case "absent":
            file.unlink()
        case "signature" | "format":
            content[fault] = 2 if fault == "format" else OTHER
            document.write_text(json.dumps(content), "utf-8")
        case "damaged":
            document.write_text("{", "utf-8")
    assert opened(tmp_path, "2" if fault == "version" else "1").find(NAME) is None


def test_second_writer_removes_its_own_files(tmp_path: Path) -> None:
    first, second = written(tmp_path), written(tmp_path)
    assert (first.exists(), second.exists()) == (True, False)
    first.unlink()
    assert opened(tmp_path).find(NAME) is None
    third = written(tmp_path)
    assert [tmp_path / file.path for file in opened(tmp_path).find(NAME).files] == [third]


def test_what_no_run_took_is_removed_and_nothing_else(tmp_path: Path) -> None:
    old, new = written(tmp_path), written(tmp_path, OTHER)
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    for path in tmp_path.rglob("*"):
        if NAME in str(path) or path.name == "notes.txt":
            os.utime(path, (0, 0))
    assert opened(tmp_path).remove_unused() == 1
    assert (old.exists(), new.exists(), (tmp_path / "notes.txt").exists()) == (False, True, True)
    assert opened(tmp_path).find(OTHER) is not None
    assert opened(tmp_path).remove_unused() == 0

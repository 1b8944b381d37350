"""Copies of a folder during publications, in the order of the page about backups, are whole."""

import re
import subprocess
from itertools import count
from pathlib import Path

import pytest
from support.documentation.pages import DOCS, blocks_of, commands_of
from support.storage.folders import START, a_folder, a_run, published

from snaploom.errors import ManifestCorrupt
from snaploom.files.local import LocalObjectStore
from snaploom.output.folder import open_folder
from snaploom.output.foldercheck import Fault, check_files, check_log

PAGE = DOCS / "operating" / "backup.md"


def order_of_the_page() -> list[str]:
    commands = [c.text for b in blocks_of(PAGE) if b.language == "console" for c in commands_of(b)]
    copies = [text for text in commands if text.startswith("cp -r ")]
    return [name for text in copies for name in re.findall(r"my-model/wide/([\w./]+)", text)]


def copied(order: list[str], folder: Path) -> LocalObjectStore:
    """A copy in steps, before each of which a snapshot is published."""
    source, target = folder / "out", folder / "copy"
    opened = a_folder(LocalObjectStore(source, create=True))
    (target / "metadata").mkdir(parents=True)
    for number, name in zip(count(), order, strict=False):
        published(opened, number, a_run(start=START + number * 3_600_000_000_000))
        command = ["cp", "-r", str(source / name), str((target / name).parent)]
        subprocess.run(command, check=True)
    return LocalObjectStore(target, create=False)


def faults(store: LocalObjectStore) -> list[Fault]:
    state = open_folder(store).log.read()
    assert state.live
    return [*check_log(store), *check_files(store, state)]


def test_a_copy_is_whole_whatever_is_published_meanwhile(tmp_path: Path) -> None:
    assert faults(copied(order_of_the_page(), tmp_path)) == []


def test_data_before_what_names_it_is_not_enough(tmp_path: Path) -> None:
    assert faults(copied(["data", *order_of_the_page()[:-1]], tmp_path)) != []


def test_a_hint_newer_than_the_entries_is_an_error(tmp_path: Path) -> None:
    order = [*order_of_the_page(), "metadata/_latest"]
    with pytest.raises(ManifestCorrupt):
        faults(copied(order, tmp_path))


def test_the_page_leaves_out_hints() -> None:
    *metadata, marker, data = order_of_the_page()
    assert metadata == ["metadata/manifest", "metadata/schema", "metadata/datamodel"]
    assert (marker, data) == ("snaploom.json", "data")

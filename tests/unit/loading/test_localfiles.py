"""Files of a folder that anybody may have filled: pipes hold up nobody, links lead nowhere."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.cli.main import run_command
from snaploom.errors import SnaploomError
from snaploom.extras import plugged
from snaploom.loading.load import load
from snaploom.localfiles import open_plain, write_file
from snaploom.models.report import Report
from snaploom.models.schemas import EDITOR_SCHEMA_FILE, write_crds, write_schemas
from snaploom.run.declarations import read_bundle_file
from snaploom.run.driverlock import LOCK_FILE, read_lock, write_lock
from snaploom.run.reports.writer import FileReport

NAME = "a.yaml"


def bound_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)
    os.chdir(here)


def pipe_behind_a_link(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


OTHERS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "link to a pipe": pipe_behind_a_link,
    "socket": bound_socket,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
}


def pages() -> ModuleType:
    """The module of the plug-in that draws pages; an error where there is none."""
    return sys.modules[plugged("snaploom.project", "page", "pages").__module__]


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "Bundle": ("bundle.json", read_bundle_file),
    "log of queries": (
        "log", lambda file: refused_by("index", "advise", str(file.parent), "--log", str(file)),
    ),
    "lock of drivers": (LOCK_FILE, read_lock),
    "page": ("index.html", lambda file: pages().write_site(file.parent, {file.name: ""})),
    "Report": ("report.json", lambda file: pages().read_reports([file])),
}  # fmt: skip
WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "file": ("file", lambda file: write_file(file, "new")),
    "kinds": ("datasources.snaploom.io.yaml", lambda file: write_crds(file.parent)),
    "lock of drivers": (LOCK_FILE, lambda file: write_lock(file, {})),
    "Report": ("report.json", lambda file: FileReport(file).write(Report.model_construct())),
    "schema": (EDITOR_SCHEMA_FILE, lambda file: write_schemas(file.parent)),
}


def refused_by(*command: str) -> None:
    if run_command([*command]) != 0:
        raise OSError


@pytest.mark.parametrize("other", OTHERS)
def test_only_plain_files_are_declarations(tmp_path: Path, other: str) -> None:
    OTHERS[other](tmp_path / NAME)
    for path in (tmp_path, tmp_path / NAME):
        findings = load([path]).findings
        assert [each.code for each in findings] == ["SL101"]
        assert "no plain file" in findings[0].found or "link" in findings[0].found


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("reader", READERS)
def test_nothing_but_a_plain_file_is_read(tmp_path: Path, reader: str, other: str) -> None:
    name, read = READERS[reader]
    OTHERS[other](tmp_path / name)
    with pytest.raises((SnaploomError, OSError)):
        read(tmp_path / name)


def test_link_to_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("text")
    (tmp_path / "here").symlink_to("there")
    with open_plain(tmp_path / "here") as stream:
        assert stream.read() == b"text"


@pytest.mark.parametrize("writer", WRITERS)
def test_no_link_is_followed_where_something_is_written(tmp_path: Path, writer: str) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    mine.write_text("mine")
    name, write = WRITERS[writer]
    for taken in (name, f".{name}.tmp", f".{name}.{os.getpid()}"):
        (theirs / taken).symlink_to(mine)
    write(theirs / name)
    assert mine.read_text() == "mine"
    assert not (theirs / name).is_symlink()


@given(before=st.one_of(st.none(), st.binary()), after=st.binary())
def test_file_that_is_replaced_keeps_its_permissions(
    tmp_path_factory: pytest.TempPathFactory, before: bytes | None, after: bytes
) -> None:
    file = tmp_path_factory.mktemp("folder") / "file"
    if before is not None:
        file.write_bytes(before)
        file.chmod(0o640)
    write_file(file, after, is_durable=True)
    assert (file.read_bytes(), [*file.parent.iterdir()]) == (after, [file])
    assert before is None or file.stat().st_mode & 0o777 == 0o640


def test_file_that_cannot_be_written_in_full_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path / "folder", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]

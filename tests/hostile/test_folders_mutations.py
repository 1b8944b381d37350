"""Every command and reader on many hostile output folders.

A good folder is changed in one place, as an attacker would: bytes, lengths, values, names, links,
pipes, devices, entries that name foreign files. Nothing outside changes, nothing is sent, memory
and time are bounded, and every end is success or one clear error. `make prove` tries thousands.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hostile.foldermutations import Outside, append, foreign_names, foreign_type, mutations
from support.hostile.folderoperations import (
    CHANGING,
    LONG_AGO,
    LOOKING,
    Place,
    declarations,
    enter,
    good_folder,
)
from support.runner.proofscope import IS_WHOLE
from support.storage.folders import a_run

from snaploom.files.stores import open_store
from snaploom.output.folder import open_folder

FOLDERS = 5000 if IS_WHOLE else 120
DEADLINE = 2 * 3600 if IS_WHOLE else 600
"""Seconds for all of them on a busy machine; they take 20 on an idle one."""


class Listener:
    """Counts connections to a loopback port."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()
    yield listening
    listening.close()


@pytest.fixture
def canaries(tmp_path: Path) -> Path:
    """A folder of somebody, whose names are like ours, and old."""
    folder = tmp_path / "canaries"
    run_id = a_run().run_id
    for name in (
        "precious.parquet",
        f"{run_id}/0123abcd/part-0",
        "x",
        f"day=1/{run_id}-0123abcd-0",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("theirs")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    foreign_type(Outside(folder, ""))  # leaves its module
    return folder


def contents(folder: Path) -> dict[str, tuple[float, bytes]]:
    return {
        str(path): (path.lstat().st_mtime, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *folder.rglob("*"))
    }


def test_no_hostile_folder_breaks_an_operation_or_reaches_outside(tmp_path, canaries, listener):
    before = contents(canaries)
    program = "support.hostile.folderbatch"
    ended = subprocess.run(
        [sys.executable, "-m", program, str(tmp_path), "15", str(FOLDERS), listener.address],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (ended.returncode, ended.stdout.splitlines()[:-1]) == (0, []), ended.stderr[-3000:]
    assert contents(canaries) == before
    assert listener.connections == 0


def test_operations_work_on_a_good_folder(tmp_path: Path) -> None:
    good_folder(tmp_path / "out")
    place = Place(tmp_path / "out", declarations(tmp_path, tmp_path / "out"))
    for name in (*LOOKING, "run", "retention", "gc", "delete"):
        operation = LOOKING.get(name) or CHANGING[name]
        enter(operation, place)
    assert not (tmp_path / "out/snaploom.json").exists()


def test_mutations_are_many_and_differ(tmp_path: Path) -> None:
    good_folder(tmp_path / "out")
    drawn = mutations(tmp_path / "out", Outside(tmp_path, "x"), 1)
    names = [next(drawn).name for _ in range(500)]
    assert len(set(names)) > 400
    assert {name.split()[0] for name in names} >= {"link", "pipe", "huge", "value", "forged"}


@pytest.mark.parametrize("name", foreign_names(Outside(Path("/canaries"), "127.0.0.1:1")))
def test_forged_revocation_and_tombstone_of_foreign_files_are_refused(tmp_path, name):
    good_folder(tmp_path / "out")
    append(tmp_path / "out", {"action": "revoke", "runIds": [name]})
    with pytest.raises(Exception, match="damaged") as caught:
        open_folder(open_store(str(tmp_path / "out"), create=False)).log.read()
    assert type(caught.value).__name__ == "ManifestCorrupt"

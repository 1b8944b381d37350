"""Folders of indexes that an enemy prepared: every command and every query ends, and that is all.

Good folders are mutated, hundreds of ways, and each is given to every command about indexes and to
what a query does, in a process with little memory (`support.hostile.indexworker`). Beside them are
another index and canaries, which must stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest
from support.hostile.indexfolders import Mutation, Place, make_good, mutations

PROVING = os.environ.get("SNAPLOOM_PROVE") == "1"
OF_BYTES, OF_JSON = (3000, 3000) if PROVING else (15, 15)
SEED = 20261123
SECONDS = 200
"""Longest time of one folder: ten commands, each of which ends itself after twenty seconds."""


class Worker:
    """The process that opens hostile folders; a new one when it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def judge(self, folder: Path) -> dict[str, object]:
        """What came of each command, or how the process died."""
        process = self._process or subprocess.Popen(
            [sys.executable, "-m", "support.hostile.indexworker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
        ready, _, _ = select([process.stdout], [], [], SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            found: dict[str, object] = json.loads(line)
            return found
        self.close()
        return {"died": f"{process.returncode}", "folder": str(folder)}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_good(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


def contents(folder: Path) -> str:
    """A hash of everything in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def beside(place: Place) -> dict[str, str]:
    """What is not the enemy's: the canaries, and in the base the neighbour with its directory."""
    mine = (place.index.name, ".snaploom-tmp")
    others = [path for path in place.base.iterdir() if path.name not in mine and path.is_dir()]
    return {path.name: contents(path) for path in [place.canaries, *others]}


def faults_of(mutation: Mutation, good: Place, worker: Worker, folder: Path) -> list[str]:
    """What happened that must not."""
    shutil.copytree(good.root, folder)
    place = Place(folder)
    mutation.change(place)
    before = beside(place)
    found = worker.judge(folder)
    faults = [f"{mutation.name}: {found}"] if "died" in found else []
    outcomes = found.get("outcomes", {})
    assert isinstance(outcomes, dict)
    for command, outcome in outcomes.items():
        if "CRASH" in outcome["ended"] or outcome["ended"] == "too slow":
            faults.append(f"{mutation.name}: {command}: {outcome}")
    if found.get("events"):
        faults.append(f"{mutation.name}: {found['events']}")
    if beside(place) != before:
        faults.append(f"{mutation.name}: what lies outside was changed")
    shutil.rmtree(folder)
    return faults


def test_a_good_folder_is_used_by_every_command(
    good: Place, worker: Worker, tmp_path: Path
) -> None:
    shutil.copytree(good.root, tmp_path / "copy")
    found = worker.judge(tmp_path / "copy")
    outcomes = found["outcomes"]
    assert isinstance(outcomes, dict)
    assert {name: each["ended"] for name, each in outcomes.items()} == {
        **dict.fromkeys(outcomes, "exit 0"),
        "query": "used",
        "import": "done",
        "refresh": "done",
    }
    assert found["events"] == []


@pytest.mark.timeout(7200 if PROVING else 600)
def test_no_hostile_folder_does_anything_but_fail(
    good: Place, worker: Worker, tmp_path: Path
) -> None:
    faults = [
        fault
        for number, mutation in enumerate(mutations(SEED, OF_BYTES, OF_JSON))
        for fault in faults_of(mutation, good, worker, tmp_path / str(number))
    ]
    assert faults == []

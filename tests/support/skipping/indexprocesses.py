"""Real processes that commit to an index, or refresh one and die on demand."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from support.skipping.faketarget import FakeTarget
from support.skipping.indexstores import committed, write

from snaploom.files.local import LocalObjectStore
from snaploom.skipping.lifecycle.operations import refresh
from snaploom.skipping.stores.folder import FolderIndexStore
from snaploom.skipping.stores.port import StoredState

SPAWN = multiprocessing.get_context("spawn")
DEADLINE = 120


def folder_store(root: Path) -> FolderIndexStore:
    return FolderIndexStore(LocalObjectStore(root, create=True))


def commit_many(root: Path, number: int, turns: int) -> None:
    store = folder_store(root)
    for turn in range(turns):
        committed(store, *write(store, {f"{number}-{turn}": (number, turn)}))


class DyingStore(FolderIndexStore):
    """Kills its process before or after a step of a refresh."""

    point = ""

    def write_rows(self, rows, definition):  # type: ignore[no-untyped-def]
        self._die("before rows")
        segments = super().write_rows(rows, definition)
        self._die("after rows")
        return segments

    def commit(self, build):  # type: ignore[no-untyped-def]
        state: StoredState = super().commit(build)
        self._die(f"after {state.phase.value}")
        return state

    def sweep(self, keep, older_than):  # type: ignore[no-untyped-def]
        self._die("before sweep")
        return super().sweep(keep, older_than)

    def _die(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


POINTS = ("after refreshing", "before rows", "after rows", "after active", "before sweep")
"""Steps at which a refresh can be killed, in order; the commit lies before the fourth."""


def refresh_and_die(root: Path, target: FakeTarget, point: str) -> None:
    store = DyingStore(LocalObjectStore(root, create=True))
    store.point = point
    refresh(store, target)

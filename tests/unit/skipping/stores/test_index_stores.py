"""The contract of index stores, over folders of several object stores."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from support.skipping.indexstores import URI
from support.skipping.indexstoresuite import *  # noqa: F403
from support.skipping.indexstoresuite import Fresh, Opener

from snaploom.skipping.stores.folder import FolderIndexStore, folder_name
from snaploom.storage.local import LocalObjectStore
from snaploom.storage.obstore_adapter import ObstoreObjectStore


@pytest.fixture(params=["local", "memory"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    numbers = itertools.count()

    def make() -> Opener:
        folder = f"{folder_name(URI)}/"
        if request.param == "local":
            root = tmp_path / str(next(numbers))
            return lambda: FolderIndexStore(LocalObjectStore(root, create=True), folder)
        memory = MemoryStore()
        return lambda: FolderIndexStore(ObstoreObjectStore(memory, "memory:///"), folder)

    return make

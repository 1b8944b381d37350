"""The stores that need no server."""

from pathlib import Path

import pytest
from support.storage.folders import a_folder

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output.folder import Folder


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path) if request.param == "local" else "memory:", create=True)


@pytest.fixture
def folder(store: ObjectStore) -> Folder:
    return a_folder(store)

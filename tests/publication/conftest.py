"""The stores that need no server."""

from pathlib import Path

import pytest

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """An empty place on each of them."""
    return open_store(str(tmp_path) if request.param == "local" else "memory:", create=True)

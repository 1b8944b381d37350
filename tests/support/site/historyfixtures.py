"""Histories of outputs that tests of pages share; nothing is needed for them."""

from pathlib import Path

import pytest
from support.site.histories import declarations, write_history


@pytest.fixture(scope="session")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with declarations of an output of 90 days, and its history."""
    folder = tmp_path_factory.mktemp("eventful")
    write_history(folder / "out", 90)
    declarations(folder, folder / "out")
    return folder

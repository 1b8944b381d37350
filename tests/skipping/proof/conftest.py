"""Files to prove something about, and the places in which indexes are kept."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.onequalsoff import FolderHome, IndexHome
from support.proofcases import ProofCase


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> ProofCase:
    """A folder for files, and one for indexes."""
    return ProofCase(spark, tmp_path)


@pytest.fixture(params=["folder"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> IndexHome:
    """A kind of place in which indexes are kept; every one must give the same answers."""
    return FolderHome(tmp_path)

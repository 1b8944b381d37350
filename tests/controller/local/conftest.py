"""A place for local runs: a cluster in memory, and a program that plays jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.operator.fakecluster import FakeCluster
from support.operator.localruns import LocalRuns


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[LocalRuns]:
    """Local runs over a cluster in memory; their processes are killed at the end."""
    place = LocalRuns(FakeCluster(), tmp_path)
    yield place
    place.kill_all()

"""Fixtures of the operator's tests: a cluster in memory, and a real one behind the same port."""

from collections.abc import AsyncIterator

import pytest
from support.fakecluster import FakeCluster

from snaploom_operator.cluster.port import Cluster


@pytest.fixture
def fake() -> FakeCluster:
    """A cluster in memory, with the namespace `default`."""
    return FakeCluster()


@pytest.fixture(params=["fake"])
def tier(request: pytest.FixtureRequest) -> str:
    """Which implementation of the port a test runs on."""
    return str(request.param)


@pytest.fixture
def room(tier: str, request: pytest.FixtureRequest) -> str:
    """A namespace for the test alone."""
    return "default" if tier == "fake" else str(request.getfixturevalue("namespace"))


@pytest.fixture
async def cluster(tier: str, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The port: over a cluster in memory, and over a real API server."""
    if tier == "fake":
        yield FakeCluster()

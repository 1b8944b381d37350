"""Fixtures of the operator's tests: a cluster in memory, and a real one behind the same port."""

import uuid
from collections.abc import AsyncIterator

import pytest
from support.cluster.cluster import Cluster as RealCluster
from support.cluster.sparkcrds import install_spark_crds
from support.operator.clusters import an_object
from support.operator.fakecluster import FakeCluster

from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import NAMESPACES, Cluster
from snaploom_operator.objects import Metadata


@pytest.fixture
def fake() -> FakeCluster:
    """A cluster in memory, with the namespace `default`."""
    return FakeCluster()


@pytest.fixture(params=["fake", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The port: over a cluster in memory, and over a real API server."""
    if request.param == "fake":
        yield FakeCluster()
        return
    async with open_cluster(request.getfixturevalue("control_plane").kubeconfig) as adapter:
        yield adapter


@pytest.fixture
async def own_namespace(cluster: Cluster) -> AsyncIterator[str]:
    name = f"test-{uuid.uuid4().hex[:12]}"
    created = await cluster.create(NAMESPACES, "", an_object(NAMESPACES, name))
    yield name
    await cluster.delete(NAMESPACES, "", name, uid=Metadata.of(created).uid)


@pytest.fixture(scope="session")
def spark_plane(control_plane: RealCluster) -> RealCluster:
    install_spark_crds(control_plane.kubectl)
    return control_plane

"""The operator over a real API server."""

from collections.abc import AsyncIterator

import pytest
from support.cluster.cluster import Cluster
from support.cluster.sparkcrds import install_spark_crds
from support.operator.operatorharness import RealHarness

from snaploom_operator.cluster.client import open_cluster


@pytest.fixture(scope="session")
def spark_plane(control_plane: Cluster) -> Cluster:
    """The cluster of all tests, with the kinds of Spark's operators."""
    install_spark_crds(control_plane.kubectl)
    return control_plane


@pytest.fixture
async def harness(spark_plane: Cluster, namespace: str) -> AsyncIterator[RealHarness]:
    """An operator that watches one namespace."""
    async with open_cluster(spark_plane.kubeconfig) as cluster:
        found = RealHarness(cluster, spark_plane.kubeconfig, namespace)
        await found.start()
        yield found
        await found.stop()

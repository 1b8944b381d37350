"""The operator over a real API server."""

from collections.abc import AsyncIterator

import pytest
from support.cluster.cluster import Cluster
from support.operator.operatorharness import RealHarness

from snaploom_operator.cluster.client import open_cluster


@pytest.fixture
async def harness(spark_plane: Cluster, namespace: str) -> AsyncIterator[RealHarness]:
    """An operator that watches one namespace."""
    async with open_cluster(spark_plane.kubeconfig) as cluster:
        found = RealHarness(cluster, spark_plane.kubeconfig, namespace)
        await found.start()
        yield found
        await found.stop()

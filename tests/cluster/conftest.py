"""Fixtures of the tests of CRDs."""

from collections.abc import Iterator

import pytest
from support.cluster.cluster import Cluster
from support.cluster.clusterapi import Judge


@pytest.fixture(scope="session")
def judge(control_plane: Cluster) -> Iterator[Judge]:
    """The API server, asked whether it would store objects."""
    found = Judge(control_plane.kubeconfig)
    yield found
    found.close()

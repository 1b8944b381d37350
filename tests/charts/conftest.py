"""A cluster of the chart's own: Helm brings our CRDs there, and takes them away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cluster.cluster import Cluster, running_control_plane


@pytest.fixture(scope="session")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane without our CRDs."""
    with running_control_plane(tmp_path_factory.mktemp("bare")) as plane:
        yield plane

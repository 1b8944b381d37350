"""A real API server for operators that are cut off, and clients that lose patience soon."""

import pytest
from support.cluster.cluster import Cluster
from support.cluster.sparkcrds import install_spark_crds

from snaploom_operator.cluster import requests

PATIENCE = 3.0


@pytest.fixture(scope="session")
def spark_plane(control_plane: Cluster) -> Cluster:
    """The cluster of all tests, with the kinds of Spark's operators."""
    install_spark_crds(control_plane.kubectl)
    return control_plane


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests without an answer are given up after seconds rather than half a minute."""
    monkeypatch.setattr(requests, "REQUEST_SECONDS", PATIENCE)

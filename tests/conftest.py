"""Fixtures that every folder of tests may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession
from support.databases import driver_jars
from support.sparksession import make_session

# The same examples in every run: what passed here passes there, and a failure can be seen again.
# `--hypothesis-profile=exploring` draws new ones, which is how faults are looked for.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "exploring", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repeatable")

pytest_plugins = ["support.clusterfixtures", "support.storefixtures", "support.databasefixtures"]

# Only the first compiler of the JVM, here and in processes that tests start: most plans of tests
# run once, and are over before the second compiler pays (a third of the processor time, measured
# over the proofs). Options of the user's go before.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


_OF_CLUSTERS = {"argo_cd", "chaos", "charts", "cluster", "controller", "gitops", "whole_way"}
"""Folders of tests that start servers of Kubernetes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a cluster come last: its servers would slow down the others."""
    items.sort(key=_needs_cluster)


def _needs_cluster(item: pytest.Item) -> bool:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return folder in _OF_CLUSTERS or "control_plane" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process; starting it takes seconds."""
    drivers = {"spark.driver.extraClassPath": f"{driver_jars()}/*"}
    session = make_session(tmp_path_factory.mktemp("spark"), drivers)
    yield session
    session.stop()

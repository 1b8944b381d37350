"""Fixtures that every folder of tests may use."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.sparksession import make_session

pytest_plugins = ["support.clusterfixtures"]

# Only the first compiler of the JVM, here and in processes that tests start: most plans of tests
# run once, and are over before the second compiler pays (a third of the processor time, measured
# over the proofs). Options of the user's go before.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process; starting it takes seconds."""
    session = make_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()

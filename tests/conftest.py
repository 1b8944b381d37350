"""Fixtures that every folder of tests may use."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.sparksession import make_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process; starting it takes seconds."""
    session = make_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()

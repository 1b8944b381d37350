"""The Spark session of all tests of a process; it is started when a test first asks for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.servers.databases import driver_jars
from support.weaving.sparksession import make_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process; starting it takes seconds."""
    drivers = {"spark.driver.extraClassPath": f"{driver_jars()}/*"}
    session = make_session(tmp_path_factory.mktemp("spark"), drivers)
    yield session
    session.stop()

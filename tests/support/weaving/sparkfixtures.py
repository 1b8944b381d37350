"""The Spark session of all tests of a process; it is started when a test first asks for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.documentation.examples import Shell
from support.documentation.sharedprogram import shell_with
from support.servers.databases import driver_jars
from support.weaving.sparksession import make_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process; starting it takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        # Behind Spark's own jars: before them, where `spark.driver.extraClassPath` puts its jars,
        # the archive of classes would not fit.
        patch.setenv("SPARK_DIST_CLASSPATH", f"{driver_jars()}/*")
        session = make_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_shell(spark: SparkSession) -> Shell:
    """A shell whose `snaploom` works in this process, with its Spark."""
    return shell_with(spark)

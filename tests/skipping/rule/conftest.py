"""The rule, installed in the tests' session with a decider that goes by the names of files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import SETTINGS, KeepNamed, SetConf, Truthful, write_parts

from snaploom.skipping.spark.optimizer import requests


@pytest.fixture(scope="session")
def parts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_parts(spark, tmp_path_factory.mktemp("parts") / "t")


@pytest.fixture(scope="session")
def partitioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same rows in three folders, `part=0` to `part=2`."""
    return write_parts(spark, tmp_path_factory.mktemp("partitioned") / "t", partition_by=("part",))


@pytest.fixture
def decider(spark: SparkSession) -> Iterator[KeepNamed]:
    """Keeps only the first file; a test that reads ten rows of forty shows that the rule worked."""
    named = KeepNamed()
    requests.install(spark, named, SETTINGS, named.concerns)
    failures = requests.errors(spark)[0]
    yield named
    requests.uninstall(spark)
    assert requests.errors(spark)[0] == failures


@pytest.fixture
def truthful(spark: SparkSession) -> Iterator[Truthful]:
    decider = Truthful()
    requests.install(spark, decider, SETTINGS, decider.concerns)
    yield decider
    requests.uninstall(spark)


@pytest.fixture
def table(spark: SparkSession, parts: str) -> Iterator[str]:
    spark.sql(f"CREATE TABLE parts USING parquet LOCATION '{parts}'")
    yield "parts"
    spark.sql("DROP TABLE parts")


@pytest.fixture
def set_conf(spark: SparkSession) -> Iterator[SetConf]:
    """Settings of the session that are as before when the test is over."""
    before: dict[str, str | None] = {}

    def set_until_the_end(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield set_until_the_end
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "written")

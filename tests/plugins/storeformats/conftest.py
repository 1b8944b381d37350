"""A lake of a few files for each test, and an OpenSearch for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.servers.opensearchserver import running_opensearch
from support.skipping.indexinterfaces import Lake

from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.spark.interfaces.enable import disable


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    yield Lake(tmp_path).fill()
    disable(spark)
    # The command `--kms` writes it into the session, which a process of its own would end with.
    spark.conf.unset(KEY_SERVICE)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_opensearch(tmp_path_factory.mktemp("opensearch")) as port:
        yield f"opensearch://127.0.0.1:{port}"

"""Xskipper itself, on a Spark of its own, beside ours; `.ci/references` sets it up."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.servers.references import Peer

from snaploom.skipping.spark.interfaces.enable import disable

CACHE = Path(os.environ.get("SNAPLOOM_TEST_CACHE", Path.home() / ".cache" / "snaploom"))
XSKIPPER = CACHE / "references" / "xskipper"
PROGRAM = Path(__file__).parent / "peer" / "xskipperpeer.py"


@pytest.fixture(scope="session")
def xskipper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    folder = tmp_path_factory.mktemp("xskipper")
    jars = ",".join(map(str, sorted((XSKIPPER / "jars").glob("*.jar"))))
    command = [str(XSKIPPER / "bin" / "python"), str(PROGRAM), jars, str(folder)]
    python = {"PYSPARK_PYTHON": command[0], "PYSPARK_DRIVER_PYTHON": command[0]}
    with Peer(command, folder / "log", os.environ | python) as peer:
        yield peer


@pytest.fixture(autouse=True)
def disabled(spark: SparkSession) -> Iterator[None]:
    yield
    disable(spark)

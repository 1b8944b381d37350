"""Published outputs are read by a client of Spark Connect that has no JVM of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.weaving.loom import Loom, ids

import snaploom
from snaploom.run.indexes.connectserver import connect_server

pytestmark = pytest.mark.spark

CLIENT = Path(sys.prefix, "connect")
"""Where `.ci/environment` puts the client's package `pyspark`."""
CLIENT_SCRIPT = Path(__file__).parents[1] / "support" / "weaving" / "connectclient.py"
"""A file: run by `python -c`, the client takes itself to be under test."""

READS: dict[str, dict[str, object]] = {
    "everything": {},
    "at": {"at": "2024-01-02T00:00:00Z"},
    "between": {"between": ("2024-01-02", "2024-01-03")},
    "nothing in between": {"between": ("2024-01-01T12:00:00Z", "2024-01-01T13:00:00Z")},
}


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[str]:
    """A server of Spark Connect in the JVM of the tests' session."""
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.connect.grpc.binding.port", "0")
    with connect_server(spark) as url:
        yield url
    settings.remove("spark.connect.grpc.binding.port")


def client(
    url: str, folders: list[str], reads: list[dict[str, object]]
) -> list[list[list[object]]]:
    """What a client answers for each folder and way to read."""
    done = subprocess.run(
        [sys.executable, CLIENT_SCRIPT], input=json.dumps([url, folders, reads]),
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(CLIENT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[list[list[object]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def woven(place: Path, spark: SparkSession, data_format: str) -> str:
    """Three days, on the last of which the key is wider."""
    place.mkdir()
    loom = Loom(place, folder={"dataFormat": data_format})
    for day in (1, 2):
        loom.write("order", day, pa.table({"id": pa.array(range(day), pa.int32())}))
    loom.write("order", 3, ids(1 << 40))
    assert loom.weave(spark).report.failed == ()
    return loom.uri


def test_a_client_without_a_jvm_reads_what_a_session_reads(spark, server, tmp_path) -> None:
    folders = [woven(tmp_path / name, spark, name) for name in ("PARQUET", "JSONL")]
    found = client(server, folders, list(READS.values()))
    for folder, answers in zip(folders, found, strict=True):
        for how, (schema, rows) in zip(READS.values(), answers, strict=True):
            frame = snaploom.read(spark, folder, **how)
            assert schema == frame.schema.json()
            assert rows == sorted(repr(row.asDict(True)) for row in frame.collect())


def test_a_folder_that_a_client_without_a_jvm_cannot_read_is_an_error(server, tmp_path) -> None:
    (unpublished, hadoop) = client(server, [str(tmp_path), "hdfs://somewhere/out/"], [{}])
    assert unpublished[0][0] == "FolderNotOurs"
    assert hadoop[0][0] == "UnsupportedStore"
    assert "client of Spark Connect" in str(hadoop[0][1])

"""Clients of a Spark Connect server that was started with places of indexes skip files."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import support
from pyspark.sql import SparkSession
from support.documentation.commands import DEADLINE, end, start, wait_until
from support.documentation.pages import DOCS, blocks_of

from snaploom.skipping import skipping_index

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

CLIENT = Path(sys.prefix, "connect")
"""Where `.ci/environment` puts the client's package `pyspark`."""
QUERIES = Path(support.__path__[0], "skipping", "connectqueries.py")
TERMINATED = 128 + signal.SIGTERM
"""Exit code of a JVM that was terminated."""
OFF = {"spark.snaploom.skipping.enabled": "false"}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    files = str(tmp_path / "numbers")
    spark.range(2_000).repartitionByRange(20, "id").write.parquet(files)
    skipping_index(spark, str(tmp_path / "indexes")).on_path(files).add_min_max("id").build()
    return tmp_path


@pytest.fixture
def server(lake: Path) -> Iterator[subprocess.Popen[str]]:
    """The server, started as the page shows; it chooses a free port."""
    (command,) = (
        block.text
        for block in blocks_of(DOCS / "how-to" / "skip-files.md")
        if "connectserver.py" in block.text
    )
    for shown, here in (
        ("/tmp/snaploom/lake/indexes", str(lake / "indexes")), ("port=15002", "port=0"),
        ("spark-submit", "exec spark-submit"),
    ):  # fmt: skip
        assert shown in command
        command = command.replace(shown, here)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = start(["bash", "-c", command], lake / "server", {"PATH": path})
    wait_until(lambda: "serving" in (lake / "server" / "out.txt").read_text(), process)
    yield process
    process.terminate()
    process.wait()


def answers(lake: Path, *sessions: dict[str, str]) -> list[tuple[list[list[int]], str]]:
    """Rows and plan of a query, in sessions of a client without a JVM."""
    url = (lake / "server" / "out.txt").read_text().split()[-1]
    asked = json.dumps([url, str(lake / "numbers"), "id = 1234", sessions])
    done = subprocess.run(
        [sys.executable, QUERIES], input=asked, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(CLIENT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(rows, plan) for rows, plan in json.loads(done.stdout.splitlines()[-1])]


def test_sessions_of_clients_skip_files_or_not_and_the_server_ends_when_it_is_asked_to(
    lake: Path, server: subprocess.Popen[str]
) -> None:
    skipping, not_skipping, again = answers(lake, {}, OFF, {})
    assert skipping[0] == not_skipping[0] == again[0] == [[1234]]
    assert "skipping by MIN_MAX(id): 1 of 20 files" in skipping[1]
    assert "skipping" not in not_skipping[1]
    assert again[1].count("1 of 20 files") == 1
    python = psutil.Process(server.pid).children(recursive=True)
    server.terminate()
    code, _, printed = end(server, lake / "server")
    assert code == TERMINATED
    assert not psutil.wait_procs(python, DEADLINE)[1]
    assert "Traceback" not in printed

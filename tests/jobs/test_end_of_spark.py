"""A JVM that ends under a command is what the command reports, and nothing that follows from it."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession
from support.declared.shop import FIRST_DAY, SECOND_DAY, Shop

from snaploom.cli.main import main
from snaploom.run.job import JobGroup

_enter = JobGroup.enter


def _killed(group: JobGroup, spark: SparkSession, name: str, description: str) -> None:
    _enter(group, spark, name, description)
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # of a session with a JVM
    gateway.proc.kill()
    gateway.proc.wait()


if __name__ == "__main__":
    with mock.patch.object(JobGroup, "enter", _killed):
        main(sys.argv[1:])


pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def published(spark, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("sound")).with_two_days()
    assert shop.run().code == 0
    return shop


@pytest.mark.parametrize("command", ["check", "diff", "index"])
def test_a_killed_jvm_is_reported_and_no_fault_of_files(command, published, tmp_path):
    folder = published.published
    arguments = {
        "check": ["check", folder],
        "diff": ["diff", "wide", "-f", published.write(), "--data", FIRST_DAY, SECOND_DAY],
        "index": [
            "index",
            "build",
            f"{folder}/data",
            "--location",
            tmp_path,
            "-i",
            "data.order_id VALUE_SET",
        ],
    }[command]
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    code = 2 if command == "diff" else 1
    assert (done.returncode, "Spark's JVM was killed" in done.stderr) == (code, True), done.stderr
    assert "cannot be read" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_whose_heap_is_full_names_the_join_and_the_setting(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("customers", [{"customer_id": 1, "text": "x" * 4_000_000}] * 300)
    shop.other(transformations={"groupBy": {"fieldNames": ["customer_id"]}})
    shop.set("wide", "run", {"spark": {"driver": {"memory": "512m"}}})
    command = [Path(sys.executable).with_name("snaploom"), "run", "wide", "-f", shop.write()]
    command += ["--now", "2024-06-01T00:00:00Z"]

    done = subprocess.run(command, text=True, capture_output=True, check=False)

    shown = done.stdout + done.stderr
    assert done.returncode == 1
    assert "OutputDataset/wide: snapshot 2024-05-01T00:00:00Z" in shown
    assert "`customers` (DataSource/customers, one array a key)" in shown
    assert "raise run.spark.driver.memory" in shown

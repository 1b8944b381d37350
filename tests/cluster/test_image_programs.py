"""Programs in the images, as pods start them: as the image's user, on what cannot be written."""

import tomllib

import pytest
from support.documentation.examples import REPOSITORY

from snaploom_operator.submit.applications import JOB_FILE

pytestmark = [pytest.mark.images, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1800)]
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]


def test_operator_runs_without_writing(operator_image):
    done = operator_image.run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")


@pytest.mark.parametrize("command", ["run", "webhook"])
def test_operator_starts_as_the_chart_starts_it(command, operator_image):
    """As far as it gets without a cluster: settings are read, and the API server is looked for."""
    done = operator_image.run("operator", command, "--settings", "/nowhere/settings.yaml")
    assert done.returncode == 2
    assert "/nowhere/settings.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_driver_runs_its_job_without_writing(spark_image):
    """Spark's launcher, its JVM, and the job in Python, which prints its usage."""
    options = ["--master", "local[1]", "--class", "org.apache.spark.deploy.PythonRunner"]
    done = spark_image.run(
        "driver", *options, JOB_FILE, "--help", SPARK_DRIVER_BIND_ADDRESS="127.0.0.1"
    )
    assert done.returncode == 0, done.stderr
    assert "--run-id RUN_ID" in done.stdout


def test_python_of_executors_works_on_rows(spark_image):
    program = """
import pyarrow as pa, pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf
import snaploom.plugins.flint.store

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

@arrow_udf("bigint")
def plus(numbers: pa.Array) -> pa.Array:
    return pc.add(numbers, 1)

print("rows", spark.range(3).select(plus("id").alias("x")).toArrow().to_pydict())
"""
    done = spark_image.run("python3", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "rows {'x': [1, 2, 3]}" in done.stdout


def test_nothing_of_the_folder_of_a_container_is_imported(spark_image):
    """Neither by the program that is started, nor by Spark's workers; `/tmp` can be written."""
    program = "{ echo 'print(1 / 0)' | tee /tmp/pyspark.py /tmp/tempfile.py; } >/dev/null; cd /tmp"
    python = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("rows", spark.sparkContext.parallelize([1, 2]).map(lambda row: row + 1).collect())
"""
    done = spark_image.run("bash", "-c", f'{program}; exec python3 -c "$0"', python)
    assert "rows [2, 3]" in done.stdout, done.stderr


def test_executor_is_sparks_own(spark_image):
    """It ends for want of a driver: its class and its options are known."""
    place = {"SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:9"}
    names = ("EXECUTOR_ID", "APPLICATION_ID", "EXECUTOR_POD_NAME", "EXECUTOR_CORES")
    numbers = {f"SPARK_{name}": "1" for name in (*names, "RESOURCE_PROFILE_ID")}
    memory = {"SPARK_EXECUTOR_MEMORY": "256m", "SPARK_EXECUTOR_POD_IP": "127.0.0.1"}
    done = spark_image.run("executor", **place, **numbers, **memory)
    assert done.returncode != 0
    assert "Failed to connect to" in done.stderr + done.stdout

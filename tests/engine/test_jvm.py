"""The JVM of a session: its packages, and the Python that its workers run."""

import os
import subprocess
import sys

import pytest

from snaploom.spark.jvm import WORKER_PYTHON, chosen_python, jvm_of, worker_python

pytestmark = pytest.mark.spark


def test_a_class_is_found_by_one_question(spark, monkeypatch):
    asked = []
    jvm = jvm_of(spark)
    client, send = jvm._gateway_client, jvm._gateway_client.send_command
    monkeypatch.setattr(client, "send_command", lambda text: asked.append(text) or send(text))
    found = jvm.org.apache.spark.sql.classic.ExpressionUtils
    assert found._fqn == "org.apache.spark.sql.classic.ExpressionUtils"
    assert len(asked) == 1


def test_a_class_of_a_package_that_nobody_named_is_found(spark):
    assert jvm_of(spark).org.apache.commons.io.IOUtils._fqn == "org.apache.commons.io.IOUtils"


def test_a_class_that_does_not_exist_is_still_an_error(spark):
    with pytest.raises(TypeError):
        jvm_of(spark).org.apache.spark.sql.classic.NoSuchClass()


SCRIPT = """
import os

from pyspark.sql import SparkSession
from snaploom import skipping

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
lake = os.path.abspath("lake")
spark.range(9).write.json(lake)
index = skipping.skipping_index(spark, location=f"{lake}-indexes").on_path(lake, "json")
index.add_min_max("id").build()
"""


@pytest.mark.slow
def test_a_script_of_an_environment_that_is_not_activated_has_workers_of_its_own(tmp_path):
    shadow = tmp_path / "bin" / "python3"
    shadow.parent.mkdir()
    shadow.write_text("#!/bin/sh\necho 'no such worker' >&2; exit 1\n")
    shadow.chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if "PYTHON" not in name}
    environment = {**kept, "PATH": f"{shadow.parent}:/usr/bin:/bin"}
    (tmp_path / "script.py").write_text(SCRIPT)

    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr[-2000:]


def test_the_interpreter_that_somebody_chose_is_that_of_workers(spark, monkeypatch):
    monkeypatch.setenv(WORKER_PYTHON, "/opt/theirs/python")
    with chosen_python(spark):
        assert spark.sparkContext.pythonExec == "/opt/theirs/python"
    assert spark.sparkContext.pythonExec != "/opt/theirs/python"
    monkeypatch.delenv(WORKER_PYTHON)
    assert worker_python({"spark.pyspark.python": "/opt/set/python"}) == "/opt/set/python"
    assert worker_python({}) == sys.executable


def test_workers_of_a_cluster_run_what_their_session_has(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "master", "spark://elsewhere:7077")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    with chosen_python(spark):
        assert spark.sparkContext.pythonExec == "python3"

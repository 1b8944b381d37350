"""The entrypoint of the Spark image, with other programs in place of Spark's."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from support.documentation.examples import REPOSITORY

pytestmark = pytest.mark.images
ENTRYPOINT = REPOSITORY / "sparkjobs" / "image" / "entrypoint"
DEADLINE = 30.0
RECORD = """#!{python}
import json, os, sys
from pathlib import Path
call = {{"arguments": sys.argv[1:], "environment": {{**os.environ}}}}
Path({path!r}).write_text(json.dumps(call))
"""
JVM = """#!/bin/bash
# A JVM, of which signals are not asked to end the program: it waits for it, and ends as it did.
trap 'echo jvm was signalled >> "{log}"; exit 143' TERM
{python} "{program}" &
{more}
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
"""
PROGRAM = """
import os, signal, sys, time
from pathlib import Path

def log_line(text):
    with open({log!r}, "a") as log:
        log.write(text + "\\n")

def end(*_):
    log_line("program was signalled")
    sys.exit(130)

signal.signal(signal.SIGTERM, end)
log_line("program begins")
jvm = os.getppid()
deadline = time.monotonic() + {seconds}
while time.monotonic() < deadline and os.getppid() == jvm:
    time.sleep(0.05)
time.sleep({after})
log_line("program ends")
"""
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://driver:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "600m",
    "SPARK_APPLICATION_ID": "spark-abc",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "run-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_1": "-Dtext=two words",
}


@pytest.fixture
def place(tmp_path):
    """A home of Spark whose programs record their arguments and environment."""
    for folder in ("spark/bin", "java/bin"):
        (tmp_path / folder).mkdir(parents=True)
    record = RECORD.format(python=sys.executable, path=str(tmp_path / "call.json"))
    write(tmp_path / "spark/bin/spark-submit", record)
    write(tmp_path / "java/bin/java", record)
    return tmp_path


def write(path, text):
    path.write_text(text)
    path.chmod(0o755)


def start(place, *arguments, **environment):
    own = {"SPARK_HOME": place / "spark", "JAVA_HOME": place / "java"}
    return subprocess.Popen(
        [ENTRYPOINT, *arguments],
        env={"PATH": os.environ["PATH"], **own, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def recorded(place):
    found = json.loads((place / "call.json").read_text())
    return found["arguments"], found["environment"]


def test_driver_is_submitted_in_its_own_pod(place):
    properties = ["--properties-file", "/opt/spark/conf/spark.properties"]
    job = [*properties, "local:///opt/snaploom/clusterjob.py", "two words"]
    assert start(place, "driver", *job, SPARK_DRIVER_BIND_ADDRESS="10.0.0.5").wait(DEADLINE) == 0
    arguments, _ = recorded(place)
    own = ["--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.5"]
    assert arguments == [*own, *job]


def test_executor_gets_its_arguments_from_its_environment(place):
    assert start(place, "executor", **EXECUTOR).wait(DEADLINE) == 0
    arguments, _ = recorded(place)
    *options, classes, main = arguments[:6]
    assert options == ["-Dspark.driver.port=7078", "-Dtext=two words", "-Xmx600m", "--class-path"]
    assert classes == f"{place}/spark/conf:{place}/spark/jars/*"
    assert main.endswith("KubernetesExecutorBackend")
    pairs = dict(zip(arguments[6::2], arguments[7::2], strict=True))
    assert pairs == {
        "--driver-url": "spark://driver:7078",
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-abc",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "run-exec-1",
    }


def test_executor_finds_classes_and_libraries_of_the_application(place):
    more = {"SPARK_CLASSPATH": "/mine/*", "SPARK_EXECUTOR_LIBRARY_PATH": "/native"}
    assert start(place, "executor", **EXECUTOR, **more).wait(DEADLINE) == 0
    arguments, environment = recorded(place)
    assert arguments[4].startswith("/mine/*:")
    assert environment["LD_LIBRARY_PATH"] == "/native"


@pytest.mark.parametrize("name", sorted(name for name in EXECUTOR if "JAVA_OPT" not in name))
def test_executor_without_what_it_needs_does_not_start(place, name):
    environment = {key: value for key, value in EXECUTOR.items() if key != name}
    assert start(place, "executor", **environment).wait(DEADLINE) == 1
    assert not (place / "call.json").exists()


def test_anything_else_is_run_as_it_is(place):
    process = start(place, "echo", "two words", "driver")
    assert process.communicate(timeout=DEADLINE)[0] == "two words driver\n"


def driver_of(place, seconds=DEADLINE, after=0.0, more=":"):
    """A driver whose program ends at a signal, after some seconds, or after its JVM."""
    log, program = place / "log", place / "program.py"
    program.write_text(PROGRAM.format(log=str(log), seconds=seconds, after=after))
    jvm = JVM.format(log=log, python=sys.executable, program=program, more=more)
    write(place / "spark/bin/spark-submit", jvm)
    process = start(place, "driver", SPARK_DRIVER_BIND_ADDRESS="10.0.0.5")
    wait_for_line(log, "program begins")
    return process, log


def wait_for_line(log, text):
    deadline = time.monotonic() + DEADLINE
    while not (log.exists() and text in log.read_text()):
        assert time.monotonic() < deadline, f"{text!r} was not logged"
        time.sleep(0.05)


def test_signal_to_a_driver_reaches_its_program_and_not_the_jvm(place):
    process, log = driver_of(place)
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE) == 130
    assert log.read_text().splitlines() == ["program begins", "program was signalled"]


def test_signal_does_not_reach_workers_of_python(place):
    worker = f'{sys.executable} -c "import time; time.sleep(2) # pyspark.daemon" & worker=$!'
    process, log = driver_of(
        place,
        more=f"program=$!; {worker}; wait $program; code=$?; "
        f'kill -0 $worker && echo worker lives >> "{place}/log"; exit $code',
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE) == 130
    assert log.read_text().splitlines()[-1] == "worker lives"


def test_driver_ends_with_the_code_of_its_program(place):
    process, log = driver_of(place, seconds=0.0)
    assert process.wait(DEADLINE) == 0
    assert log.read_text().splitlines() == ["program begins", "program ends"]


def test_program_whose_jvm_is_killed_may_still_report(place):
    process, log = driver_of(place, after=1.0, more="sleep 0.5; kill -KILL $$")
    assert process.wait(DEADLINE) == 137
    assert log.read_text().splitlines()[-1] == "program ends"


def test_signal_reaches_a_jvm_without_a_program(place):
    log = place / "log"
    jvm = f"#!/bin/bash\ntrap 'exit 143' TERM\necho begins > {log}\nsleep 30 & wait $!\n"
    write(place / "spark/bin/spark-submit", jvm)
    process = start(place, "driver", SPARK_DRIVER_BIND_ADDRESS="10.0.0.5")
    wait_for_line(log, "begins")
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE) == 143

"""Two JVMs are taken for alike only where everything that they are started with is the same."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from snaploom.jobs.sessionserver.launch import Launch, from_line, launch_of, to_line


class Machine:
    """A Java, a Spark, and a driver's jar, of empty files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spark = folder / "spark"
        self.driver = folder / "driver.jar"
        self.is_small = False
        jars = f"file:{self.driver},{folder / 'a driver.jar'}"
        self.settings = {"spark.master": "local[2]", "spark.jars": jars}
        self.environment = {
            "JAVA_HOME": str(folder / "java"),
            "SPARK_HOME": str(self.spark),
            "HOME": "/home/ann",
        }
        java = ("bin/java", "lib/modules", "lib/server/classes.jsa")
        for file in (
            *(f"java/{each}" for each in java),
            "spark/jars/core.jar",
            "driver.jar",
            "a driver.jar",
        ):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).touch()

    def launch(self) -> Launch | None:
        return launch_of(self.spark, self.settings, self.environment, is_small=self.is_small)

    def key(self) -> str:
        launch = self.launch()
        assert launch is not None
        return launch.key


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.chdir(tmp_path)
    return Machine(tmp_path)


def with_little_to_do(machine: Machine) -> None:
    machine.is_small = True


def given_memory(machine: Machine) -> None:
    machine.settings["spark.driver.memory"] = "4g"


def with_credentials(machine: Machine) -> None:
    machine.environment["AWS_SECRET_ACCESS_KEY"] = "another one"


def with_new_spark(machine: Machine) -> None:
    (machine.spark / "jars" / "more.jar").touch()


def with_new_driver(machine: Machine) -> None:
    machine.driver.write_text("another version")


def with_new_driver_of_two_words(machine: Machine) -> None:
    (machine.folder / "a driver.jar").write_text("another version")


def in_another_folder(machine: Machine) -> None:
    (machine.folder / "sub").mkdir()
    os.chdir(machine.folder / "sub")


CHANGES = (
    *(with_little_to_do, given_memory, with_credentials, with_new_spark, with_new_driver),
    *(with_new_driver_of_two_words, in_another_folder),
)


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_jvm_goes_by_makes_another_launch(
    machine: Machine, change: Callable[[Machine], None]
) -> None:
    before = machine.key()
    change(machine)
    assert machine.key() != before


def test_folder_of_the_same_name_makes_another_launch(machine: Machine) -> None:
    place = machine.folder / "work"
    place.mkdir()
    os.chdir(place)
    before = machine.key()
    place.rename(machine.folder / "moved")  # its inode stays taken
    place.mkdir()
    os.chdir(place)
    assert machine.key() != before


def test_narrower_umask_makes_another_launch(machine: Machine) -> None:
    before, mask = machine.key(), os.umask(0o077)
    try:
        assert machine.key() != before
        os.umask(0o027)
        launch = machine.launch()
        assert launch is not None
        assert launch.umask == 0o027
        assert os.umask(mask) == 0o027
    finally:
        os.umask(mask)


def test_another_limit_makes_another_launch(machine: Machine) -> None:
    before, (soft, hard) = machine.key(), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1 if soft > 0 else 1024, hard))
    try:
        assert machine.key() != before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_another_terminal_makes_the_same_launch(machine: Machine) -> None:
    before = machine.key()
    machine.environment |= {"SHLVL": "3", "COLUMNS": "80", "_": "/usr/bin/env"}
    assert machine.key() == before


def test_launch_passes_a_pipe_unchanged(machine: Machine) -> None:
    machine.environment["NAME"] = os.fsdecode(b"\xff\xfe\n'\"")
    launch = machine.launch()
    assert launch is not None
    assert from_line(to_line(launch)) == launch
    assert from_line(to_line(launch)).key == launch.key
    assert to_line(launch).count(b"\n") == 1


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"{", b'{"name": 1, "more": 2}'])
def test_no_launch_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"no launch|Expecting"):
        from_line(line)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPARK_CONF_DIR", "/etc/spark"),
        ("HADOOP_CONF_DIR", "/etc/hadoop"),
        ("PYSPARK_SUBMIT_ARGS", "--conf spark.extraListeners=x pyspark-shell"),
        ("JAVA_TOOL_OPTIONS", "-Dspark.master=yarn"),
    ],
)
def test_environment_that_configures_spark_shares_no_jvm(
    machine: Machine, name: str, value: str
) -> None:
    machine.environment[name] = value
    assert machine.launch() is None


def test_spark_with_settings_of_its_own_shares_no_jvm(machine: Machine) -> None:
    (machine.spark / "conf").mkdir()
    (machine.spark / "conf" / "spark-defaults.conf").touch()
    assert machine.launch() is None


def test_deleted_folder_shares_no_jvm(machine: Machine) -> None:
    (machine.folder / "gone").mkdir()
    os.chdir(machine.folder / "gone")
    (machine.folder / "gone").rmdir()
    assert machine.launch() is None


def test_facts_are_part_of_the_key(machine: Machine) -> None:
    launch = machine.launch()
    assert launch is not None
    assert replace(launch, facts=(*launch.facts, "another file")).key != launch.key
    assert replace(launch, bounds=(*launch.bounds, "mnt mnt:[1]")).key != launch.key

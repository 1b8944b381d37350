"""The archive of Spark's classes: written once, used where it fits, and never in anybody's way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from snaploom.run.session.classarchive import KEPT, RETRY_SECONDS, VARIABLE, archive_options

MAGIC = bytes.fromhex("a8ab0bf0")
NOW = 1_800_000_000.0


class Machine:
    """A Java, a Spark, and a cache, of empty files."""

    def __init__(self, folder: Path) -> None:
        self.java = folder / "java"
        self.spark = folder / "spark"
        self.cache = folder / "cache"
        self.jar = self.spark / "jars" / "core.jar"
        self.settings: dict[str, str] = {}
        self.environment = {"JAVA_HOME": str(self.java), "XDG_CACHE_HOME": str(self.cache)}
        base = "lib/server/classes.jsa"
        for file in (*(self.java / name for name in ("bin/java", "lib/modules", base)), self.jar):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    def options(self, moment: float = NOW) -> str:
        return archive_options(self.spark, self.settings, self.environment, moment)

    def archive(self) -> Path:
        """What the JVM that is started first leaves behind."""
        archive = Path(self.options().partition('"')[2].partition('"')[0])
        archive.write_bytes(MAGIC + b"classes")
        return archive


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_first_jvm_writes_the_archive_and_later_ones_use_it(machine: Machine) -> None:
    archive = machine.archive()
    assert f'-XX:SharedArchiveFile="{archive}"' in machine.options()
    assert "ArchiveClassesAtExit" not in machine.options()


def test_jvms_beside_the_one_that_writes_neither_write_nor_use(machine: Machine) -> None:
    assert "-XX:ArchiveClassesAtExit=" in machine.options()
    assert machine.options() == ""


def test_archive_that_was_begun_and_never_ended_is_begun_again_a_day_later(
    machine: Machine,
) -> None:
    machine.archive().write_bytes(bytes(len(MAGIC)))  # the head is written last
    assert machine.options(NOW + RETRY_SECONDS - 1) == ""
    assert "-XX:ArchiveClassesAtExit=" in machine.options(NOW + RETRY_SECONDS + 1)


def test_other_jars_have_another_archive(machine: Machine) -> None:
    machine.archive()
    machine.jar.write_bytes(b"newer")
    assert "-XX:ArchiveClassesAtExit=" in machine.options()


def test_archives_that_were_used_last_are_kept(machine: Machine) -> None:
    archives = []
    for size in range(1, KEPT + 2):
        machine.jar.write_bytes(bytes(size))
        archives.append(machine.archive())
        os.utime(archives[-1].parent, (size, size))
    assert [archive.exists() for archive in archives] == [False, *[True] * KEPT]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (VARIABLE, "off"),
        ("SPARK_SUBMIT_OPTS", "-XX:SharedArchiveFile=/own.jsa"),
        ("JAVA_TOOL_OPTIONS", "-Xshare:off"),
        ("PYSPARK_SUBMIT_ARGS", "--driver-java-options -Xshare:off pyspark-shell"),
        ("HADOOP_CONF_DIR", "/etc/hadoop"),
        ("XDG_CACHE_HOME", '/a "quoted" cache'),
        ("XDG_CACHE_HOME", "/proc/self/no-folder-can-be-made-here"),
        ("JAVA_HOME", "/no/java"),
    ],
)
def test_environment_that_forbids_an_archive_is_heeded(
    machine: Machine, name: str, value: str
) -> None:
    machine.environment[name] = value
    assert machine.options() == ""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_archive_that_others_can_change_is_not_used(machine: Machine, level: int) -> None:
    archive = machine.archive()
    (archive, *archive.parents)[level].chmod(0o777)
    assert machine.options() == ""


def test_options_of_java_that_a_user_chose_are_heeded(machine: Machine) -> None:
    machine.settings["spark.driver.extraJavaOptions"] = "-XX:ArchiveClassesAtExit=/own.jsa"
    assert machine.options() == ""


def test_spark_with_files_of_configuration_gets_no_archive(machine: Machine) -> None:
    """A JVM refuses to write one where a folder on its class path has files."""
    (machine.spark / "conf").mkdir()
    assert machine.options()
    (machine.spark / "conf" / "spark-defaults.conf").touch()
    assert machine.options() == ""


def test_java_without_its_own_archive_gets_none(machine: Machine) -> None:
    (machine.java / "lib" / "server" / "classes.jsa").unlink()
    assert machine.options() == ""

"""A JVM for little work has one compiler, unless anybody has chosen something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from snaploom.run.session.classarchive import options_of_small_work

UTC = {"spark.driver.extraJavaOptions": "-Duser.timezone=UTC"}
ONE_COMPILER = "-XX:TieredStopAtLevel=1"


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({}, {}),
        (UTC, {"JAVA_HOME": "/opt/java-X", "PATH": "/usr/bin"}),
        ({"spark.driver.memory": "4g"}, {"JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8"}),
    ],
)
def test_little_work_has_one_compiler(
    tmp_path: Path, settings: dict[str, str], environment: dict[str, str]
) -> None:
    assert ONE_COMPILER in options_of_small_work(tmp_path, settings, environment)


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({"spark.driver.extraJavaOptions": "-Da=b -XX:+UseG1GC"}, {}),
        ({"spark.driver.extraJavaOptions": '"-XX:+UseZGC"'}, {}),
        ({"spark.driver.defaultJavaOptions": "-Xss4m"}, {}),
        (UTC, {"JDK_JAVA_OPTIONS": "@/etc/java.options"}),
        (UTC, {"JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC"}),
        (UTC, {"_JAVA_OPTIONS": "-Xint"}),
        (UTC, {"SPARK_SUBMIT_OPTS": "-Dx=y\t-XX:TieredStopAtLevel=4"}),
        (UTC, {"PYSPARK_SUBMIT_ARGS": "--driver-java-options=-XX:+UseG1GC pyspark-shell"}),
        (UTC, {"SPARK_CONF_DIR": "/etc/spark"}),
    ],
)
def test_options_of_java_that_anybody_chose_are_kept(
    tmp_path: Path, settings: dict[str, str], environment: dict[str, str]
) -> None:
    assert options_of_small_work(tmp_path, settings, environment) == ""


def test_spark_with_files_of_settings_keeps_its_options(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-env.sh").touch()
    assert options_of_small_work(tmp_path, UTC, {}) == ""

"""The Spark configuration that a resource asks for, on whatever machine it runs."""

import os
import pwd
import threading
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from snaploom.errors import ArgumentInvalid
from snaploom.localfiles import CACHE_VARIABLE, cache_folder
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings, spark_memory
from snaploom.run.driverlock import cached_jar
from snaploom.run.session.classarchive import (
    KEPT,
    RETRY_SECONDS,
    VARIABLE,
    archive_options,
    configured_elsewhere,
    options_of_small_work,
)
from snaploom.run.session.jvm import SparkNotStarted
from snaploom.run.session.providers import open_early
from snaploom.run.session.spark import (
    CLASSIC,
    SparkStopped,
    configured,
    in_utc,
    s3a_settings,
    sibling_session,
)
from snaploom.sources.databases.connection import zone_in
from snaploom.sources.databases.drivers import DRIVER_JAR_BY_NAME


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2Gi", "2g"), ("512m", "512m"), ("512MiB", "512m"), ("1T", "1t"), ("4gb", "4g")],
)
def test_sizes_in_kubernetes_words_become_sparks(text: str, expected: str) -> None:
    assert spark_memory(text) == expected
    spark = SparkSettings(driver=DriverSettings(memory=text))
    assert configured(RunSettings(spark=spark)) == {"spark.driver.memory": expected}


@pytest.mark.parametrize(
    ("options", "zone"),
    [
        ("", "UTC"),
        ("-Xss4m -Dx=y", "UTC"),
        ("-Duser.timezone=Asia/Kolkata", "Asia/Kolkata"),
        ("-Duser.timezone=Asia/Kolkata -Xss4m -Duser.timezone=GMT", "GMT"),
    ],
)
def test_executors_work_in_utc_unless_an_option_sets_a_zone(options: str, zone: str) -> None:
    assert zone_in(in_utc(options)) == zone
    assert in_utc(options).startswith(options)
    assert zone_in("-Xss4m") is None


def test_a_session_is_opened_while_its_user_goes_on() -> None:
    may_open, session = threading.Event(), cast(SparkSession, object())

    def open_session(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        assert may_open.wait(60)
        return session

    opened = open_early(open_session, "snaploom", RunSettings(), NO_ALLOWANCES)
    may_open.set()
    assert opened() is session


def test_what_opening_a_session_raises_reaches_its_user() -> None:
    def open_session(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        raise SparkNotStarted("no Java", hint="install it")

    opened = open_early(open_session, "snaploom", RunSettings(), NO_ALLOWANCES)
    with pytest.raises(SparkNotStarted, match="no Java"):
        opened()


class StoppedSession:
    """A session after `stop()`."""

    @property
    def sparkContext(self) -> object:  # noqa: N802 -- as PySpark spells it
        return type("Context", (), {"_jsc": None})


def test_a_session_that_was_stopped_is_named_and_no_java_is_looked_for() -> None:
    with pytest.raises(SparkStopped, match="was stopped") as caught:
        sibling_session(cast(SparkSession, StoppedSession()), RunSettings())
    assert "getOrCreate" in caught.value.hint
    assert "java" not in str(caught.value)


# Settings of Hadoop's S3 client from the environment.


PROVIDER = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"AWS_REGION": "eu-1"}, {"endpoint.region": "eu-1"}, id="region"),
        pytest.param(
            {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"},
            {"endpoint": "http://b", "path.style.access": "true", "endpoint.region": "us-east-1"},
            id="endpoint",
        ),
        pytest.param(
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "role"},
            {"aws.credentials.provider": PROVIDER},
            id="role",
        ),
        pytest.param({"AWS_SECRET_ACCESS_KEY": "secret", "AWS_ACCESS_KEY_ID": "k"}, {}, id="keys"),
    ],
)
def test_environment_becomes_settings_without_secrets(environment, settings):
    settings = {"input.stream.type": CLASSIC, **settings}
    expected = {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}
    assert s3a_settings(environment) == expected


# A JVM for little work has one compiler, unless anybody has chosen something else.


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
def test_little_work_has_one_compiler(tmp_path, settings, environment):
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
def test_options_of_java_that_anybody_chose_are_kept(tmp_path, settings, environment):
    assert options_of_small_work(tmp_path, settings, environment) == ""


def test_spark_with_files_of_settings_keeps_its_options(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-env.sh").touch()
    assert options_of_small_work(tmp_path, UTC, {}) == ""


# What configures Hadoop's client beside the environment of S3's clients.


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a Spark without any settings of its own."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf.template").touch()
    return {"SPARK_HOME": str(tmp_path), "AWS_CONFIG_FILE": str(tmp_path / "aws")}


def settings(**conf: str) -> RunSettings:
    given = {name.replace("__", "."): value for name, value in conf.items()}
    return RunSettings.model_validate({"spark": {"sparkConf": given}})


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark__sql__shuffle__partitions": "8"},
        {"spark__jars": "/jars/hadoop-aws.jar"},
        {"spark__driver__extraClassPath": "/jars/*:/more/one.jar"},
        {"spark__driver__extraJavaOptions": "-XX:+UseG1GC -Duser.timezone=UTC"},
    ],
)
def test_settings_of_other_things_configure_nothing(environment, conf) -> None:
    assert configured_elsewhere(settings(**conf), environment) == ""


@pytest.mark.parametrize(
    "conf",
    [
        {"spark__hadoop__fs__s3a__endpoint": "http://other"},
        {"spark__hadoop__fs__s3a__bucket__b__endpoint": "http://other"},
        {"spark__driver__extraClassPath": "/jars/*:/etc/hadoop/conf"},
        {"spark__driver__extraJavaOptions": "-Dspark.hadoop.fs.s3a.endpoint=http://other"},
        {"spark__driver__defaultJavaOptions": "-Daws.endpointUrl=http://other"},
    ],
)
def test_setting_of_the_resource_is_named(environment, conf) -> None:
    (name,) = conf
    found = configured_elsewhere(settings(**conf), environment)
    assert found == f"run.spark.sparkConf: {name.replace('__', '.')}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HADOOP_CONF_DIR", "/etc/hadoop"),
        ("SPARK_CONF_DIR", "/etc/spark"),
        ("SPARK_DIST_CLASSPATH", "/opt/hadoop/etc"),
        ("PYSPARK_SUBMIT_ARGS", "--conf spark.hadoop.a=b pyspark-shell"),
        ("SPARK_SUBMIT_OPTS", "-Dspark.hadoop.a=b"),
        ("JAVA_TOOL_OPTIONS", "-Daws.region=x"),
    ],
)
def test_variable_of_the_environment_is_named(environment, name, value) -> None:
    found = configured_elsewhere(RunSettings(), {**environment, name: value})
    assert found == f"the environment: {name}"


def test_file_of_spark_is_named(environment, tmp_path) -> None:
    for name in ("spark-defaults.conf", "core-site.xml"):
        path = tmp_path / "conf" / name
        path.touch()
        assert configured_elsewhere(RunSettings(), environment) == f"the file {path}"
        path.unlink()


def test_endpoint_of_amazons_settings_counts_where_the_environment_has_none(environment, tmp_path):
    (tmp_path / "aws").write_text("[default]\nendpoint_url = http://other\n")
    assert "endpoint_url" in configured_elsewhere(RunSettings(), environment)
    own = {**environment, "AWS_ENDPOINT_URL": "http://own"}
    assert configured_elsewhere(RunSettings(), own) == ""


# The archive of Spark's classes: written once, used where it fits, and never in anybody's way.


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


def test_archive_that_was_begun_and_never_ended_is_begun_again_a_day_later(machine):
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
def test_environment_that_forbids_an_archive_is_heeded(machine, name, value):
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


# Caches lie where the desktop keeps them; a user without a home, as in containers, has none.


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user id that the machine does not know, without HOME."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", CACHE_VARIABLE, "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)


def test_named_folder_comes_first(tmp_path: Path) -> None:
    assert cache_folder({CACHE_VARIABLE: str(tmp_path)}) == tmp_path / "snaploom"
    assert cache_folder({}) == Path.home() / ".cache" / "snaploom"


@pytest.mark.usefixtures("homeless")
def test_user_without_a_home_starts_spark_without_an_archive(tmp_path: Path) -> None:
    assert archive_options(tmp_path, {}) == ""


@pytest.mark.usefixtures("homeless")
def test_user_without_a_home_learns_what_to_set_for_drivers() -> None:
    with pytest.raises(ArgumentInvalid, match="no place for JDBC drivers") as refused:
        cached_jar(DRIVER_JAR_BY_NAME["postgresql"])
    assert refused.value.path == CACHE_VARIABLE

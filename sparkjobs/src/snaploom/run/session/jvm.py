"""Starts Spark's JVM within the memory that this process may have."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from snaploom.errors import SnaploomError
from snaploom.localfiles import private_folder
from snaploom.policy.variables import DEBUG_VARIABLE
from snaploom.run.session import classarchive

# The memory limit of this process's container, and the processes that the kernel killed for it.

_FOLDER = Path("/sys/fs/cgroup")
_KILLS = ("memory.events", "memory/memory.oom_control")
"""Files with a line `oom_kill NUMBER`."""
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
_NO_LIMIT = 2**60
"""Version 1 writes a number near 2^63 for no limit, version 2 a word."""


@dataclass(frozen=True)
class MemoryLimit:
    """The kernel's limits for a container."""

    folder: Path = _FOLDER
    """Folder in which control groups are mounted."""

    def kills(self) -> int:
        """Processes of the container that were killed because its memory was used up, so far."""
        lines = (line.split() for name in _KILLS for line in self._text(name).splitlines())
        return sum(int(words[1]) for words in lines if len(words) == 2 and words[0] == "oom_kill")

    def mebibytes(self) -> int | None:
        """The limit in MiB; None where there is none, or it is unknown."""
        for name in _LIMITS:
            text = self._text(name).strip()
            if text.isdecimal() and int(text) < _NO_LIMIT:
                return int(text) >> 20
        return None

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text("ascii", "replace")
        except OSError:
            return ""


# Starts Spark's JVM, with what it prints kept back.

_PATH_VARIABLES = frozenset({
    "HADOOP_CONF_DIR", "JAVA_HOME", "PYTHONPATH", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH",
    "YARN_CONF_DIR",
})  # fmt: skip
"""Environment variables with lists of paths that the JVM or Python's workers read."""
_LOCAL_FOLDERS, _LOCAL_VARIABLE = "spark.local.dir", "SPARK_LOCAL_DIRS"
"""Setting and environment variable with the folders in which Spark keeps blocks of rows."""
_TEMPORARY = "-Djava.io.tmpdir"
_THREAD = re.compile(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?')


class SparkNotStarted(SnaploomError):
    """There is no Spark, or it cannot start."""


def start_context(name: str, settings: Mapping[str, str], *, is_small: bool = False) -> None:
    """Start a JVM, and the SparkContext of this process in it.

    The JVM inherits the file that it prints into, and goes on after this process closed its own.
    """
    conf = SparkConf(loadDefaults=False).setAppName(name).setAll(list(settings.items()))
    home = _home()
    with translated_start():
        temporary = _temporary_files(settings)
    options = (
        temporary,
        settings.get(classarchive.DEFAULT_JAVA, ""),
        classarchive.options_of_small_work(home, settings) if is_small else "",
        classarchive.archive_options(home, settings),
    )
    if any(options):
        conf.set(classarchive.DEFAULT_JAVA, " ".join(filter(None, options)))
    if os.environ.get(DEBUG_VARIABLE):
        gateway = SparkContext._gateway or launched(conf)
        SparkContext(conf=conf, gateway=gateway).setLogLevel("WARN")
        return
    with TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as printed:
        try:
            gateway = SparkContext._gateway or launched(conf, printed)
            SparkContext(conf=conf, gateway=gateway).setLogLevel("OFF")
        except (PySparkException, Py4JError, OSError) as error:
            printed.seek(0)
            raise _not_started(_cause(printed.read()) or str(error)) from error


def launched(conf: SparkConf, printed: IO[str] | IO[bytes] | None = None) -> JavaGateway:
    """Start a JVM in the private folder, so that nothing in the folder of this process is run.

    Python's workers, which Spark starts in the JVM's folder, would import modules from there, and
    libraries of Java look there for settings that name classes (`hadoop-metrics2.properties`).
    Relative paths of data still count from the folder of this process.

    `printed` takes what the JVM prints, which else goes where this process prints.
    """
    for name, separator in ((classarchive.JARS, ","), (classarchive.CLASS_PATH, os.pathsep)):
        if conf.get(name, ""):
            conf.set(name, _absolute(conf.get(name, ""), separator))
    if conf.get(_LOCAL_FOLDERS, ""):
        conf.set(_LOCAL_FOLDERS, _private(conf.get(_LOCAL_FOLDERS, "")))
    variables = {"SPARK_HOME": str(_home()), "PYTHONSAFEPATH": "1"}
    for name in _PATH_VARIABLES & os.environ.keys():
        variables.setdefault(name, _absolute(os.environ[name], os.pathsep))
    if os.environ.get(_LOCAL_VARIABLE):
        variables[_LOCAL_VARIABLE] = _private(os.environ[_LOCAL_VARIABLE])
    options = {"cwd": private_folder(), "stdout": printed, "stderr": printed}
    with _variables(variables):
        gateway: JavaGateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
    # Hadoop's file systems go by this, those apart that the JVM has opened for jars.
    gateway.jvm.java.lang.System.setProperty("user.dir", os.getcwd())
    gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    return gateway


def _private(folders: str) -> str:
    return ",".join(str(private_folder(each.strip())) for each in folders.split(",") if each)


def _absolute(paths: str, separator: str) -> str:
    """A list of paths, in which those that are relative count from the folder of this process."""
    found = paths.split(separator)
    return separator.join(os.path.abspath(each) if each and ":" not in each else each
                          for each in found)  # fmt: skip


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for what PySpark takes from nowhere else, and restore them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _home() -> Path:
    found = classarchive.spark_home(os.environ)
    if found is None:
        raise _not_started("no Spark beside this Python")
    return found


def _temporary_files(settings: Mapping[str, str]) -> str:
    """The option that has Java write temporary files where only this user can read them."""
    texts = [settings.get(name, "") for name in classarchive.JAVA_SETTINGS]
    texts += [os.environ.get(name, "") for name in classarchive.JAVA_VARIABLES]
    if any(_TEMPORARY in text for text in texts):
        return ""
    folder = str(private_folder()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_TEMPORARY}={folder}"'


def _cause(printed: str) -> str:
    """The line with the cause of a JVM's end: its first error, else its first line."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if "Exception" in line or "rror" in line]
    rest = [line for line in lines if "WARN" not in line]
    return _THREAD.sub("", next(iter((*errors, *rest)), ""))


@contextmanager
def translated_start() -> Iterator[None]:
    """Raise what Spark raises when a session is made as `SparkNotStarted`."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        raise _not_started(str(error)) from error


def _not_started(found: str) -> SparkNotStarted:
    return SparkNotStarted(
        "Spark did not start",
        found=found.splitlines()[0] if found else "no message",
        expected="Java 17 or newer, and a configuration that Spark accepts",
    )

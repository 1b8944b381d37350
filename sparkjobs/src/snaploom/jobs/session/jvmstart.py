"""Starts Spark's JVM, with what it prints kept back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from snaploom.errors import SnaploomError
from snaploom.jobs.hadoopsettings import DEFAULT_JAVA, SUBMITTED
from snaploom.jobs.session.classarchive import archive_options
from snaploom.jobs.session.smallwork import options_of_small_work
from snaploom.jobs.sessionserver.client import is_server_there, taken
from snaploom.jobs.sessionserver.launch import launch_of
from snaploom.jobs.sessionserver.messages import Address
from snaploom.planning.jobvariables import DEBUG_VARIABLE

_THREAD = re.compile(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?')


class SparkNotStarted(SnaploomError):
    """There is no Spark, or it cannot start."""

    reason = "SparkNotStarted"
    retryable = True


def context_of(name: str, settings: Mapping[str, str], *, may_take: bool, is_small: bool) -> None:
    """Make the SparkContext of this process: in a JVM that is ready for it, or in a new one.

    Args:
        name: of the application.
        settings: of Spark.
        may_take: whether a JVM may have been prepared with these settings.
        is_small: as for `start_context`.

    Raises:
        SparkNotStarted: no Java, or a configuration that Spark refuses.
    """
    is_first = SparkContext._gateway is None and not os.environ.get(DEBUG_VARIABLE)
    if may_take and is_first and is_server_there():
        launch = launch_of(Path(_find_spark_home()), settings, is_small=is_small)
        address = None if launch is None else taken(launch)
        if address is not None and _is_connected(address, name, settings):
            return
    start_context(name, settings, is_small=is_small)


def _is_connected(address: Address, name: str, settings: Mapping[str, str]) -> bool:
    """Make the context that is in a JVM that of this process; false where the JVM has gone."""
    variables = {SUBMITTED: str(address.port), "PYSPARK_GATEWAY_SECRET": address.secret}
    try:
        os.environ.update(variables)  # PySpark takes both from nowhere else
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for variable in variables:
            del os.environ[variable]
    try:
        found = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
        context = gateway.jvm.JavaSparkContext.fromSparkContext(found)
        SparkContext(conf=_conf(name, settings), gateway=gateway, jsc=context)
    except (PySparkException, Py4JError, OSError):
        SparkContext._gateway = SparkContext._jvm = None
        return False
    return True


def _conf(name: str, settings: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAppName(name).setAll(list(settings.items()))


def start_context(name: str, settings: Mapping[str, str], *, is_small: bool = False) -> None:
    """Start a JVM, and the SparkContext of this process in it.

    The JVM inherits the file that it prints into, and goes on after this process closed its own.

    Args:
        name: of the application.
        settings: of Spark.
        is_small: whether the JVM ends after little work.

    Raises:
        SparkNotStarted: no Java, or a configuration that Spark refuses.
    """
    conf = _conf(name, settings)
    home = Path(_find_spark_home())
    options = (
        settings.get(DEFAULT_JAVA, ""),
        options_of_small_work(home, settings) if is_small else "",
        archive_options(home, settings),
    )
    if any(options):
        conf.set(DEFAULT_JAVA, " ".join(filter(None, options)))
    if os.environ.get(DEBUG_VARIABLE):
        SparkContext(conf=conf).setLogLevel("WARN")
        return
    with TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as printed:
        try:
            kept_back = {"stdout": printed, "stderr": printed}
            gateway = SparkContext._gateway or launch_gateway(conf, kept_back)  # type: ignore[no-untyped-call]
            SparkContext(conf=conf, gateway=gateway).setLogLevel("OFF")
        except (PySparkException, Py4JError, OSError) as error:
            printed.seek(0)
            raise _not_started(_cause(printed.read()) or str(error)) from error


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
        hint="run 'java -version'; then look at run.spark.sparkConf",
    )

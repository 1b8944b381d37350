"""Whether anything but the environment of S3's clients configures Hadoop's client on a laptop.

A session sets where buckets are and how they are reached from the environment
(`jobs.session.s3a`), as our own client does. Beside that, Hadoop's client goes by settings of
Spark, by files on its classpath and by Java's properties. Where there are any, what it would list
is not known before it has started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from snaploom.models.run import RunSettings
from snaploom.storage.cloudstores import s3_endpoint

OF_HADOOP = "spark.hadoop."
"""Begins settings of Hadoop's; a session that runs takes them without it."""
CLASS_PATH = "spark.driver.extraClassPath"
"""Setting with what comes first on the driver's class path."""
JARS = "spark.jars"
"""Setting with jars that driver and executors load beside Spark's own."""
DEFAULT_JAVA = "spark.driver.defaultJavaOptions"
"""Setting with the options of the driver's Java that come before those of users."""
JAVA_SETTINGS = (DEFAULT_JAVA, "spark.driver.extraJavaOptions")
"""Settings with options of the driver's Java."""
FILES_OF_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""Environment variables that put folders on the classpath, or name Spark's own settings."""
JAVA_VARIABLES = (
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_SUBMIT_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
)
"""Environment variables with options of `spark-submit` and of Java."""
_PROPERTIES = ("-Dspark.", "-Daws.")
"""How properties of Java begin that Spark and Amazon's client go by."""
_SETS = (*_PROPERTIES, "--conf", "--properties-file", "--driver-class-path", "-cp", "-classpath")
"""Parts of options that set something of Spark's or Hadoop's."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable that `spark-submit` sets for a Python program whose JVM it started."""


def spark_home(environment: Mapping[str, str]) -> Path | None:
    """The folder of the Spark that a process starts; None without one.

    PySpark's own search begins with the folder above the working folder, where others may have put
    a `bin/spark-submit`.

    Args:
        environment: the process's.
    """
    named = environment.get("SPARK_HOME")
    if named:
        return Path(named).absolute()
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    package = Path(found.origin).parent
    places = (package / "spark-distribution", package, package.parents[1])
    return next((each for each in places if (each / "bin" / "spark-submit").is_file()), None)


def configured_elsewhere(run: RunSettings, environment: Mapping[str, str]) -> str:
    """Other configuration of Hadoop's client; empty without any.

    Args:
        run: settings of the session that is to come.
        environment: the process's.
    """
    return next(_configured(run, environment), "")


def _configured(run: RunSettings, environment: Mapping[str, str]) -> Iterator[str]:
    settings = {} if run.spark is None else run.spark.spark_conf
    for name, value in settings.items():
        is_folder = name == CLASS_PATH and not all(map(_is_jar, value.split(":")))
        is_java = name in JAVA_SETTINGS and any(text in value for text in _PROPERTIES)
        if name.startswith(OF_HADOOP) or is_folder or is_java:
            yield f"run.spark.sparkConf: {name}"
    for name in FILES_OF_SETTINGS:
        if environment.get(name):
            yield f"the environment: {name}"
    for name in JAVA_VARIABLES:
        if any(text in environment.get(name, "") for text in _SETS):
            yield f"the environment: {name}"
    yield from _files(environment)
    if s3_endpoint(environment) is None and _names_endpoint(environment):
        yield "AWS's own settings file: endpoint_url"


def _is_jar(entry: str) -> bool:
    """Whether an entry of a classpath has classes only, and no file with settings beside them."""
    return entry.endswith((".jar", "/*"))


def _files(environment: Mapping[str, str]) -> Iterator[str]:
    """Files with settings in Spark's own folder."""
    home = spark_home(environment)
    if home is None:
        yield "no Spark whose settings could be read"
        return
    for path in (home / "conf").glob("*"):
        if not path.name.endswith(".template"):
            yield f"the file {path}"


def _names_endpoint(environment: Mapping[str, str]) -> bool:
    """Whether Amazon's clients find another server in their settings file, which Java's reads."""
    place = environment.get("AWS_CONFIG_FILE") or Path("~/.aws/config").expanduser()
    try:
        return "endpoint_url" in Path(place).read_text("utf-8", "replace")
    except OSError:
        return False

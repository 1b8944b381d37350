"""Local cache of classes that Spark loads, from which a JVM starts in half the time."""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from snaploom.files.cloud import s3_endpoint
from snaploom.localfiles import cache_folder, is_own, is_own_folder
from snaploom.models.run import RunSettings

# Configuration of Hadoop's client on a laptop, beside the environment of S3's clients.

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
"""Prefixes of Java's properties that Spark and Amazon's client read."""
_SETS = (*_PROPERTIES, "--conf", "--properties-file", "--driver-class-path", "-cp", "-classpath")
"""Parts of options that set something of Spark's or Hadoop's."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable that `spark-submit` sets for a Python program whose JVM it started."""


def spark_home(environment: Mapping[str, str]) -> Path | None:
    """The folder of the Spark that a process starts; None without one.

    PySpark's own search begins with the folder above the working folder, where others may have put
    a `bin/spark-submit`.
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
    """Other configuration of Hadoop's client; empty without any."""
    return next(_configured(run, environment), "")


def _configured(run: RunSettings, environment: Mapping[str, str]) -> Iterator[str]:
    settings = {} if run.spark is None else run.spark.spark_conf
    for name, value in settings.items():
        # Entries of a classpath that are no jars may have files with settings.
        entries = value.split(":") if name == CLASS_PATH else ()
        is_folder = not all(entry.endswith((".jar", "/*")) for entry in entries)
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


def _files(environment: Mapping[str, str]) -> Iterator[str]:
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


# An archive of the classes that Spark loads, from which a laptop's JVM starts in half the time.

VARIABLE = "SNAPLOOM_CLASS_ARCHIVE"
"""Environment variable that is `off` where no archive is to be written or used."""
KEPT = 2
"""Archives that are kept, by last use: that of this Spark and that of one before; 182 MB each."""
RETRY_SECONDS = 24 * 60 * 60
"""After how long an archive that was begun and is not there is begun again: the JVM was killed, or
cannot write one."""
_FILE = "spark.jsa"
_BEGUN = "begun"
_MAGIC = bytes.fromhex("f00baba8")
"""Begins a dynamic archive in the machine's order of bytes (OpenJDK, `cds.h`); written last."""
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_CHOSEN = ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-Xshare")
_UNQUOTABLE = frozenset("\"'\\")


def archive_options(
    spark_home: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
    moment: float | None = None,
) -> str:
    """Options of a JVM that make it use the archive, or write it when it ends; empty for neither.

    `moment` is in seconds since 1970; now by default.
    """
    java = java_home(environment)
    if environment.get(VARIABLE) == "off" or java is None or _has_chosen(settings, environment):
        return ""
    if not (java / "lib" / "server" / "classes.jsa").is_file():  # which others build on
        return ""
    if has_configuration(spark_home, environment):  # no archive can be written with a folder of
        return ""  # files on the class path
    try:
        archive = _place(java, spark_home, settings, environment)
        if not (is_own_folder(archive.parent, 3) and is_own(archive)):
            return ""
        if _is_whole(archive):
            os.utime(archive.parent)
            return f'-XX:SharedArchiveFile="{archive}" {_QUIET}'
        if _begins(archive.parent, time.time() if moment is None else moment):
            return f'-XX:ArchiveClassesAtExit="{archive}" {_QUIET}'
    except OSError:
        return ""  # a cache that cannot be written costs time only
    return ""


def java_home(environment: Mapping[str, str]) -> Path | None:
    """The folder of the Java that Spark starts; None without one."""
    home = environment.get("JAVA_HOME")
    command = (
        Path(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    )
    return None if command is None else Path(command).resolve().parents[1]


def installed_files(java: Path, spark_home: Path) -> tuple[Path, ...]:
    """Files of Java and Spark that another version of either changes."""
    jars = sorted((spark_home / "jars").glob("*.jar"))
    return (java / "bin" / "java", java / "lib" / "modules", *jars)


def _has_chosen(settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    texts = [settings.get(name, "") for name in JAVA_SETTINGS]
    texts += [environment.get(name, "") for name in JAVA_VARIABLES]
    return any(option in text for text in texts for option in _CHOSEN)


def has_configuration(spark_home: Path, environment: Mapping[str, str]) -> bool:
    """Whether a folder on the class path has files, or may have."""
    folder = spark_home / "conf"
    is_named = any(environment.get(name) for name in FILES_OF_SETTINGS)
    return is_named or (folder.is_dir() and any(folder.iterdir()))


def _place(
    java: Path, spark_home: Path, settings: Mapping[str, str], environment: Mapping[str, str]
) -> Path:
    """Return the path of the archive of this Java and these jars, which need not exist."""
    facts = [str(spark_home), str(java), settings.get(CLASS_PATH, "")]
    facts += map(_state, installed_files(java, spark_home))
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    archive = cache_folder(environment) / "classes" / key / _FILE
    if _UNQUOTABLE & set(str(archive)):
        raise OSError("Spark cannot quote the path")
    return archive


def _state(file: Path) -> str:
    found = file.stat()
    return f"{file.name} {found.st_size} {found.st_mtime_ns}"


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as stream:
            return stream.read(len(_MAGIC)) in (_MAGIC, _MAGIC[::-1])
    except FileNotFoundError:
        return False


def _begins(folder: Path, moment: float) -> bool:
    """Whether the JVM of this process is to write the archive: one JVM at a time, and not often."""
    begun = folder / _BEGUN
    with suppress(FileNotFoundError):
        if begun.stat().st_mtime < moment - RETRY_SECONDS:
            begun.unlink()
    try:
        begun.touch(exist_ok=False)
    except FileExistsError:
        return False
    os.utime(begun, (moment, moment))
    _remove_oldest(each for each in folder.parent.iterdir() if each != folder)
    return True


def _remove_oldest(folders: Iterable[Path]) -> None:
    """Keep the archives that were used last; a JVM that has one mapped keeps it."""
    by_use = sorted(folders, key=lambda each: each.stat().st_mtime, reverse=True)
    for each in by_use[KEPT - 1 :]:
        shutil.rmtree(each, ignore_errors=True)


# Options of Java for little work: its code runs once, and is over before compiling it pays.

SMALL_BYTES = 16 * 2**20
"""Of files that are read: 16 MiB. With one compiler a run over 0.04 MiB takes 0.72 of the time,
one over 32 MiB of Parquet (600,000 rows, nine joins) 0.85, and one over 345 MiB 1.34 (measured:
`docs/design/speed.md`)."""
_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",  # of a Java that is built without one of these
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",  # as with both compilers; else 48 MiB are reserved
    "-XX:+UseParallelGC",  # nothing beside the work: pauses of a batch disturb nobody
)
_CHOSEN_COMPILER = re.compile(r"(^|[\s\"'=])(-X|@)")
"""An option of Java's virtual machine, or a file with options."""


def options_of_small_work(
    spark_home: Path, settings: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> str:
    """Options of a JVM that ends after little work; empty where anybody has chosen some."""
    texts = [settings.get(name, "") for name in JAVA_SETTINGS]
    texts += [environment.get(name, "") for name in JAVA_VARIABLES]
    if any(map(_CHOSEN_COMPILER.search, texts)) or has_configuration(spark_home, environment):
        return ""
    return " ".join(_OPTIONS)

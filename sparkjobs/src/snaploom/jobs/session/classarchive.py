"""An archive of the classes that Spark loads, from which a laptop's JVM starts in half the time.

Class-data sharing (JEP 350): the first JVM writes the archive when it ends, in the background, and
later ones map it. It fits one Java and the jars of one Spark. A JVM that it does not fit ignores
it, so that nothing but time depends on it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from snaploom.jobs.cachefolder import cache_folder, is_own, is_own_folder
from snaploom.jobs.hadoopsettings import (
    CLASS_PATH,
    FILES_OF_SETTINGS,
    JAVA_SETTINGS,
    JAVA_VARIABLES,
)

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

    Args:
        spark_home: folder of Spark.
        settings: Spark's settings, with which the JVM is started.
        environment: with which the JVM is started.
        moment: seconds since 1970; now by default.
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
    """Files of Java and Spark that another version of either changes.

    Args:
        java: folder of Java.
        spark_home: folder of Spark.
    """
    jars = sorted((spark_home / "jars").glob("*.jar"))
    return (java / "bin" / "java", java / "lib" / "modules", *jars)


def _has_chosen(settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether somebody else chose an archive, or none."""
    texts = [settings.get(name, "") for name in JAVA_SETTINGS]
    texts += [environment.get(name, "") for name in JAVA_VARIABLES]
    return any(option in text for text in texts for option in _CHOSEN)


def has_configuration(spark_home: Path, environment: Mapping[str, str]) -> bool:
    """Whether a folder on the class path has files, or may have.

    Args:
        spark_home: folder of Spark.
        environment: with which the JVM is started.
    """
    folder = spark_home / "conf"
    is_named = any(environment.get(name) for name in FILES_OF_SETTINGS)
    return is_named or (folder.is_dir() and any(folder.iterdir()))


def _place(
    java: Path, spark_home: Path, settings: Mapping[str, str], environment: Mapping[str, str]
) -> Path:
    """Where the archive of this Java and these jars is kept, whether it is there or not."""
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

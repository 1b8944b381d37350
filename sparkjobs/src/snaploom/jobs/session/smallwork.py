"""How Java is started for little work: its code runs once, and is over before compiling it pays.

Java compiles code that runs often twice: quickly at first, with counters that slow it down, and
once more when they show what is worth it. On a laptop of two cores that takes more time than it
saves a run over a few MiB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from snaploom.jobs.hadoopsettings import JAVA_SETTINGS, JAVA_VARIABLES
from snaploom.jobs.session.classarchive import has_configuration

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
_CHOSEN = re.compile(r"(^|[\s\"'=])(-X|@)")
"""An option of Java's virtual machine, or a file with options."""


def options_of_small_work(
    spark_home: Path, settings: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> str:
    """Options of a JVM that ends after little work; empty where anybody has chosen some.

    Args:
        spark_home: folder of Spark.
        settings: Spark's settings, with which the JVM is started.
        environment: with which the JVM is started.
    """
    texts = [settings.get(name, "") for name in JAVA_SETTINGS]
    texts += [environment.get(name, "") for name in JAVA_VARIABLES]
    if any(map(_CHOSEN.search, texts)) or has_configuration(spark_home, environment):
        return ""
    return " ".join(_OPTIONS)

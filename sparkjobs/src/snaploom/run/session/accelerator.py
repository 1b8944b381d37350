"""Comet in a session: whether it fits the Spark at hand, and what falls back to Spark."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from snaploom.errors import SnaploomError
from snaploom.models.run import SparkSettings
from snaploom.policy.acceleration import PLUGIN, PLUGINS, is_accelerated
from snaploom.run.driverlock import install_hint
from snaploom.run.session.classarchive import CLASS_PATH, JARS
from snaploom.sources.databases.drivers import COMET_JAR, COMET_SPARK
from snaploom.spark.jvm import is_native

PATH = "spec.run.spark.accelerator"
_JAR = re.compile(r"comet-spark-spark(\d+\.\d+)_[\w.-]+\.jar")
"""Name of a jar of Comet, with the minor version of the Spark that it is built for."""
MOST_REASONS = 50
"""Reasons of one run that its Report has."""
_LONGEST_REASON = 300
_PATIENCE_MILLIS = 30_000
"""Time for Spark's listeners to hear of the last query; they need milliseconds."""
_IDS = re.compile(r"#\d+L?")
"""Numbers that Spark gives to columns: other ones in each plan."""


class AcceleratorNotUsable(SnaploomError):
    """An accelerator is asked for that this Spark has not, or that is built for another one."""


def refuse_unfit(settings: Mapping[str, str], home: Path | None, *, version: str = "") -> None:
    """Stop before Spark starts, where its version or a missing jar would leave a run half native.

    Args:
        settings: of the session to come, with its jars.
        home: folder of Spark, whose own jars count.
        version: of Spark; that of this PySpark where it is empty.

    Raises:
        AcceleratorNotUsable: it cannot be used.
    """
    if PLUGIN not in settings.get(PLUGINS, ""):
        return
    named = [*settings.get(JARS, "").split(","), *settings.get(CLASS_PATH, "").split(":")]
    own = [] if home is None else [file.name for file in (home / "jars").glob("comet-spark-*.jar")]
    found = [name for each in (*named, *own) if _JAR.fullmatch(name := Path(each).name)]
    if sys.platform != "linux":
        raise AcceleratorNotUsable(
            "the accelerator COMET has no native library for this system",
            path=PATH,
            found=sys.platform,
            expected="Linux on x86-64 or ARM64",
            hint="run in a container of Linux; or leave `accelerator` out, or set it to NONE",
        )
    spark = ".".join((version or pyspark.__version__).split(".")[:2])
    if spark not in {_built_for(name) for name in found or [COMET_JAR.file_name]}:
        raise AcceleratorNotUsable(
            "the accelerator COMET is built for another Spark",
            path=PATH,
            found=f"Spark {version or pyspark.__version__}, and "
            f"{found[0] if found else COMET_JAR.file_name}",
            expected=f"Spark {COMET_SPARK}",
            hint=f"on a laptop: pip install 'pyspark=={COMET_SPARK}.*'; in a cluster: an image "
            "with Spark of that version; or leave `accelerator` out, or set it to NONE",
        )
    if not found:
        raise AcceleratorNotUsable(
            "the accelerator COMET is not installed",
            path=PATH,
            found="no jar of it among those of Spark and of the project",
            expected=COMET_JAR.coordinates,
            hint=f"{install_hint(COMET_JAR)}; in a cluster: an image that has it; or leave "
            "`accelerator` out, or set it to NONE",
        )


def _built_for(name: str) -> str:
    found = re.search(r"spark(\d+\.\d+)_", name)
    return "" if found is None else found[1]


def refuse_session_without(spark: SparkSession, asked: SparkSettings | None) -> None:
    """Stop where a session that runs is to weave with an accelerator that it was started without.

    Raises:
        AcceleratorNotUsable: it was.
    """
    if is_accelerated(asked) and not is_native(spark):
        raise AcceleratorNotUsable(
            "the accelerator COMET is asked for in a session that was started without it",
            path=PATH,
            found=f"a session without {PLUGINS}={PLUGIN}",
            expected="a session that Snaploom makes, or one with this plug-in",
            hint="begin a new process, so that Spark is started with it; or set `accelerator` to "
            "NONE",
        )


def used_by(spark: SparkSession) -> str:
    """The accelerator of a session with its version, such as `COMET 1.2.0`; empty without one."""
    version = spark.conf.get("spark.comet.version", "")
    return f"COMET {version}".strip() if is_native(spark) else ""


@dataclass
class Fallbacks:
    """Reasons why Spark did something itself in the queries of one run."""

    spark: SparkSession
    about: str
    """Beginning of the descriptions of these queries."""
    _reasons: dict[str, None] = field(default_factory=dict)
    _after: int = -1
    """Number of the last query that was looked at."""

    def look(self) -> tuple[str, ...]:
        """The reasons so far, with those of the queries since the last look."""
        with suppress(Py4JError, OSError):  # a Spark that died has none
            if is_native(self.spark):
                self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_PATIENCE_MILLIS)
                for plan in self._plans():
                    self._reasons |= dict.fromkeys(reasons_of(plan))
        return tuple(self._reasons)[:MOST_REASONS]

    def _plans(self) -> Iterator[str]:
        queries = self.spark._jsparkSession.sharedState().statusStore().executionsList()
        before, newest = self._after, self._after
        for index in reversed(range(queries.size())):
            one = queries.apply(index)
            if (number := int(one.executionId())) <= before:
                break
            newest = max(newest, number)
            if str(one.description()).startswith(self.about):
                yield str(one.physicalPlanDescription())
        self._after = newest


def reasons_of(plan: str) -> list[str]:
    """The reasons in the text of a plan, without the numbers of columns."""
    _, _, extended = plan.partition("== Extended Information")
    lines = (_IDS.sub("", line).strip() for line in extended.splitlines()[1:])
    # A quoted text with a line break goes on in lines that begin with a bracket.
    return [line[:_LONGEST_REASON] for line in lines if line[:1].isalnum()]

"""A small Spark for tests: two cores, two shuffle partitions, no web pages, nothing in the tree."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from snaploom.models.run import Accelerator, SparkSettings
from snaploom.policy.acceleration import accelerated_settings
from snaploom.run.session.spark import WITHOUT_CALL_SITES
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.spark.gate import ALLOW_SETTING
from snaploom.spark.jvm import SESSION_SETTINGS, jvm_of

SETTINGS: Mapping[str, str] = {
    **{setting.name: setting.value for setting in SESSION_SETTINGS},
    **WITHOUT_CALL_SITES,
    # As a session that Snaploom has made: one of somebody else's would keep its settings.
    ALLOW_SETTING: "{}",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.pyspark.python": sys.executable,
    "spark.pyspark.driver.python": sys.executable,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What the engine needs, and what keeps tests small and quiet."""

INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Expressions are evaluated one by one, not compiled: quicker for a few rows."""
COMPILED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Spark's defaults, which jobs of users have."""
UNUSED_DEFAULTS = (
    "yarn.", "mapreduce.jobhistory.", "mapreduce.shuffle.", "hadoop.http.", "hadoop.registry.",
    "ipc.[port_number].", "ha.", "fs.gs.", "fs.azure.", "fs.adl.", "fs.ftp.", "fs.viewfs.",
)  # fmt: skip
"""How Hadoop's settings begin that only servers and stores read which no test has."""


ACCELERATED = "SNAPLOOM_TEST_COMET"
"""Environment variable with the jar of Comet, where tests are to run with it."""


def accelerated() -> dict[str, str]:
    """Settings with which the session of tests has Comet; nothing where no jar is named."""
    jar = os.environ.get(ACCELERATED)
    if not jar:
        return {}
    return {
        **accelerated_settings(SparkSettings(accelerator=Accelerator.COMET), "1g"),
        "spark.jars": jar,
    }


def make_session(folder: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process; `folder` takes warehouse, scratch space and Derby's files."""
    # Workers run this Python, whatever `python3` is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("snaploom-tests")
    places = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.driver.extraJavaOptions": (
            f"-Duser.timezone=UTC -Dderby.system.home={folder / 'derby'}"
        ),
    }
    # The long forms of the proofs compile, as jobs of users do.
    plans = COMPILED if os.environ.get("SNAPLOOM_PROVE") else INTERPRETED
    given = {**SETTINGS, **plans, **places, **accelerated(), **(settings or {})}
    for key, value in given.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    _forget_unused_defaults(session)
    return session


def _forget_unused_defaults(spark: SparkSession) -> None:
    """Take Hadoop's defaults for servers and stores that no test has out of the session.

    Spark writes and reads the whole configuration, of 1,100 settings, for each scan and for each
    task that writes: 26 ms of processor time, a tenth of that of tests with small data (measured).
    """
    jvm = jvm_of(spark)
    # What adds defaults when it is loaded has to be there: all come back when some are added.
    jvm.org.apache.hadoop.mapred.JobConf(False)
    spark._jsparkSession.sessionState().newHadoopConf()
    configuration = spark._jsc.hadoopConfiguration()
    for prefix in UNUSED_DEFAULTS:
        rests = configuration.getPropsWithPrefix(prefix).keySet()
        for rest in str(jvm.java.lang.String.join(",", rests)).split(","):
            configuration.unset(f"{prefix}{rest}")


@contextmanager
def compiled(spark: SparkSession) -> Iterator[None]:
    """Plans are compiled, as jobs of users have it: for data of more than a few rows.

    Elsewhere tests do without. They have thousands of small queries, each with a plan of its own,
    of which compiling takes an eighth to a third of the processor time, and Spark proves itself
    that both ways give the same values. Examples, pages and all processes of tests compile.
    """
    with contextlib.ExitStack() as stack:
        for name, value in COMPILED.items():
            stack.enter_context(setting(spark, name, value))
        yield

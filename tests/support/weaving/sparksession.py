"""A small Spark for tests: two cores, two shuffle partitions, no web pages, nothing in the tree."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from snaploom.engine.settings import SESSION_SETTINGS
from snaploom.hadoop.jvm import jvm_of
from snaploom.jobs.session.spark import WITHOUT_CALL_SITES
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.sparkgate.gate import ALLOW_SETTING

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
    for key, value in {**SETTINGS, **places, **(settings or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    jvm_of(session)
    return session


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Expressions are evaluated one by one, not compiled: quicker for a few rows.

    For tests of hundreds of small queries, each with a plan of its own, of which compiling takes a
    third of the processor time. Spark proves itself that both ways give the same values. Jobs
    compile, as all tests do that do not ask for this.
    """
    with (
        setting(spark, "spark.sql.codegen.wholeStage", "false"),
        setting(spark, "spark.sql.codegen.factoryMode", "NO_CODEGEN"),
    ):
        yield

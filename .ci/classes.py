"""Archives the classes that a Spark session loads, for the JVMs that tests start.

Such a JVM needs half of the processor time to its first result (class-data sharing, JEP 350). The
archive, `.venv/spark-classes.jsa`, fits one Java and the jars of one environment; a JVM that it
does not fit ignores it, so that nothing but time depends on it.

`.venv/bin/python .ci/classes.py` does nothing when the archive is there already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
_KEY = Path(sys.prefix) / "spark-classes.key"
_SECONDS = 300
"""How long the JVM may take to write the archive; it takes some ten seconds."""


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else "java"
    return subprocess.run([command, "-version"], capture_output=True, text=True, check=True).stderr


def _key() -> str:
    """What the archive depends on: Java, and the environment."""
    return _java() + (Path(sys.prefix) / ".installed").read_text("utf-8")


def _use(folder: str) -> None:
    """Let a session do what most tests do, and end it with its JVM."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.range(100).selectExpr("id", "id % 7 AS key", "cast(id AS string) AS text")
    rows.write.parquet(f"{folder}/rows")
    read = spark.read.parquet(f"{folder}/rows")
    grouped = read.groupBy("key").agg({"id": "max", "text": "min"})
    read.join(grouped, "key", "left").where("text > '1'").orderBy("id").collect()
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=_SECONDS)


def main() -> None:
    """Write the archive, unless it is there."""
    key = _key()
    if ARCHIVE.exists() and _KEY.exists() and _KEY.read_text("utf-8") == key:
        return
    ARCHIVE.unlink(missing_ok=True)
    options = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={ARCHIVE} -Xlog:cds=off"
    os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -Xlog:cds+dynamic=off"
    with tempfile.TemporaryDirectory() as folder:
        _use(folder)
    _KEY.write_text(key, "utf-8")


if __name__ == "__main__":
    main()

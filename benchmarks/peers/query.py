"""Delta's and Iceberg's own skipping on given Parquet files; runs in the peer's environment.

Reads one JSON document from standard input: `kind` (`delta` or `iceberg`), `jars`, `data` (folder
of Parquet files, which stays as it is), `work` (folder for the table), `repeat`, and `where` (a
condition; without one the table is made). Prints one JSON document: seconds that making the table
took, or what `measured` found. Needs nothing but the peer's PySpark.
"""

import json
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Raw = dict[str, Any]
EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
CATALOGS = {
    "delta": {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
    "iceberg": {
        "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.peer.type": "hadoop",
    },
}
FILES_READ = {"delta": ("numFiles",), "iceberg": ("resultDataFiles",)}
THREADS = 8
"""That read footers while a table of Iceberg is made; with one, 10,000 files took 193 s."""
FEWEST, SECONDS = 3, 60.0
"""Warm runs of a query that takes long, and seconds after which there are no more: reading all of
10,000 files takes five seconds, and differs little from run to run."""


def main() -> None:
    """Make the table, or run one query; print what was measured."""
    task = json.load(sys.stdin)
    spark = session(task)
    if "where" not in task:
        started = perf_counter()
        make_table(spark, task)
        answer: Raw = {"build": perf_counter() - started}
    else:
        text = f"SELECT count(*) AS n, sum(id) AS s FROM {table_of(task)} WHERE {task['where']}"
        answer = measured(lambda: spark.sql(text), task["repeat"], FILES_READ[task["kind"]])
    print(json.dumps({**answer, "spark": spark.version}))
    spark.stop()


def session(task: Raw) -> SparkSession:
    """A session with the peer's runtime and the settings of the benchmark."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(task["jars"]))
        .config("spark.sql.extensions", EXTENSIONS[task["kind"]])
        .config("spark.sql.catalog.peer.warehouse", f"{task['work']}/warehouse")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
    )
    for key, value in CATALOGS[task["kind"]].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def table_of(task: Raw) -> str:
    """The name of the table in SQL."""
    return f"delta.`{task['work']}/delta`" if task["kind"] == "delta" else "peer.db.t"


def make_table(spark: SparkSession, task: Raw) -> None:
    """Turn the files into a table of the peer, file by file as they are."""
    if task["kind"] == "delta":
        copy = Path(task["work"]) / "delta"
        shutil.copytree(task["data"], copy)
        spark.sql(f"CONVERT TO DELTA parquet.`{copy}`")
        return
    schema = spark.read.parquet(task["data"]).schema
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS peer.db")
    spark.sql(f"CREATE TABLE peer.db.t ({columns}) USING iceberg")
    given = {"table": "db.t", "source_table": f"`parquet`.`{task['data']}`"}
    arguments = ", ".join(f"{name} => '{value}'" for name, value in given.items())
    spark.sql(f"CALL peer.system.add_files({arguments}, parallelism => {THREADS})")


def measured(query: Callable[[], DataFrame], repeat: int, names: tuple[str, ...]) -> Raw:
    """One query, the first of its session, and then several times more.

    Args:
        query: makes the frame, which has one row with `n` and `s`.
        repeat: how often it runs after the first time, less often where that takes long.
        names: of the metric that counts the files of a scan.

    Returns:
        `cold` and `warm` (medians): `planning` and `total` in milliseconds; `files`, and `answer`.
    """
    times: list[tuple[float, float]] = []
    began = perf_counter()
    while len(times) <= (repeat if perf_counter() - began < SECONDS else FEWEST):
        started = perf_counter()
        frame = query()
        frame._jdf.queryExecution().executedPlan()
        planned = perf_counter()
        row = frame.collect()[0]
        times.append((1000 * (planned - started), 1000 * (perf_counter() - started)))
    warm = [statistics.median(each) for each in zip(*times[1:], strict=True)]
    return {
        "cold": dict(zip(("planning", "total"), times[0], strict=True)),
        "warm": dict(zip(("planning", "total"), warm, strict=True)),
        "files": files_read(frame, names),
        "answer": [row["n"], row["s"]],
    }


def files_read(frame: DataFrame, names: tuple[str, ...]) -> int:
    """Sum of a metric over the leaves of the executed plan."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves().iterator()
    found = 0
    while leaves.hasNext():
        metrics = leaves.next().metrics()
        for name in names:
            if metrics.contains(name):
                found += metrics.apply(name).value()
    return found


if __name__ == "__main__":
    main()

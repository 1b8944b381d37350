"""Delta's and Iceberg's own skipping on given Parquet files; runs in the peer's environment.

Reads one JSON document from standard input: `kind` (`delta` or `iceberg`), `jars`, `data` (folder
of Parquet files, which stays as it is), `work` (folder for the table), `queries` (name -> WHERE)
and `repeat`. Prints one JSON document: for each query, files read, milliseconds of planning and of
the whole query (medians), rows and sum. Needs nothing but the peer's PySpark.
"""

import json
import shutil
import statistics
import sys
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


def main() -> None:
    """Make the table, run the queries, print what was measured."""
    task = json.load(sys.stdin)
    spark = session(task)
    started = perf_counter()
    table = make_table(spark, task)
    built = perf_counter() - started
    measured = {name: measure(spark, table, where, task) for name, where in task["queries"].items()}
    print(json.dumps({"build": built, "queries": measured, "spark": spark.version}))
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


def make_table(spark: SparkSession, task: Raw) -> str:
    """Turn the files into a table of the peer, file by file as they are."""
    if task["kind"] == "delta":
        copy = Path(task["work"]) / "delta"
        shutil.copytree(task["data"], copy)
        spark.sql(f"CONVERT TO DELTA parquet.`{copy}`")
        return f"delta.`{copy}`"
    schema = spark.read.parquet(task["data"]).schema
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS peer.db")
    spark.sql(f"CREATE TABLE peer.db.t ({columns}) USING iceberg")
    source = f"`parquet`.`{task['data']}`"
    spark.sql(f"CALL peer.system.add_files(table => 'db.t', source_table => '{source}')")
    return "peer.db.t"


def measure(spark: SparkSession, table: str, where: str, task: Raw) -> Raw:
    """One query several times; the first run, which warms up, is not counted."""
    planning, total = [], []
    for number in range(task["repeat"] + 1):
        started = perf_counter()
        frame = spark.sql(f"SELECT count(*) AS n, sum(id) AS s FROM {table} WHERE {where}")
        frame._jdf.queryExecution().executedPlan()
        planned = perf_counter()
        row = frame.collect()[0]
        if number:
            planning.append(planned - started)
            total.append(perf_counter() - started)
    return {
        "files": files_read(frame, FILES_READ[task["kind"]]),
        "planning": 1000 * statistics.median(planning),
        "total": 1000 * statistics.median(total),
        "rows": row["n"],
        "sum": row["s"],
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

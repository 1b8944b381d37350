"""Our own side of the comparison with peers, in the settings that they have.

Reads one JSON document from standard input: `data` (folder of Parquet files), `base` (folder with
its index), `schema` (DDL), `where` and `repeat`. Prints what `query.measured` found.
"""

import json
import sys

from pyspark.sql import DataFrame
from query import measured

from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.run.session.spark import build_session
from snaploom.skipping.spark.interfaces.enable import enable


def main() -> None:
    """Run the query in a session of its own."""
    task = json.load(sys.stdin)
    settings = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="2g")))
    spark = build_session("bench-peers", settings)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    enable(spark, task["base"])

    def query() -> DataFrame:
        frame = spark.read.schema(task["schema"]).parquet(task["data"]).where(task["where"])
        return frame.selectExpr("count(*) AS n", "sum(id) AS s")

    print(json.dumps({**measured(query, task["repeat"], ("numFiles",)), "spark": spark.version}))
    spark.stop()


if __name__ == "__main__":
    main()

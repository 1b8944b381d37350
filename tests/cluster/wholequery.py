"""Runs in a pod of the image of jobs: two queries with skipping on, and which files they opened."""

from __future__ import annotations

import json
import sys

from pyspark.sql import DataFrame, SparkSession

import snaploom
from snaploom import skipping

PLACE = sys.argv[1]
WEEK = "{0} >= TIMESTAMP '2013-02-04' AND {0} < TIMESTAMP '2013-02-11'"


def counted(spark: SparkSession, frame: DataFrame, column: str) -> dict[str, int]:
    rows = frame.where(WEEK.format(column)).count()
    last = skipping.statistics(spark).recent[-1]
    return {"rows": rows, "files": last.files, "opened": last.kept_files}


session = SparkSession.Builder().master("local[1]").config("spark.ui.enabled", "false")
spark = session.config("spark.sql.session.timeZone", "UTC").getOrCreate()
skipping.enable(spark, f"{PLACE}/indexes/")
source = spark.read.parquet(f"{PLACE}/sources/flights")
found = {
    "output": counted(spark, snaploom.read(spark, f"{PLACE}/wide/"), "data.time_hour"),
    "source": counted(spark, source, "time_hour"),
}
print(json.dumps(found))

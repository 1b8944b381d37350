"""A program that starts Spark with some settings, and prints the metrics of its web page."""

import json
import sys
import urllib.request

from pyspark.sql import SparkSession


def main(settings: dict[str, str], paths: list[str]) -> None:
    builder = SparkSession.Builder().master("local[1]").config("spark.ui.port", "0")
    for name, value in {"spark.driver.host": "127.0.0.1", **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.range(10).count()
    place = spark.sparkContext.uiWebUrl
    pages = {}
    for path in paths:
        with urllib.request.urlopen(f"{place}{path}", timeout=30) as answer:
            pages[path] = answer.read().decode()
    spark.stop()
    sys.stdout.write(json.dumps(pages))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])

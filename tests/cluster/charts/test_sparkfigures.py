"""A driver with the chart's settings exports its metrics to Prometheus, under stable names."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.cluster.chart import Rendered


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


DEADLINE = 600
"""Seconds for one Spark on a machine that is busy with other tests."""


@pytest.mark.spark
def test_spark_metrics_are_where_prometheus_scrapes() -> None:
    rendered = Rendered.of(
        {"crds": {"enabled": False}, "metrics": {"podMonitor": {"enabled": True}}}
    )
    (monitor,) = rendered.of_kind("PodMonitor")
    paths = [endpoint["path"] for endpoint in monitor["spec"]["podMetricsEndpoints"]]
    settings = dict(rendered.settings().spark.spark_conf)
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(settings), *paths],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=DEADLINE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    pages = json.loads(done.stdout)
    driver, executors = (pages[path] for path in paths)
    assert re.search(
        r"^metrics_snaploom_driver_jvm_heap_used_Value\{.*\} \d+$", driver, re.MULTILINE
    )
    assert re.search(r"^metrics_executor_completedTasks_total\{.*\} 1", executors, re.MULTILINE)

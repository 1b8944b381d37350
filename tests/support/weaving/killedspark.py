"""A program: `snaploom`, whose JVM is killed when a command has begun its first group of jobs."""

from __future__ import annotations

import sys
from unittest import mock

from pyspark.sql import SparkSession

from snaploom.cli.main import main
from snaploom.run.job import JobGroup

_enter = JobGroup.enter


def _killed(group: JobGroup, spark: SparkSession, name: str, description: str) -> None:
    _enter(group, spark, name, description)
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # of a session with a JVM
    gateway.proc.kill()
    gateway.proc.wait()


if __name__ == "__main__":
    with mock.patch.object(JobGroup, "enter", _killed):
        main(sys.argv[1:])

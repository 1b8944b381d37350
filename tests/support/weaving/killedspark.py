"""A program: `snaploom`, whose JVM is killed when a command has begun its first group of jobs."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from snaploom.cli.main import main
from snaploom.jobs.job import JobGroup

_enter = JobGroup.enter


def _killed(group: JobGroup, spark: SparkSession, name: str, description: str) -> None:
    _enter(group, spark, name, description)
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    process.kill()
    process.wait()


if __name__ == "__main__":
    JobGroup.enter = _killed  # type: ignore[method-assign]
    main(sys.argv[1:])

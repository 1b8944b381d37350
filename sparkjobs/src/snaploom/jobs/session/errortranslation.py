"""Translates Spark's exceptions to Snaploom's errors; other exceptions pass through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from snaploom.engine.failures import translate
from snaploom.errors import SnaploomError

SPARK_FAILURES = (PySparkException, Py4JError, OSError)
"""Everything that a call into Spark raises; an OSError when its JVM is gone."""


class SparkStopped(SnaploomError):
    """Spark was shut down under a run, as `spark-submit` does when it is terminated."""

    reason = "SparkStopped"
    retryable = True


@contextmanager
def translated(resource: str | None = None) -> Iterator[None]:
    """Raise what Spark raises as an error of Snaploom.

    Args:
        resource: `Kind/name` of the resource at work, when it is known.

    Raises:
        SnaploomError: what Spark's failure means.
    """
    try:
        yield
    except SPARK_FAILURES as failure:
        raise translate(failure, resource=resource) from failure

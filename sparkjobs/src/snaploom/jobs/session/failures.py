"""What Spark raises, told in Snaploom's words; faults of Snaploom itself pass through."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from snaploom.engine.failures import translate
from snaploom.errors import SnaploomError

SPARK_FAILURES = (PySparkException, Py4JError, OSError)
"""Everything that a call into Spark raises; an OSError when its JVM is gone."""


SHUTDOWN_SECONDS = 3.0
"""Seconds from the first call that fails to the end of the context; usually a tenth of one."""


class SparkStopped(SnaploomError):
    """Spark was shut down under a run, as `spark-submit` does when it is told to end."""

    reason = "SparkStopped"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "Spark was shut down while the run was at work",
            hint="run again; what was published stays, and nothing is half published",
        )


def is_gone(context: SparkContext | None) -> bool:
    """Whether a context was shut down, or its JVM has ended; without a context it was never there.

    A JVM that ends fails in ways that Py4J does not foretell: of a class that is gone it makes a
    package, which is a TypeError when it is called.
    """
    if context is None:
        return False
    try:
        return bool(context._jsc.sc().isStopped())
    except Exception:  # noqa: BLE001 - see above
        return True


def spark_goes(seconds: float = SHUTDOWN_SECONDS) -> bool:
    """Whether the Spark of this process was shut down, or its JVM ends within some seconds.

    Calls fail before a JVM that is told to end has stopped its context.
    """
    deadline = time.monotonic() + seconds
    while not is_gone(SparkContext._active_spark_context):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


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

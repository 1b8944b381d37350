"""What skipping did in a session so far."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from snaploom.skipping.spark import rule
from snaploom.skipping.spark.enable import decider_of
from snaploom.skipping.spark.usagecounters import Statistics


def statistics(spark: SparkSession) -> Statistics:
    """Sums over the queries of a session and of all sessions of its application.

    Raises:
        SkippingNotAvailable: skipping is not enabled.
    """
    counted = decider_of(spark).counting.read()
    failures, message = rule.errors(spark)
    # What goes wrong in the JVM is counted there, since it started.
    return replace(
        counted,
        errors=counted.errors + failures,
        last_error=counted.last_error or message or "",
    )


def reset_statistics(spark: SparkSession) -> None:
    """Begin to sum anew; when indexes were last used stays known.

    Raises:
        SkippingNotAvailable: skipping is not enabled.
    """
    decider_of(spark).counting.reset()

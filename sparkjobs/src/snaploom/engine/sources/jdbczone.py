"""Drivers hand times over by way of Java's own zone, which must be UTC therefore.

Elsewhere H2 and MariaDB shift times without a zone by its offset, PostgreSQL those in the hour that
a zone skips a year, and MySQL refuses that hour: measured, and told by nobody.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from snaploom.errors import SourceError


class ZoneNotUtc(SourceError):
    """A database cannot be read rightly, since Java works in a zone that is not UTC."""

    reason = "ZoneNotUtc"
    exit_code = 2


def refuse_other_zones(spark: SparkSession, resource: str) -> None:
    """Make sure that Java works in UTC; asked of Spark's driver, which executors should be like.

    Args:
        spark: the session.
        resource: `Kind/name` of the source.

    Raises:
        ZoneNotUtc: it does not.
    """
    jvm = spark.sparkContext._gateway.jvm  # type: ignore[union-attr]  # set once a session exists
    zone = jvm.java.time.ZoneId.systemDefault()
    if str(zone.normalized().getId()) == "Z":
        return
    raise ZoneNotUtc(
        "times of databases would be read wrongly: drivers hand them over in Java's zone",
        resource=resource,
        found=str(zone.getId()),
        expected="UTC",
        hint="start driver and executors with -Duser.timezone=UTC (spark.driver.extraJavaOptions "
        "and spark.executor.extraJavaOptions)",
    )

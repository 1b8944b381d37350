"""Drivers hand times over by way of Java's own zone, which must be UTC therefore.

Elsewhere H2 and MariaDB shift times without a zone by its offset, PostgreSQL those in the hour that
a zone skips a year, and MySQL refuses that hour: measured, and not documented.
"""

from __future__ import annotations

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from snaploom.errors import SourceError
from snaploom.hadoop.jvm import jvm_of

EXECUTOR_OPTIONS = ("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions")
"""The JVM options of executors, in the order in which Spark writes them: the last one counts."""
_ZONE = "-Duser.timezone="


class ZoneNotUtc(SourceError):
    """A database cannot be read rightly, since Java works in a zone that is not UTC."""

    reason = "ZoneNotUtc"
    exit_code = 2


def refuse_other_zones(spark: SparkSession, resource: str) -> None:
    """Make sure that Java works in UTC, in the driver and in executors.

    The driver is asked; executors, which may not have begun, have what the session starts them
    with.

    Raises:
        ZoneNotUtc: it does not.
    """
    zones = jvm_of(spark).java
    own = zones.util.TimeZone.getDefault()
    if not _is_utc(own):
        raise _not_utc(resource, str(own.toZoneId().getId()))
    if str(spark.sparkContext.master).split("[")[0] == "local":
        return
    conf = spark.sparkContext.getConf()
    java_options = " ".join(conf.get(name, "") for name in EXECUTOR_OPTIONS)
    zone = zone_in(java_options)
    if zone is None or not _is_utc(zones.util.TimeZone.getTimeZone(zone)):
        raise _not_utc(resource, f"{zone or 'the zones of their machines'}, of executors")


def zone_in(options: str) -> str | None:
    """Java's zone as options of its command line give it; None where the machine decides."""
    found = [one for one in options.split() if one.startswith(_ZONE)]
    return found[-1].removeprefix(_ZONE) if found else None


def _is_utc(zone: JavaObject) -> bool:
    return str(zone.toZoneId().normalized().getId()) == "Z"


def _not_utc(resource: str, found: str) -> ZoneNotUtc:
    return ZoneNotUtc(
        "times of databases would be read wrongly: drivers hand them over in Java's zone",
        resource=resource,
        found=found,
        expected="UTC",
        hint="start driver and executors with -Duser.timezone=UTC (spark.driver.extraJavaOptions "
        "and spark.executor.extraJavaOptions)",
    )

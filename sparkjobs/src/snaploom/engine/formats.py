"""Names of formats as Spark's reader and writer take them (ruling D22)."""

from __future__ import annotations

AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"
"""Avro's implementation. Spark 4.3 has it without the short name `avro`, and where the separate
jar brings the short name, the class is the same."""


def spark_format(name: str) -> str:
    """The name by which Spark finds a format; all but Avro pass as they are."""
    return AVRO_CLASS if name.lower() == "avro" else name

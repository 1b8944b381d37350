"""Names of formats as Spark's reader and writer take them (ruling D22)."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.outputfolder import DataFormat

AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"
"""Avro's implementation. Spark 4.3 has it without the short name `avro`, and where the separate
jar brings the short name, the class is the same."""


SPARK_FORMATS: Mapping[DataFormat, str] = {
    DataFormat.PARQUET: "parquet",
    DataFormat.AVRO: AVRO_CLASS,
    DataFormat.JSONL: "json",
    DataFormat.ICEBERG: "parquet",
}
"""What Spark calls the files of each format that is published."""

JSON_OPTIONS: Mapping[str, str] = {
    # Spark's defaults write milliseconds, and would lose the last three digits without a word.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}
"""With which JSON is written and read, so that times come back as they were."""

READ_OPTIONS: Mapping[DataFormat, Mapping[str, str]] = {
    DataFormat.PARQUET: {},
    DataFormat.AVRO: {},
    DataFormat.JSONL: {**JSON_OPTIONS, "mode": "FAILFAST"},
    DataFormat.ICEBERG: {},
}
"""What Spark must know to read back what was written."""


SOURCE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "csv": {"mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
    "xml": {"mode": "FAILFAST"},
}
"""With which files of others are read, unless a source says otherwise: Spark by itself gives NULL
for what does not fit the schema, and takes columns of CSV by their place whatever the header is."""


def spark_format(name: str) -> str:
    """The name by which Spark finds a format; all but Avro pass as they are."""
    return AVRO_CLASS if name.lower() == "avro" else name

"""Names of formats as Spark's reader and writer take them (rule W7)."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.outputfolder import DataFormat
from snaploom.planning.fileformats import AVRO_CLASS

FORMAT_NAMES: Mapping[DataFormat, str] = {
    DataFormat.PARQUET: "parquet",
    DataFormat.AVRO: "avro",
    DataFormat.JSONL: "json",
    DataFormat.ICEBERG: "parquet",
}
"""The files of each format that is published, as declarations name them."""

SPARK_FORMATS: Mapping[DataFormat, str] = {
    **FORMAT_NAMES,
    DataFormat.AVRO: AVRO_CLASS,
}
"""Spark's name of the files of each format that is published."""

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
"""Options that Spark needs to read back the written files."""

NULL_TEXT = "\ufdd0snaploom: no value\ufdd0"
"""The text of an absent value of CSV, so that `""` is an empty text and not NULL. U+FDD0 is a
character that Unicode keeps out of texts that are exchanged."""

SOURCE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "json": {"mode": "FAILFAST"},
    "xml": {"mode": "FAILFAST"},
}
"""Options to read files of others with, unless a source sets its own: Spark by itself gives NULL
for a value that does not fit the schema. Those of CSV are in
`engine.sources.files.text.csvdialect`."""

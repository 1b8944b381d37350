"""Published files as a relation of Spark whose files are those of the manifest.

`spark.read.load(files)` looks at each of them before it has seen a query, 100,000 files of 10,000
snapshots included. Here Spark has a file index of ours (`java/PublishedFiles.java`): it is asked
when the query is planned, chooses snapshots by their partition values, and only then learns the
names of their files, for which the manifest's entries are read.
"""

from collections.abc import Mapping

from snaploom.models.outputdataset import DataFormat
from snaploom.policy.fileformats import BUILT_IN

# Formats of published files, as Spark's reader and writer take them (rule W7).

FORMAT_NAMES: Mapping[DataFormat, str] = {
    DataFormat.PARQUET: "parquet",
    DataFormat.AVRO: "avro",
    DataFormat.JSONL: "json",
    DataFormat.ICEBERG: "parquet",
    DataFormat.DELTA: "parquet",
}
"""The files of each format that is published, as declarations name them."""

SPARK_FORMATS: Mapping[DataFormat, str] = {
    written: BUILT_IN[name].in_spark for written, name in FORMAT_NAMES.items()
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
    DataFormat.DELTA: {},
}
"""Options that Spark needs to read back the written files."""

"""Paths at which an output publishes, and advice in messages about their indexes."""

from __future__ import annotations

from pyspark.sql import SparkSession

from snaploom.errors import SnaploomError
from snaploom.hadoop.store import hadoop_stores
from snaploom.skipping.core.definition import Target
from snaploom.storage import layout
from snaploom.storage.stores import open_store

_WITH_SCHEMA = {
    "parquet": "mergeSchema=true",
    "orc": "mergeSchema=true",
    "avro": "avroSchema=JSON of a schema with the column",
}
"""By format: the option by which Spark reads columns that only some files have."""


def root_hint(spark: SparkSession, path: str) -> str:
    """Hint for the folder of an output, whose files are in `data/`."""
    if not _is_output(spark, path):
        return ""
    return (
        "this is the folder of an output: give its data as the path, "
        f"{path.rstrip('/')}/{layout.DATA}, or name the output itself (target.outputDataset)"
    )


def column_hint(spark: SparkSession, target: Target) -> str:
    """Hint where files lack a column; newer ones of an output may have it."""
    option = _WITH_SCHEMA.get(target.format)
    if option is None:
        return "choose one of those that are there"
    root, _, folder = target.uri.rpartition("/")
    if f"{folder}/" == layout.DATA and _is_output(spark, root):
        return (
            f"the columns of all snapshots are in {root}/{layout.MERGED_SCHEMA}; to "
            f"index one that only some of them have, give {target.uri}/ as the path, not the "
            f"output, with the option {option}, and read with it too"
        )
    return (
        f"where only some files have the column, read the folder with the option "
        f"{option}, in queries too"
    )


def _is_output(spark: SparkSession, path: str) -> bool:
    try:
        store = open_store(path, create=False, others=hadoop_stores(spark))
        return store.head(layout.MARKER) is not None
    except (SnaploomError, ValueError):
        return False

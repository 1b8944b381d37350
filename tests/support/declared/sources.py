"""Declared sources and bundles of them, as short as tests want them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from snaploom.files.listed import NoOtherFiles
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.datasource import DataSource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots
from snaploom.policy.formatfaults import spark_format
from snaploom.sources.port import SourceReader
from snaploom.sources.readers import Sources
from snaploom.sources.sourcefiles import SourceFiles, listed_without_spark

NOW = parse_instant("2026-06-01T12:00:00Z")


INDEX = SkippingIndex.parse(
    {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "any"},
        "spec": {
            "target": {"dataSource": "orders"},
            "indexes": [{"type": "MIN_MAX", "column": "id"}],
            "store": {"parquet": {"location": "file:///nowhere"}},
        },
    }
)
"""What a Bundle must have beside its sources; the sources do not care."""


def a_source(spec: dict[str, Any], name: str = "orders") -> DataSource:
    return DataSource.parse(
        {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "DataSource",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


def by_field(field: str, time_format: str, **settings: Any) -> dict[str, Any]:
    return {"fromFieldValue": {"fieldName": field, "timeFormat": time_format, **settings}}


READ_TIME: dict[str, Any] = {"fromReadTime": {}}


def files(data_format: str, *globs: object, **settings: Any) -> dict[str, Any]:
    """The spec of an hdfsLike source; read as one snapshot unless `snapshot` is given."""
    declared = {
        "format": data_format,
        "sourceUriGlobs": [str(glob) for glob in globs],
        "snapshot": READ_TIME,
        **settings,
    }
    return {"hdfsLike": declared}


def a_bundle(spec: dict[str, Any], *others: DataSource) -> Bundle:
    """A source named `orders`, beside others that it may read."""
    return Bundle(skipping_index=INDEX, data_sources=(a_source(spec), *others))


def reader(
    spark: SparkSession, spec: dict[str, Any], *others: DataSource, now: EpochNanos = NOW
) -> SourceReader:
    """The reader of a source named `orders`, beside others that it may read."""
    return Sources(spark, a_bundle(spec, *others), now).reader("orders")


def without_spark(spec: dict[str, Any], *others: DataSource) -> SourceSnapshots | None:
    """The snapshots of a source named `orders`, without a session; None where one is needed."""
    return listed_without_spark(a_bundle(spec, *others), "orders", SourceFiles(NoOtherFiles()))


def saved(frame: DataFrame, data_format: str, folder: str) -> None:
    """Write the rows of a frame as one file of a format, by Spark or by PyArrow."""
    if data_format != "arrow":
        writer = frame.coalesce(1).write.format(spark_format(data_format, NO_ALLOWANCES))
        writer.save(folder)
        return
    table = frame.toArrow()
    Path(folder).mkdir(parents=True)
    with pa.ipc.new_file(f"{folder}/part.arrow", table.schema) as out:
        out.write_table(table)


def snapshot_times(source: SourceReader) -> list[int]:
    return list(source.listing().times)


def rows_at(source: SourceReader, time: str | EpochNanos) -> list[tuple[object, ...]]:
    instant = parse_instant(time) if isinstance(time, str) else time
    return sorted(tuple(row) for row in source.read(instant).frame.collect())

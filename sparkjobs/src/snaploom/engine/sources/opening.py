"""From a declared source to its reader."""

from __future__ import annotations

from pyspark.sql import SparkSession

from snaploom.engine.sources.hdfslike import open_hdfs_like
from snaploom.engine.sources.port import SourceReader
from snaploom.engine.sources.virtual import SimpleVirtualReader
from snaploom.errors import SourceError
from snaploom.models.datasource import DataSourceSpec
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle


class SourceNotBuilt(SourceError):
    """A kind of source that this version declares and cannot read yet."""

    reason = "NotSupported"
    exit_code = 2


def open_source(spark: SparkSession, bundle: Bundle, name: str, now: EpochNanos) -> SourceReader:
    """The reader of one source; nothing is listed or read yet.

    Args:
        spark: the session, with the settings of `snaploom.engine.settings`.
        bundle: holds the source and what it reads; validated.
        name: name of the DataSource.
        now: the instant of the run: the time of `fromReadTime` snapshots.

    Raises:
        SourceNotBuilt: the source is, or reads, a `jdbc` or `complexVirtual` one.
    """
    spec = bundle.source(name).spec
    if spec.hdfs_like is not None:
        return open_hdfs_like(spark, name, spec.hdfs_like, now)
    if spec.simple_virtual is not None:
        below = open_source(spark, bundle, spec.simple_virtual.data_source, now)
        return SimpleVirtualReader(spark, name, spec.simple_virtual, below)
    raise SourceNotBuilt(
        "this kind of source can be declared but not read yet",
        resource=f"DataSource/{name}",
        path=f"spec.{DataSourceSpec.variant_of(spec)}",
        expected="hdfsLike or simpleVirtual",
    )

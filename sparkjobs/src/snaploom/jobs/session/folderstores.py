"""Opens folders of any scheme; `hdfs:` and others start Spark for its JVM (rule P6)."""

from __future__ import annotations

from pyspark import SparkContext

from snaploom.hadoop.store import hadoop_stores
from snaploom.jobs.session.spark import build_session
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import RunSettings
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.stores import open_store


def open_place(
    uri: str,
    create: bool,
    run: RunSettings | None = None,
    allow: Allowances = NO_ALLOWANCES,
) -> ObjectStore:
    """The store of a folder; a session is started where only Hadoop's client knows the scheme.

    Args:
        uri: the folder.
        create: make a directory that does not exist.
        run: settings of a session that is started; one that runs is used as it is.
        allow: what these may ask for beyond the built-in lists.

    Raises:
        SparkNotStarted: a session is needed, and does not start.
        StorageError: as `open_store`.
    """

    def by_hadoop(uri: str, create: bool) -> ObjectStore:
        if SparkContext._active_spark_context is None:
            build_session("snaploom", run or RunSettings(), allow)
        return hadoop_stores()(uri, create)

    return open_store(uri, create, by_hadoop)

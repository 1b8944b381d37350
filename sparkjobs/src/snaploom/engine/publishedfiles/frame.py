"""A DataFrame over published files, for sessions of Spark and of Spark Connect."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Protocol, cast

from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from snaploom.errors import SnaploomError
from snaploom.output.history import PublishedSnapshots
from snaploom.spark.jvm import compiled_class, is_connect, new_instance

_log = logging.getLogger(__name__)


PACKAGE = "snaploom.published"
"""Java package of the sources."""

_FAILED = "!"
"""Begins an answer that is a failure; see `Snapshots.java`."""


class _Facade(Protocol):
    def frame(
        self,
        session: JavaObject,
        format: str,  # noqa: A002 -- as Java has it
        options: Mapping[str, str],
        schema: str,
        partition: str,
        data: str,
        folders: str,
        files: _Files,
        identity: str,
        bytes: int,  # noqa: A002 -- as Java has it
    ) -> JavaObject: ...


def published_frame(
    spark: SparkSession,
    snapshots: PublishedSnapshots,
    file_format: str,
    options: Mapping[str, str],
    schema: spark_types.StructType,
) -> DataFrame | None:
    """The rows of published files, with the partition column last; every column may be NULL.

    The schema has the partition column last; `file_format` is Spark's name.

    Returns:
        None for a session of Spark Connect, which has no JVM in this process, and where this Spark
        has other interfaces than those that our sources were written for.
    """
    if is_connect(spark):
        return None
    gateway = cast(JavaGateway, spark.sparkContext._gateway)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    *columns, partition = schema.fields
    given = gateway.jvm.java.util.HashMap()
    for name, value in options.items():
        given.put(name, value)
    try:
        sources = resources.files(__package__).joinpath("java")
        java_class = compiled_class(gateway, PACKAGE, sources, "Facade")
        facade = cast(_Facade, new_instance(gateway, java_class))
        java_frame = facade.frame(
            spark._jsparkSession,
            file_format,
            given,
            spark_types.StructType(columns).json(),
            spark_types.StructType([partition]).json(),
            snapshots.data,
            "\n".join(snapshots.folders),
            _Files(snapshots.files),
            snapshots.identity,
            -1 if snapshots.size is None else snapshots.size,
        )
    except Py4JJavaError as error:
        _log.info("all files are listed before a query: %s", error.java_exception.toString())
        return None
    return DataFrame(java_frame, spark)


class _Files:
    """Files as Java asks for them.

    Exceptions come back as text: Py4J would log it and lose the message in a traceback.
    """

    def __init__(self, files: Callable[[int], Sequence[tuple[str, int]]]) -> None:
        self._files = files

    def apply(self, positions: str) -> str:
        try:
            return "\n".join(self._line(int(at)) for at in positions.split("\n"))
        except SnaploomError as error:
            return f"{_FAILED}{error}"

    def _line(self, position: int) -> str:
        return "/".join(f"{length} {name}" for name, length in self._files(position))

    class Java:
        implements = ("java.util.function.Function",)

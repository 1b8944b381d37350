"""Java sources of skipping, compiled in the JVM of a session."""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Sequence
from importlib import resources
from typing import Protocol, cast

from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from snaploom.errors import SkippingNotAvailable
from snaploom.spark.failures import OF_WORKERS
from snaploom.spark.jvm import compiled_class, new_instance

# Cause of a Spark error in one line for people.

_WRAPPED = "Exception thrown in awaitResult"
"""Class in which Spark's driver wraps a failure of another thread; only the cause has a message."""


_TRACEBACK = "Traceback (most recent call last):\n"
"""The head of the message of an error in a Python worker, before its frames, which are indented."""


def cause_of(error: Exception) -> str:
    """The first line that is not empty; Spark's messages may begin with an empty one.

    Of an error in a Python worker, what the worker raised.
    """
    message = _java_message(error) if isinstance(error, Py4JJavaError) else str(error)
    frames = message.rpartition(_TRACEBACK)[2] if _TRACEBACK in message else ""
    raised = next((line for line in frames.splitlines() if line[:1].strip()), "")
    if raised:
        advice = f"; {OF_WORKERS}" if raised.startswith("ModuleNotFoundError") else ""
        return f"a Python worker of Spark raised {raised}{advice}"
    return message.strip().split("\n", 1)[0].strip() or type(error).__name__


def _java_message(error: Py4JJavaError) -> str:
    failure = error.java_exception
    while _WRAPPED in str(failure.getMessage()) and failure.getCause() is not None:
        failure = failure.getCause()
    return str(failure.toString())


# Java classes of skipping, compiled in the JVM of a session.

PACKAGE = "snaploom.skipping"
"""Java package of the sources."""


def java_class(spark: SparkSession, name: str) -> JavaObject:
    """One of our classes (`java.lang.Class`) by simple name, compiled once in this JVM.

    Raises:
        SkippingNotAvailable: no JVM in this process, or a Spark that our sources do not fit.
    """
    if not isinstance(spark, SparkSession):
        raise SkippingNotAvailable(
            "skipping needs Spark's JVM in this process",
            found=f"a session of {type(spark).__module__}",
            expected="pyspark.sql.SparkSession, not Spark Connect",
        )
    gateway = cast(JavaGateway, spark.sparkContext._gateway)
    try:
        return compiled_class(gateway, PACKAGE, resources.files(__package__).joinpath("java"), name)
    except Py4JJavaError as error:
        raise SkippingNotAvailable(
            "the optimizer rule does not fit this Spark",
            found=f"Spark {spark.version}: {error.java_exception.toString()}",
            expected="Spark 4.1 to 4.3",
            hint="queries run without skipping; their answers are right",
        ) from error


class _Facade(Protocol):
    def describe(self, frame: JavaObject, settings: Sequence[str]) -> Sequence[str]: ...
    def listing(self, frame: JavaObject, settings: Sequence[str]) -> str: ...
    def serialise(self, frame: JavaObject) -> str: ...
    def install(
        self, session: JavaObject, decider: object, concerns: object, settings: Sequence[str]
    ) -> None: ...
    def uninstall(self, session: JavaObject) -> None: ...
    def isInstalled(self, session: JavaObject) -> bool: ...  # noqa: N802 -- a method of Java
    def footers(self, session: JavaObject, paths: str, lengths: str, first: int) -> bytes: ...
    def states(self, session: JavaObject, paths: str) -> str: ...
    def failures(self) -> int: ...
    def lastFailure(self) -> str | None: ...  # noqa: N802 -- a method of Java


class JavaRule:
    """Our Java code in the JVM of a session.

    Raises:
        SkippingNotAvailable: no JVM in this process, or a Spark that our sources do not fit.
    """

    def __init__(self, spark: SparkSession) -> None:
        gateway = cast(JavaGateway, spark.sparkContext._gateway)
        self.facade = cast(_Facade, new_instance(gateway, java_class(spark, "Facade")))

    def describe(self, frame: JavaObject, settings: Sequence[str] = ()) -> list[str]:
        """Headers (JSON) of the relations of files in a Java DataFrame, without filters."""
        headers = self.facade.describe(frame, list(settings))
        # Iterating a list of Java ends with an exception of Java, which takes a hundred calls.
        return [headers[position] for position in range(len(headers))]

    def listing(self, frame: JavaObject, settings: Sequence[str] = ()) -> str:
        """The request about all files of the one relation in a Java DataFrame.

        Its header has a field more: `partitions`, for each file an array of partition values.

        Raises:
            IllegalArgumentException: the frame reads no or several relations of files.
        """
        return unpacked(self.facade.listing(frame, list(settings)))

    def serialise(self, frame: JavaObject) -> str:
        """JSON `[{"expression": ..., "type": ...}, ...]` of a Java DataFrame's columns.

        The frame is `relation.select(...)`; expressions are as the optimizer leaves them, and so
        as they stand in the filters of queries.

        Raises:
            IllegalArgumentException: the frame reads no or several relations of files, or is no
                projection.
        """
        return self.facade.serialise(frame)

    def footers(
        self, session: JavaObject, paths: Sequence[str], lengths: Sequence[int], first: int
    ) -> list[bytes | str]:
        """Ends of Parquet files, from their footers on, or errors; `first` bytes are read first."""
        packed = self.facade.footers(session, "\n".join(paths), "\n".join(map(str, lengths)), first)
        found: list[bytes | str] = []
        at = 0
        while at < len(packed):
            length = int.from_bytes(packed[at : at + 4], "big", signed=True)
            at += 4 + abs(length)
            content = bytes(packed[at - abs(length) : at])
            found.append(content if length > 0 else content.decode())
        return found

    def states(self, session: JavaObject, paths: Sequence[str]) -> list[list[str]]:
        """Length, time and perhaps tag of files without line breaks; empty where there is none."""
        lines = self.facade.states(session, "\n".join(paths))
        return [line.split("\t") if line else [] for line in lines.split("\n")[:-1]]


_PACKED = "packed:"


def unpacked(text: str) -> str:
    """Undo the JVM's packing of a text, if any."""
    if not text.startswith(_PACKED):
        return text
    return zlib.decompress(b64decode(text.removeprefix(_PACKED))).decode()

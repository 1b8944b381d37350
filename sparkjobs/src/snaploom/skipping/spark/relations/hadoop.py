"""Java sources of skipping, compiled in the JVM of a session, and Hadoop's states of files."""

from __future__ import annotations

import os
import re
import time
import zlib
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from snaploom.errors import SkippingNotAvailable
from snaploom.files.listed import local_tag
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileFacts, Int64s, Listing, Mask
from snaploom.spark.failures import OF_WORKERS
from snaploom.spark.jvm import compiled_class, jvm_of, new_instance

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
    """One of our classes (`java.lang.Class`) by simple name, compiled once in this JVM."""
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
    """Our Java code in the JVM of a session."""

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
        """
        return unpacked(self.facade.listing(frame, list(settings)))

    def serialise(self, frame: JavaObject) -> str:
        """JSON `[{"expression": ..., "type": ...}, ...]` of a Java DataFrame's columns.

        The frame is `relation.select(...)`; expressions are as the optimizer leaves them, and so
        as they stand in the filters of queries.
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


_LOCAL = "file:"
_STATE_FIELDS = ("length", "modified", "etag")

LOCAL_GRANULARITY = 50
"""Milliseconds within which two writes of a local file may carry the same time."""
REMOTE_GRANULARITY = 2000
"""The same for object stores and HDFS, some of which keep whole seconds."""


@dataclass(frozen=True)
class FileState:
    """Facts that distinguish contents of one path."""

    length: int
    """Bytes."""
    modified: int
    """Milliseconds since 1970."""
    etag: str | None = None
    """The store's tag of this content, if it has one; of a local file `local_tag`; on HDFS the
    file's number, as `Tags.java` writes it."""

    def agrees(self, other: FileState | None) -> bool:
        """Whether both are about one content; some stores return tags only of single files."""
        if other is None or (self.length, self.modified) != (other.length, other.modified):
            return False
        return self.etag is None or other.etag is None or self.etag == other.etag


def local_path(path: str) -> str | None:
    """The operating system's path of a Hadoop path; None when it is not a local file."""
    return path.removeprefix(_LOCAL) if path.startswith(f"{_LOCAL}/") else None


def url_encoded(path: str) -> str:
    """A Hadoop path as `_metadata.file_path` has it, but for slashes of an empty authority.

    Java's `URI` escapes what is not legal in a path, and of what is beyond ASCII only spaces and
    control characters.
    """
    scheme, slash, rest = path.partition("/")
    return scheme + slash + _ILLEGAL.sub(_escape, rest)


_ILLEGAL = re.compile(
    r"[^A-Za-z0-9_\-!.~'()*,;:$&+=/@\u00a1-\U0010ffff]|[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def is_spelt_right(spark: SparkSession, path: str) -> bool:
    """Whether Spark itself encodes a path as `url_encoded` does."""
    spelling = jvm_of(spark).org.apache.spark.paths.SparkPath
    return str(spelling.fromPathString(path).urlEncoded()) == url_encoded(path)


def states_of(spark: SparkSession, paths: Sequence[str]) -> pa.Table:
    """Current `length`, `modified`, `etag` of files, by their file system; null if absent."""
    local = [local_path(path) for path in paths]
    names = [name for name in local if name is not None]
    if len(names) < len(paths):
        return _remote_states(spark, paths)
    return _local_states(names)


def are_as_listed(listed: pa.Table, now: pa.Table) -> Mask:
    """For each file, whether listed columns and current states describe one content."""
    is_same = pc.and_(
        pc.equal(listed.column("length"), now.column("length")),
        pc.equal(listed.column("modified"), now.column("modified")),
    )
    has_same_tag = pc.fill_null(pc.equal(listed.column("etag"), now.column("etag")), True)
    found: Mask = pc.fill_null(pc.and_(is_same, has_same_tag), False).to_numpy()
    return found


def wait_until_settled(granularity: int, changed: Int64s) -> None:
    """Wait until no file was written within its clock's granularity, in milliseconds (rule S21).

    A file written again within that time could have the same time, and not be distinguished.
    """
    now = time.time() * 1000
    past = changed[changed <= now + granularity]
    remaining = int(past.max(initial=0)) + granularity - now
    if remaining > 0:
        time.sleep(min(remaining, 2 * granularity) / 1000)


def granularity_of(paths: pa.Array) -> int:
    """Milliseconds within which two contents of one of the paths may carry the same time."""
    is_local = pc.all(pc.starts_with(paths, f"{_LOCAL}/")).as_py() is not False
    return LOCAL_GRANULARITY if is_local else REMOTE_GRANULARITY


def with_local_tags(listing: Listing) -> Listing:
    """A listing with the tags that local files have now; of one that has tags, the listing."""
    if listing.etags is not None:
        return listing
    names = [local_path(path) or "" for path in listing.paths.to_pylist()]
    return replace(listing, etags=_local_states(names).column("etag").combine_chunks())


def opened_state(descriptor: int) -> FileState:
    """Current state of an open file; `OSError` if the file system does not answer."""
    found = os.fstat(descriptor)
    return FileState(found.st_size, found.st_mtime_ns // 1_000_000, local_tag(found) or None)


def _local_states(names: Sequence[str]) -> pa.Table:
    facts = FileFacts()
    places: list[int | None] = []
    count = 0
    for name in names:
        try:
            facts.add(os.stat(name))
        except (OSError, ValueError):
            places.append(None)
        else:
            places.append(count)
            count += 1
    columns = (facts.lengths, facts.modified, facts.tags)
    found = pa.table(list(columns), list(_STATE_FIELDS))
    return found if count == len(places) else found.take(pa.array(places, pa.int64()))


def _remote_states(spark: SparkSession, paths: Sequence[str]) -> pa.Table:
    found = JavaRule(spark).states(spark._jsparkSession, paths)
    rows = [
        (int(each[0]), int(each[1]), each[2] if len(each) > 2 else None) if each else (None,) * 3
        for each in found
    ]
    kinds = [kind for name, kind in IDENTITY_FIELDS if name in _STATE_FIELDS]
    columns = zip(*rows, strict=True) if rows else ([],) * len(kinds)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, list(_STATE_FIELDS))

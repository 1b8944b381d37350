"""Files as Hadoop's file systems describe them, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import SparkSession

from snaploom.hadoop.client import HadoopClient, client_of
from snaploom.listing.listedfile import ListedFile
from snaploom.planning.hadoopuris import hadoop_uri

_STATUS = re.compile(
    r"(?<!\w)\w++\{path=(?P<uri>[^;{}\n]+); isDirectory=(?P<folder>true|false)"
    r"(?:; length=(?P<length>\d+); replication=\d+; blocksize=\d+)?"
    r"; modification_time=(?P<modified>\d+);[^{}]*\}"
    r"(?: isEmptyDirectory=\w+ eTag=(?P<etag>\S+))?"
)
_ETAG = re.compile(r"\} isEmptyDirectory=\w+ eTag=(\S+)")
"""The ETag, at the end of the text of S3A's file status."""


def open_path(client: HadoopClient, uri: str) -> tuple[JavaObject, JavaObject]:
    """A path, and its file system."""
    path = client.jvm.org.apache.hadoop.fs.Path(hadoop_uri(uri))
    return path, path.getFileSystem(client.configuration())


def readable_uri(spark: SparkSession, uri: str) -> str:
    """URI with which a session's own readers reach a place: `s3:` is `s3a:` to most of them."""
    own = client_of(spark).configuration().get(f"fs.{uri.partition(':')[0]}.impl")
    return hadoop_uri(uri) if own is None else uri


def qualified_uri(spark: SparkSession, path: str) -> str:
    """A path as Hadoop spells it, with its scheme and without a trailing slash."""
    client = client_of(spark)
    place = client.jvm.org.apache.hadoop.fs.Path(readable_uri(spark, path))
    return str(place.getFileSystem(client.configuration()).makeQualified(place).toString())


def file_system_of(client: HadoopClient, uri: str) -> JavaObject:
    """The file system of a file."""
    return open_path(client, uri)[1]


def describe(jvm: JVMView, statuses: JavaArray) -> Iterator[ListedFile]:
    """Statuses of Hadoop's file systems as plain data.

    Every question to the JVM costs about 0.1 ms, so thousands of statuses are asked for in one
    text. Its form is not promised, and a path may contain anything, the look of a status included:
    unless the text has exactly one of each mark a status, each is asked by itself.
    """
    text = str(jvm.scala.runtime.ScalaRunTime.stringOf(statuses))
    described = [s for s in _STATUS.finditer(text) if s["length"] or s["folder"] == "true"]
    if {len(described), text.count("{"), text.count("; isDirectory=")} == {len(statuses)}:
        for status in described:
            size, modified = int(status["length"] or 0), int(status["modified"])
            is_folder, etag = status["folder"] == "true", status["etag"] or ""
            yield ListedFile(status["uri"], size, modified, is_folder, _tag(etag))
        return
    for status in statuses:
        size, modified = int(status.getLen()), int(status.getModificationTime())
        uri, is_folder = str(status.getPath().toString()), bool(status.isDirectory())
        known = _ETAG.search(str(status.toString()).rpartition(";")[2])
        yield ListedFile(uri, size, modified, is_folder, _tag(known[1] if known else ""))


def _tag(known: str) -> str:
    return "" if known == "null" else known.strip('"')

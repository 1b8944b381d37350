"""Files as Hadoop's client lists them: those of buckets, of HDFS, and of globs with choices.

A million files are no exception: folders that a glob's first wildcard reaches are listed several
at a time, and what the JVM knows about files crosses to Python in pieces.
"""

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import SourceNotReadable
from snaploom.files.listed import ListedFile
from snaploom.files.objectstore import ObjectStore
from snaploom.files.typedfiles import LocalFile, RangedFile
from snaploom.policy.addresses import hadoop_uri
from snaploom.sources.files.globs import escape_glob, split_glob
from snaploom.spark.failures import translate
from snaploom.spark.hadoopstore import HadoopObjectStore
from snaploom.spark.jvm import FileEnds, HadoopClient, client_of, describe, open_path

LISTED_AT_ONCE = 8
"""Folders that are listed at the same time: where stores answer slowly all the time is waiting."""
STATUSES_AT_ONCE = 10_000
"""Files about which the JVM is asked in one text of a few megabytes."""


@dataclass(frozen=True)
class HadoopFiles:
    """Answers of Hadoop's client."""

    client: HadoopClient

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        try:
            listing = _Listing(self.client, glob)
            parts = split_glob(glob)
            if parts is None:
                return listing.of(glob)
            folders = [found.uri for found in listing.of(parts[0]) if found.folder]
            globs = [f"{escape_glob(folder)}/{parts[1]}" for folder in folders]
            with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
                return list(chain.from_iterable(pool.map(listing.of, globs)))
        except (Py4JError, PySparkException) as error:
            cause = translate(error)
            raise SourceNotReadable(
                "files cannot be listed",
                resource=resource,
                path="spec.hdfsLike.sourceUriGlobs",
                found=f"{glob}: {cause.message}",
                expected="a glob of Hadoop's on a file system that can be reached; Hadoop cannot "
                "list names that contain ':'",
                hint=cause.hint,
            ) from error

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> None:
        """None: Hadoop's client lists whole folders, and so nothing is saved by asking for less."""

    def exists(self, uri: str) -> bool:
        path, file_system = open_path(self.client, uri)
        return bool(file_system.exists(path))

    def store(self, uri: str, create: bool) -> ObjectStore:
        return HadoopObjectStore(self.client, uri, create=create)

    def end(self, file: ListedFile, length: int) -> bytes:
        return FileEnds(self.client).read(file, length)


class _Listing:
    """Lists matches of globs in one file system, from several threads at once."""

    def __init__(self, client: HadoopClient, glob: str) -> None:
        self._jvm = client.jvm
        self._file_system = open_path(client, glob)[1]

    def of(self, glob: str) -> list[ListedFile]:
        path = self._jvm.org.apache.hadoop.fs.Path(hadoop_uri(glob))
        statuses = self._file_system.globStatus(path)
        if statuses is None:  # rather than empty, where a glob without wildcards matches nothing
            return []
        whole = self._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(statuses)
        pieces = (
            whole.slice(first, first + STATUSES_AT_ONCE).unsafeArray()
            for first in range(0, len(statuses), STATUSES_AT_ONCE)
        )
        return list(chain.from_iterable(describe(self._jvm, piece) for piece in pieces))


def opened_file(spark: SparkSession, file: ListedFile) -> pa.NativeFile:
    """A file of which parts can be read; `OSError` where it cannot be opened."""
    if file.uri.startswith("file:"):
        return LocalFile(file.uri.removeprefix("file:"))
    read = partial(FileEnds(client_of(spark)).range, file)
    return pa.PythonFile(io.BufferedReader(RangedFile(file.length, read), 64 << 10), "r")

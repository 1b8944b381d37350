"""Files of a source: what Hadoop's globs match, listed once and in one order.

Files are listed here rather than by Spark, because a file belongs to one snapshot: a snapshot is
read from exactly its files. What Spark would not read is not listed either: folders, and names
that begin with `_` (without `=`) or `.`. The same holds for folders that a wildcard reaches, so
that nobody reads what another job is still writing into `_temporary` or `.staging`; a glob that
spells such a folder out reads it.

A million files are no exception: local ones are listed without Hadoop where globs are plain;
elsewhere folders that a glob's first wildcard reaches are listed several at a time, and what the
JVM knows about files crosses to Python in pieces.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.engine.failures import translate
from snaploom.engine.sources.files.localfiles import local_matches
from snaploom.errors import SourceNotReadable
from snaploom.hadoop.filestatus import (
    ListedFile,
    describe,
    file_system_of,
    open_path,
    with_local_tag,
)
from snaploom.hadoop.jvm import jvm_of
from snaploom.planning.hadoopuris import hadoop_uri

_log = logging.getLogger(__name__)

LISTED_AT_ONCE = 8
"""Folders that are listed at the same time: where stores answer slowly all the time is waiting."""
STATUSES_AT_ONCE = 10_000
"""Files about which the JVM is asked in one text of a few megabytes."""

_SPECIAL = re.compile(r"[{}\[\]*?\\]")


def list_files(spark: SparkSession, globs: Iterable[str], resource: str) -> tuple[ListedFile, ...]:
    """The files that match any of the globs, each once, sorted by URI; none is no fault.

    Raises:
        SourceNotReadable: a glob is malformed, or its file system cannot be asked.
    """
    found: dict[str, ListedFile] = {}
    for glob in globs:
        statuses = _matches(spark, glob, resource)
        found.update((s.uri, s) for s in statuses if not s.folder and not is_hidden(s.uri, glob))
        if statuses and all(status.folder for status in statuses):
            _log.warning(
                "%s: %s matches folders only, which are passed over; add /* for their files",
                resource,
                glob,
            )
    # By only the URI, which no two share: comparing whole records takes twenty times as long.
    return tuple(with_local_tag(found[uri]) for uri in sorted(found))


def fingerprint(files: Iterable[ListedFile]) -> str:
    """A hash that changes when a file comes, goes, or is written again."""
    rows = [file.identity for file in sorted(files, key=lambda file: file.uri)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def escape_glob(uri: str) -> str:
    """The glob that matches this very file, for Spark's reader, which expands globs itself."""
    return _SPECIAL.sub(lambda special: "\\" + special[0], uri)


def file_key(file: ListedFile) -> str:
    """A short name for this content of this file (128 bits), under which facts are remembered."""
    identity = json.dumps(file.identity).encode()
    return hashlib.blake2b(identity, digest_size=16).hexdigest()


def exists(spark: SparkSession, uri: str) -> bool:
    """Whether there is a file or folder at a URI."""
    path, file_system = open_path(spark, uri)
    return bool(file_system.exists(path))


def is_hidden(uri: str, glob: str) -> bool:
    """Whether Spark's rule for names hides a file, or a folder that the glob's wildcards reach."""
    *folders, name = uri.split("/")
    if _is_hidden_name(name):
        return True
    reached, spelled = _reach(glob)
    return any(
        _is_hidden_name(folder) and folder[0] not in spelled
        for folder in folders[max(0, len(folders) - reached) :]
    )


@lru_cache(maxsize=64)  # asked for every file, of a few globs
def _reach(glob: str) -> tuple[int, frozenset[str]]:
    """How many folders wildcards reach, and with which marks hidden ones are spelled out."""
    fixed = re.split(r"[{}\[\]*?]", glob, maxsplit=1)[0]
    reached = glob[fixed.rfind("/") + 1 :].count("/")
    return reached, frozenset(
        part[0] for part in re.split(r"[/{,]", glob) if part[:1] in ("_", ".")
    )


def _is_hidden_name(name: str) -> bool:
    return (
        name.startswith(".")
        or (name.startswith("_") and "=" not in name)
        or name.endswith("._COPYING_")
    )


def _matches(spark: SparkSession, glob: str, resource: str) -> list[ListedFile]:
    local = local_matches(glob)
    return _matches_of_hadoop(spark, glob, resource) if local is None else local


def _matches_of_hadoop(spark: SparkSession, glob: str, resource: str) -> list[ListedFile]:
    try:
        listing = _Listing(spark, glob)
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
            expected="a glob of Hadoop's on a file system that can be reached; Hadoop cannot list "
            "names that contain ':'",
            hint=cause.hint,
        ) from error


def split_glob(glob: str) -> tuple[str, str] | None:
    """A glob up to its first wildcard's folder, and the rest of it; None where it has no two."""
    steps = glob.split("/")
    if any(
        step.count("{") != step.count("}") or step.count("[") != step.count("]") for step in steps
    ):
        return None  # a choice that goes over several folders
    wild = [index for index, step in enumerate(steps) if _SPECIAL.search(step)]
    if len(wild) < 2:
        return None
    return "/".join(steps[: wild[0] + 1]), "/".join(steps[wild[0] + 1 :])


class _Listing:
    """Asks one file system what globs match; from several threads at once."""

    def __init__(self, spark: SparkSession, glob: str) -> None:
        self._spark = spark
        self._jvm = jvm_of(spark)
        self._file_system = file_system_of(spark, glob)

    def of(self, glob: str) -> list[ListedFile]:
        """Files and folders."""
        path = self._jvm.org.apache.hadoop.fs.Path(hadoop_uri(glob))
        statuses = self._file_system.globStatus(path)
        if statuses is None:  # rather than empty, where a glob without wildcards matches nothing
            return []
        whole = self._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(statuses)
        pieces = (
            whole.slice(first, first + STATUSES_AT_ONCE).unsafeArray()
            for first in range(0, len(statuses), STATUSES_AT_ONCE)
        )
        return list(chain.from_iterable(describe(self._spark, piece) for piece in pieces))

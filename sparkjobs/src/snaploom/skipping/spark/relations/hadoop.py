"""Hadoop's names and states of files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from snaploom.files.listed import local_tag
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileFacts, Int64s, Listing, Mask
from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.spark.jvm import jvm_of

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

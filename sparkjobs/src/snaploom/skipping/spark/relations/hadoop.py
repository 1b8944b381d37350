"""Files as Hadoop names and describes them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from snaploom.hadoop.jvm import jvm_of
from snaploom.listing.listedfile import last_change, local_tag
from snaploom.skipping.core.listedfiles import Listing
from snaploom.skipping.spark.relations.janino import JavaRule

_LOCAL = "file:"

LOCAL_GRANULARITY = 50
"""Milliseconds within which two writes of a local file may carry the same time."""
REMOTE_GRANULARITY = 2000
"""The same for object stores and HDFS, some of which keep whole seconds."""


@dataclass(frozen=True)
class FileState:
    """What distinguishes contents of one path."""

    length: int
    """Bytes."""
    modified: int
    """Milliseconds since 1970."""
    etag: str | None = None
    """What the store calls this content, where it does; of a local file `local_tag`; on HDFS the
    file's number, as `Tags.java` writes it."""

    @property
    def changed(self) -> int:
        """The newest time that is known of it, in milliseconds since 1970."""
        return last_change(self.modified, self.etag)

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


def states_of(spark: SparkSession, paths: Sequence[str]) -> list[FileState | None]:
    """What files are now, asked of their file system and not of any cache; None: there is none."""
    if all(local_path(path) is not None for path in paths):
        return [_local_state(path) for path in paths]
    return _remote_states(spark, paths)


def wait_until_settled(paths: Sequence[str], changed: Sequence[int]) -> None:
    """Wait until no file was written within the granularity of its clock (rule S21).

    A file written again within that time could have the same time, and not be distinguished.
    """
    granularity = granularity_of(paths)
    now = time.time() * 1000
    past = [each for each in changed if each <= now + granularity]
    remaining = max(past, default=0) + granularity - now
    if remaining > 0:
        time.sleep(min(remaining, 2 * granularity) / 1000)


def granularity_of(paths: Sequence[str]) -> int:
    """Milliseconds within which two contents of one of the paths may carry the same time."""
    is_local = all(local_path(path) is not None for path in paths)
    return LOCAL_GRANULARITY if is_local else REMOTE_GRANULARITY


def with_local_tags(listing: Listing) -> Listing:
    """A listing with the tags that local files have now; of one that has tags, the listing."""
    if listing.etags is not None:
        return listing
    states = [
        _local_state(path) if local_path(path) else None for path in listing.paths.to_pylist()
    ]
    tags = pa.array([state and state.etag for state in states], pa.large_string())
    return replace(listing, etags=tags)


def opened_state(descriptor: int) -> FileState:
    """What an open file is now.

    Raises:
        OSError: the file system does not answer.
    """
    return _state(os.fstat(descriptor))


def _local_state(path: str) -> FileState | None:
    try:
        return _state(os.stat(path.removeprefix(_LOCAL)))
    except OSError:
        return None


def _state(found: os.stat_result) -> FileState:
    return FileState(found.st_size, found.st_mtime_ns // 1_000_000, local_tag(found) or None)


def _remote_states(spark: SparkSession, paths: Sequence[str]) -> list[FileState | None]:
    found = JavaRule(spark).states(spark._jsparkSession, paths)
    return [
        FileState(int(each[0]), int(each[1]), each[2] if len(each) > 2 else None) if each else None
        for each in found
    ]

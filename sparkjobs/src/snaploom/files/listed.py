"""Files as their file systems list them, as plain data, and listing by a port of others."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

from snaploom.files.objectstore import ObjectStore

# Files as their file systems list them, as plain data.

_LOCAL_TAG = re.compile(r"(\d{1,20})\.\d{1,20}")
"""Of a local file; tags of stores have no such form (MD5, hexadecimal, quotes)."""


@dataclass(frozen=True, slots=True, order=True)
class ListedFile:
    """One file, or folder that a glob matches, as its file system describes it."""

    uri: str
    """As Hadoop's `Path` prints it: names as they are on disk, nothing escaped."""
    length: int
    """Bytes."""
    modified: int
    """Milliseconds since the epoch."""
    folder: bool = False
    """Whether it is a folder; no list of files has one."""
    etag: str = ""
    """The store's tag of this content, of a local file `local_tag`; empty where it has none."""

    @property
    def name(self) -> str:
        return self.uri.rsplit("/", 1)[-1]

    @property
    def identity(self) -> tuple[str | int, ...]:
        """Fields that differ when the file's content differs, as far as its store reports them."""
        known = (self.uri, self.length, self.modified)
        return (*known, self.etag) if self.etag else known

    @property
    def changed(self) -> int:
        """Newest known time of it, in milliseconds since the epoch."""
        return last_change(self.modified, self.etag)


def local_tag(status: os.stat_result) -> str:
    """Tag that distinguishes contents of a local path beside length and time; may be empty.

    The time at which the inode last changed, in nanoseconds since 1970, which nobody can set, and
    its number. `Tags.java` writes them in the same form.
    """
    return f"{status.st_ctime_ns}.{status.st_ino}" if os.name == "posix" else ""


def last_change(modified: int, tag: str | None) -> int:
    """Newer time of a file, in milliseconds since 1970; `tag` is a `local_tag` or a store's."""
    changed = _LOCAL_TAG.fullmatch(tag or "")
    return max(modified, int(changed[1]) // 1_000_000 if changed else 0)


def with_local_tag(file: ListedFile) -> ListedFile:
    """A file with its tag, where it is a local one that Hadoop has listed without."""
    if file.etag or not file.uri.startswith("file:/"):
        return file
    try:
        return replace(file, etag=local_tag(os.stat(file.uri.removeprefix("file:"))))
    except OSError:
        return file  # gone meanwhile


def fingerprint(files: Iterable[ListedFile]) -> str:
    """A hash that changes when a file comes, goes, or is written again."""
    rows = [file.identity for file in sorted(files, key=lambda file: file.uri)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def file_key(file: ListedFile) -> str:
    """Short key of this content of this file (128 bits), under which facts are remembered."""
    identity = json.dumps(file.identity).encode()
    return hashlib.blake2b(identity, digest_size=16).hexdigest()


# Port to files that are on no local disk; its implementation needs Spark.


class SparkNeeded(Exception):
    """Only Spark can answer, and it has not been started; users never see this."""


class OtherFiles(Protocol):
    """Spark's answers about files."""

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        """Files and folders that a glob matches, else `SourceNotReadable`."""

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> Sequence[str] | None:
        """URIs of folders with a file that a glob matches; None where files have to be listed."""

    def exists(self, uri: str) -> bool:
        """Whether there is a file or folder at a URI."""

    def store(self, uri: str, create: bool) -> ObjectStore:
        """Store of a folder whose scheme only Hadoop's client knows."""

    def end(self, file: ListedFile, length: int) -> bytes:
        """Last bytes of a file, else `OSError`; called from several threads."""


class NoOtherFiles:
    """Before Spark is started: every question raises `SparkNeeded`."""

    def matches(self, glob: str, resource: str) -> NoReturn:
        raise SparkNeeded(glob)

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> NoReturn:
        raise SparkNeeded(glob)

    def exists(self, uri: str) -> NoReturn:
        raise SparkNeeded(uri)

    def store(self, uri: str, create: bool) -> NoReturn:
        raise SparkNeeded(uri)

    def end(self, file: ListedFile, length: int) -> NoReturn:
        raise SparkNeeded(file.uri)

"""Port to files that are on no local disk; its implementation needs Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

from snaploom.listing.listedfile import ListedFile
from snaploom.storage.objectstore import ObjectStore


class SparkNeeded(Exception):
    """Only Spark can answer, and it has not been started; users never see this."""


class OtherFiles(Protocol):
    """Spark's answers about files."""

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        """Files and folders that a glob matches, else `SourceNotReadable`."""
        ...

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> Sequence[str] | None:
        """URIs of folders with a file that a glob matches; None where files have to be listed."""
        ...

    def exists(self, uri: str) -> bool:
        """Whether there is a file or folder at a URI."""
        ...

    def store(self, uri: str, create: bool) -> ObjectStore:
        """Store of a folder whose scheme only Hadoop's client knows."""
        ...

    def end(self, file: ListedFile, length: int) -> bytes:
        """Last bytes of a file, else `OSError`; called from several threads."""
        ...


class NoOtherFiles:
    """Before Spark is started: every question raises `SparkNeeded`."""

    def matches(self, glob: str, resource: str) -> NoReturn:
        """Not without Spark."""
        raise SparkNeeded(glob)

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> NoReturn:
        """Not without Spark."""
        raise SparkNeeded(glob)

    def exists(self, uri: str) -> NoReturn:
        """Not without Spark."""
        raise SparkNeeded(uri)

    def store(self, uri: str, create: bool) -> NoReturn:
        """Not without Spark."""
        raise SparkNeeded(uri)

    def end(self, file: ListedFile, length: int) -> NoReturn:
        """Not without Spark."""
        raise SparkNeeded(file.uri)

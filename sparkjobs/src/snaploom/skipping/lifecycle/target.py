"""The port to what is indexed: its files, and what can be kept about them.

The adapter needs Spark (`snaploom.skipping.spark`); everything in this package does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
)
from snaploom.skipping.core.terms import Term

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all."""


class IndexableTarget(Protocol):
    """Files that Spark reads as one relation."""

    @property
    def target(self) -> Target:
        """Where the files are."""
        ...

    @property
    def fingerprint(self) -> ReaderFingerprint:
        """How they are read in this session."""
        ...

    @property
    def partition_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and Spark type of each partition column, in order."""
        ...

    def column(self, name: str) -> Term:
        """The term of a column or nested field as people write it (`a.b`).

        Raises:
            IndexNotPossible: there is no such column; with the ones that there are.
        """
        ...

    def expression(self, sql: str) -> Term:
        """The term of a deterministic expression over the columns.

        Raises:
            IndexNotPossible: it cannot be analysed, or is not deterministic.
        """
        ...

    def list_files(self, where: str) -> pa.Table:
        """The files there are now, as identity columns (`snaploom.skipping.core.filetable`).

        Args:
            where: SQL over partition columns and `_metadata.file_path`; empty for all files.

        Raises:
            IndexNotPossible: `where` speaks of something else.
        """
        ...

    def build(
        self, indexes: Sequence[IndexDefinition], files: pa.Table, progress: Progress
    ) -> Iterator[pa.Table]:
        """Rows about some listed files, in bounded pieces.

        A file that changed while it was read, or cannot be read, is left out: it stays unknown
        (rule S21). So is a file about which nothing could be proved.
        """
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """Files that builds left out so far, by path, and why."""
        ...


class FileListing(Protocol):
    """What can be listed about files without looking into them."""

    def reads_alike(self, definition: SkippingDefinition) -> bool:
        """Whether files that did not change are read as when they were indexed."""
        ...

    def list_files(self, where: str) -> pa.Table:
        """As `IndexableTarget.list_files`."""
        ...

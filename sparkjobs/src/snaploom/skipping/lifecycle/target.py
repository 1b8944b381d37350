"""Port to an indexed target: its files, and the terms that can be indexed.

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
        """Location of the files."""
        ...

    @property
    def fingerprint(self) -> ReaderFingerprint:
        """Their reader in this session."""
        ...

    @property
    def partition_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and Spark type of each partition column, in order."""
        ...

    def column(self, name: str) -> Term:
        """Term of a column or nested field as people write it (`a.b`).

        Raises:
            IndexNotPossible: there is no such column; with the ones that there are.
        """
        ...

    def expression(self, sql: str) -> Term:
        """Term of a deterministic expression over the columns.

        Raises:
            IndexNotPossible: it cannot be analysed, or is not deterministic.
        """
        ...

    def list_files(self, where: str) -> pa.Table:
        """Current files as identity columns; `where` is SQL over partition columns and the path.

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
        """Files that builds have left out, by path, with the reason."""
        ...


class FileListing(Protocol):
    """Facts about files that need no look into them."""

    def reads_alike(self, definition: SkippingDefinition) -> bool:
        """Whether unchanged files are read as when they were indexed."""
        ...

    def list_files(self, where: str) -> pa.Table:
        """As `IndexableTarget.list_files`."""
        ...

"""Port of an index type: kept fields, builder, and proof.

A new type is a class of this shape and one registration, in the entry-point group
`snaploom.skipping.indexes` (`NAME = "package.module:INSTANCE"`).

What is common to all types is not a type's business. The evaluator settles NULL: a leaf other than
IS [NOT] NULL is never TRUE for a NULL, so a file with no non-null value is dropped, and a file
about which the index knows nothing (`<id>.values` is null) is kept. Types are asked about the
non-null values of files that have some, and only about leaves whose term is one of the index's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Leaf


class Feed(StrEnum):
    """Form of the values that a builder takes for each term, in batches of rows of one file."""

    VALUES = "VALUES"
    """Values in the term's Arrow type (`snaploom.skipping.core.terms`)."""
    HASHES = "HASHES"
    """Spark's `xxhash64(term)` as int64, computed in the JVM, NULL where the term is NULL."""


@dataclass(frozen=True)
class FooterColumn:
    """Exact facts from Parquet footers about one term, one entry per file."""

    values: pa.Array
    """Rows in which it is not NULL (int64); null where the footer proves nothing about it."""
    nulls: pa.Array
    """Rows in which it is NULL (int64), likewise."""
    minimum: pa.Array
    """Least value, in the Arrow type in which the term is kept; null where the footer cannot prove
    it, or where there is no non-null value."""
    maximum: pa.Array
    """Greatest value, likewise."""

    def slice(self, start: int, count: int) -> FooterColumn:
        """The same facts about some of the files."""
        parts = (self.values, self.nulls, self.minimum, self.maximum)
        return FooterColumn(*(part.slice(start, count) for part in parts))


@dataclass(frozen=True)
class ProvedFields:
    """Fields of many files at once."""

    files: Mask
    """For each file, whether its row is proved; the others have to be read."""
    fields: Mapping[str, pa.Array]
    """For each of the type's fields one entry a file, null where the row is not proved."""


class FileBuilder(Protocol):
    """Collects an index's fields for one file; bounded memory at any file size."""

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch: one array for each term, rows aligned, NULLs included."""
        ...

    def merge(self, other: bytes) -> None:
        """Add the `partial` of another builder that saw other rows of the same file."""
        ...

    def partial(self) -> bytes:
        """Collected state, to be merged elsewhere."""
        ...

    def finish(self) -> Mapping[str, object]:
        """One row: a value (None if unknown) for each of the type's fields."""
        ...


class IndexType(Protocol):
    """One type of index."""

    @property
    def name(self) -> str:
        """Name such as `MIN_MAX`."""
        ...

    def check(self, definition: IndexDefinition) -> None:
        """Refuse a definition that the type cannot keep (number of terms, their types, parameters).

        Raises:
            IndexNotPossible: with what would be possible.
        """
        ...

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """Fields that are kept beside the counts, by name without the index's id; all nullable."""
        ...

    def feed(self, definition: IndexDefinition) -> Feed:
        """Form of the values that `builder` takes."""
        ...

    def builder(self, definition: IndexDefinition) -> FileBuilder:
        """A collector for one file."""
        ...

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """Rows as `finish` gives them, from footers only."""
        ...

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """For each file, whether a non-null value in it may make the leaf TRUE.

        Returns:
            None when the type proves nothing about this kind of leaf. Where a file's kept value is
            null (over a limit, cut bounds) the answer is True.
        """
        ...

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Reason why `may_match` does not serve a leaf, and an index that would, for users."""
        ...

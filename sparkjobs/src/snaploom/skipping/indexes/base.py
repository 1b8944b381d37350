"""What an index type is: one file with what it keeps, how it is built, and what it proves.

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
    """What a builder is fed with for each term, in batches of rows of one file."""

    VALUES = "VALUES"
    """Values in the term's Arrow type (`snaploom.skipping.core.terms`)."""
    HASHES = "HASHES"
    """Spark's `xxhash64(term)` as int64, computed in the JVM, NULL where the term is NULL."""


@dataclass(frozen=True)
class FooterColumn:
    """What Parquet footers prove about one term, one entry a file: everything here is exact."""

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
        """The same about some of the files."""
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
    """Collects what an index keeps about one file; bounded memory whatever the file's size."""

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take a batch: one array for each term, rows aligned, NULLs included."""
        ...

    def merge(self, other: bytes) -> None:
        """Take the `partial` of another builder that saw other rows of the same file."""
        ...

    def partial(self) -> bytes:
        """What was collected, to be merged elsewhere."""
        ...

    def finish(self) -> Mapping[str, object]:
        """One row: a value (or None: unknown) for each of the type's fields."""
        ...


class IndexType(Protocol):
    """One type of index."""

    @property
    def name(self) -> str:
        """`MIN_MAX` and the like."""
        ...

    def check(self, definition: IndexDefinition) -> None:
        """Refuse what cannot be kept (number of terms, their types, parameters).

        Raises:
            IndexNotPossible: with what would be possible.
        """
        ...

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """Fields that are kept beside the counts, by name without the index's id; all nullable."""
        ...

    def feed(self, definition: IndexDefinition) -> Feed:
        """What `builder` is fed with."""
        ...

    def builder(self, definition: IndexDefinition) -> FileBuilder:
        """A collector for one file."""
        ...

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """Rows as `finish` gives them, from only what footers prove about each term."""
        ...

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """For each file, whether a non-null value in it may make the leaf TRUE.

        Returns:
            None when the type proves nothing about this kind of leaf. Where a file's kept value is
            null (over a limit, cut bounds) the answer is True.
        """
        ...

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Why `may_match` proves nothing about a leaf, and which index would, for users."""
        ...

"""The port of an index type: what it keeps of each file, and how it judges a predicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

import pyarrow as pa

from snaploom.errors import IndexNotPossible
from snaploom.ondemand import load_registered
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Leaf

# Port of an index type: kept fields, builder, and proof.


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


# Partial states of builders as bytes: Arrow's own format, which runs nothing when it is read.


def pack(arrays: Sequence[pa.Array]) -> bytes:
    """Arrays of any lengths and types as bytes."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
        for array in arrays
    ]
    batch = pa.record_batch(columns, [str(position) for position in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpack(content: bytes) -> list[pa.Array]:
    """Arrays that `pack` was given; `pa.ArrowInvalid` for other bytes."""
    with pa.ipc.open_stream(content) as reader:
        batch = reader.read_next_batch()
    return [column.flatten() for column in batch.columns]


# Registry of index types, built-in and from other packages.

ENTRY_POINTS = "snaploom.skipping.indexes"
"""Entry-point group: the name is the type's, the value an object of it."""

_MEMBERS = tuple(name for name in vars(IndexType) if not name.startswith("_"))


def registered_types() -> tuple[str, ...]:
    """Names of all types, sorted; ours are registered like any other, in `pyproject.toml`."""
    return tuple(sorted(_entries()))


@cache
def index_type(name: str) -> IndexType:
    """The type of that name.

    Raises:
        IndexNotPossible: no such type is registered here, or its code cannot be loaded or is for
            another version of Snaploom.
    """
    entry = _entries().get(name)
    if entry is None:
        raise IndexNotPossible(
            f"there is no index type {name}",
            found=name,
            expected=", ".join(registered_types()),
            hint="choose one of these, or install the package that registers it in the entry-point "
            f"group {ENTRY_POINTS}",
        )
    return cast(IndexType, load_registered(entry, "the index type", _MEMBERS))


@cache
def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}

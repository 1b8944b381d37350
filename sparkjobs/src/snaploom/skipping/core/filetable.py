"""Facts about files: one row per file, columns read when first needed.

Columns of every table of rows, of any maker and in any store:

| column | Arrow type | meaning |
|---|---|---|
| `path` | large_string | Hadoop path as Spark lists it (`Path.toString()`, nothing encoded) |
| `length` | int64 | bytes |
| `modified` | int64 | milliseconds since 1970 |
| `etag` | large_string, null | the store's tag of the content, where it has one |
| `<id>.values` | int64, null | rows in which the index's (first) term is not NULL; null: unknown |
| `<id>.nulls` | int64, null | rows in which it is NULL |
| `<id>.values.1`, `<id>.nulls.1` ... | | the same for further terms |
| `<id>.<field>` | by type | what the type keeps, see `snaploom.skipping.indexes` |

`<id>` is the index's `index_id`. A row whose `values` is null has nothing of that index: the
file is kept. Path, length, modification time and etag are a file's identity (rule S5).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

IDENTITY_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("path", pa.large_string()),
    ("length", pa.int64()),
    ("modified", pa.int64()),
    ("etag", pa.large_string()),
)

T = TypeVar("T")

Mask = npt.NDArray[np.bool_]
"""One truth value a file."""


def values_column(index_id: str, position: int = 0) -> str:
    """Column that counts rows in which a term of an index is not NULL."""
    return f"{index_id}.values" if position == 0 else f"{index_id}.values.{position}"


def nulls_column(index_id: str, position: int = 0) -> str:
    """Column that counts rows in which a term of an index is NULL."""
    return f"{index_id}.nulls" if position == 0 else f"{index_id}.nulls.{position}"


def field_column(index_id: str, field: str) -> str:
    """Column of a field that the type of an index keeps."""
    return f"{index_id}.{field}"


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


class FileTable:
    """Rows of one pinned state of an index. Each column is loaded once; derived ones are cached."""

    def __init__(self, count: int, load: Callable[[Sequence[str]], pa.Table]) -> None:
        self.count = count
        self._load = load
        self._columns: dict[str, pa.Array] = {}
        self._derived: dict[str, object] = {}

    @classmethod
    def of(cls, rows: pa.Table) -> FileTable:
        return cls(rows.num_rows, lambda names: rows.select(list(names)))

    def column(self, name: str) -> pa.Array:
        """One column as one array; `KeyError` if there is none."""
        if name not in self._columns:
            self._columns[name] = whole_column(self._load([name]).column(name))
        return self._columns[name]

    def derived(self, key: str, make: Callable[[], T]) -> T:
        if key not in self._derived:
            self._derived[key] = make()
        return cast(T, self._derived[key])


# Files as the engine lists them, matched with indexed ones that did not change (rule S5).

Int64s = npt.NDArray[np.int64]

UNKNOWN_ROW = -1
"""In `Matched.rows`: the index knows nothing about the file as it is now."""


@dataclass(frozen=True)
class Listing:
    """Files that a query would read, in the engine's order."""

    paths: pa.Array
    """Hadoop paths (large_string); an empty one is a path that could not be passed."""
    lengths: Int64s
    """Bytes."""
    modified: Int64s
    """Milliseconds since 1970."""
    etags: pa.Array | None = None
    """The store's tags of the contents (large_string, NULL for none), where they are known."""

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def parse(cls, lengths: str, modified: str, paths: str) -> Listing:
        """Parse a listing from three joined strings, which cross from the JVM cheaply."""
        sizes, times = _numbers(lengths), _numbers(modified)
        names = _lines(paths) if len(sizes) else pa.array([], pa.large_string())
        if not len(sizes) == len(times) == len(names):
            counts = f"{len(sizes)} lengths, {len(times)} times, {len(names)} paths"
            raise ValueError(f"a listing has one of each for a file, found {counts}")
        return cls(names, sizes, times)


@dataclass(frozen=True)
class Matched:
    """The index's row for each file of a listing."""

    rows: Int64s
    """Row of the table, or `UNKNOWN_ROW`."""
    stale: int
    """Files that the index knows otherwise: rewritten since, or known twice."""
    missing: int
    """Files that the index does not know."""

    def keep(self, table_keep: Mask) -> Mask:
        """For each file of the listing, whether it must be read, from the rows' answers."""
        known = self.rows != UNKNOWN_ROW
        kept = np.ones(len(self.rows), dtype=np.bool_)
        kept[known] = table_keep[self.rows[known]]
        return kept

    def tags(self, files: FileTable) -> pa.Array:
        """For each file of the listing, the tag it had when it was indexed, or NULL."""
        rows = pa.array(self.rows, mask=self.rows == UNKNOWN_ROW)
        return files.column("etag").take(rows)


def tags_of_dropped(listing: Listing, judged: Sequence[tuple[Mask | None, pa.Array | None]]) -> str:
    """Tags under which dropped local files were indexed, between commas.

    A listing of local files has no tags, since finding them takes a look at each file: who drops
    one looks at it, and compares.

    Returns:
        One for each file that is dropped, in order, empty where it is not known; nothing where
        none is known, or no file is local.
    """
    no_tag = pa.scalar(None, pa.large_string())
    known = pa.nulls(len(listing), pa.large_string())
    dropped = np.zeros(len(listing), dtype=np.bool_)
    for keep, tags in judged:
        if keep is not None and tags is not None:
            dropped |= ~keep
            mine = pc.if_else(pa.array(~keep), tags, no_tag)
            known = pc.coalesce(known, mine)
    is_local = pc.starts_with(listing.paths, "file:/")
    some = pc.if_else(is_local, known, no_tag).filter(pa.array(dropped))
    if some.null_count == len(some):
        return ""
    joined: str = ",".join(tag or "" for tag in some.to_pylist())
    return joined


def match(files: FileTable, listing: Listing) -> Matched:
    """Find each file's row: same path, length and modification time, and etag where both have one.

    Two rows about one path contradict each other, so neither is used.
    """
    found = pc.index_in(listing.paths, value_set=files.column("path"))
    rows: Int64s = pc.fill_null(found, UNKNOWN_ROW).to_numpy(zero_copy_only=False).astype(np.int64)
    rows[_as_mask(pc.equal(listing.paths, pa.scalar("", listing.paths.type)))] = UNKNOWN_ROW
    known = np.flatnonzero(rows != UNKNOWN_ROW)
    candidates = rows[known]
    same = (
        (_numpy(files, "length")[candidates] == listing.lengths[known])
        & (_numpy(files, "modified")[candidates] == listing.modified[known])
        & ~_ambiguous(files)[candidates]
    )
    if listing.etags is not None:
        differs = pc.not_equal(
            files.column("etag").take(pa.array(candidates)), listing.etags.take(pa.array(known))
        )
        same &= ~_as_mask(pc.fill_null(differs, False))
    rows[known[~same]] = UNKNOWN_ROW
    return Matched(rows, stale=int((~same).sum()), missing=len(listing) - len(known))


def _numbers(joined: str) -> Int64s:
    if not joined:
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(joined, dtype=np.int64, sep=",")


def _lines(joined: str) -> pa.Array:
    lines = joined.split("\n")
    try:
        return pa.array(lines, pa.large_string())
    except UnicodeEncodeError:
        # A lone surrogate is no path that could have been indexed.
        whole = [line if line.isascii() or _is_encodable(line) else "" for line in lines]
        return pa.array(whole, pa.large_string())


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _ambiguous(files: FileTable) -> Mask:
    def find() -> Mask:
        encoded = files.column("path").dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.bincount(codes, minlength=1)[codes] > 1, dtype=np.bool_)

    return files.derived("paths known twice", find)


def _numpy(files: FileTable, name: str) -> Int64s:
    return files.derived(
        f"{name} as numpy", lambda: files.column(name).to_numpy(zero_copy_only=False)
    )


def _as_mask(values: pa.Array) -> Mask:
    mask: Mask = values.to_numpy(zero_copy_only=False)
    return mask.copy() if not mask.flags.writeable else mask


# Facts that a file system reports about many files, collected as columns.

_NANOS_PER_MILLI = 1_000_000
_NANO_DIGITS = 6
"""Digits by which nanoseconds are longer than milliseconds."""
_TAG = r"^[0-9]{1,20}\.[0-9]{1,20}\z"
"""The form of `local_tag`, as Arrow's expressions have it."""


class FileFacts:
    """Length, times and inode of local files.

    One list for each fact: a hundred thousand objects would keep the collector busy.
    """

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._modified: list[int] = []
        self._changed: list[int] = []
        self._inodes: list[int] = []

    def add(self, status: os.stat_result) -> None:
        self._lengths.append(status.st_size)
        self._modified.append(status.st_mtime_ns)
        self._changed.append(status.st_ctime_ns)
        self._inodes.append(status.st_ino)

    @property
    def lengths(self) -> pa.Array:
        return pa.array(self._lengths, pa.int64())

    @property
    def modified(self) -> pa.Array:
        return pa.array(np.array(self._modified, np.int64) // _NANOS_PER_MILLI)

    @property
    def tags(self) -> pa.Array:
        """`local_tag` of each (large_string); null where the system has none."""
        if os.name != "posix":
            return pa.nulls(len(self._lengths), pa.large_string())
        times = pa.array(self._changed, pa.int64()).cast(pa.large_string())
        inodes = pa.array(self._inodes, pa.uint64()).cast(pa.large_string())
        return pc.binary_join_element_wise(times, inodes, pa.scalar(".", pa.large_string()))


def last_changes(modified: pa.Array, tags: pa.Array) -> npt.NDArray[np.int64]:
    """`last_change` of many files, from modification times in milliseconds and tags."""
    is_local = pc.match_substring_regex(tags, _TAG)
    heads = pc.list_element(pc.split_pattern(pc.if_else(is_local, tags, "."), "."), 0)
    millis = pc.utf8_slice_codeunits(heads, 0, -_NANO_DIGITS)
    millis = pc.if_else(pc.greater(pc.utf8_length(millis), 0), millis, "0").cast(pa.int64())
    times: npt.NDArray[np.int64] = modified.to_numpy(zero_copy_only=False)
    changed: npt.NDArray[np.int64] = pc.fill_null(millis, 0).to_numpy(zero_copy_only=False)
    newest: npt.NDArray[np.int64] = np.maximum(times, changed)
    return newest

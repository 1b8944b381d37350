"""From segments to one table of files, and which of them to rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexNotPossible, IndexUnreadable
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable, Mask
from snaploom.skipping.formats.sidecar import SidecarReader
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.stores.port import Segment

# Checks a segment's columns against its state, once before any is used.

_ALWAYS_THERE = ("path", "length", "modified")


def checked(
    reader: SidecarReader, segment: Segment, definition: SkippingDefinition
) -> SidecarReader:
    """Return the segment if it is valid.

    Raises:
        IndexUnreadable: it has other columns, types or rows than it must have.
        KeyUnavailable: it is encrypted, and the key is unavailable.
    """
    if reader.rows != segment.rows:
        raise _damaged(reader, f"{reader.rows} rows", f"{segment.rows} rows")
    if len(set(reader.columns)) != len(reader.columns):
        raise _damaged(reader, "a column that is there twice", "every column once")
    wanted = dict(IDENTITY_FIELDS)
    if segment.removed:
        wanted = {"path": wanted["path"]}
    for name, data_type in wanted.items():
        if name not in reader.columns:
            raise _damaged(reader, f"no column {name}", "all columns of an identity")
        _check_type(reader, name, data_type)
    found: dict[str, pa.DataType] = {}
    for index in definition.indexes:
        for position in range(len(index.terms)):
            suffix = f".{position}" if position else ""
            found[f"{index.index_id}.values{suffix}"] = pa.int64()
            found[f"{index.index_id}.nulls{suffix}"] = pa.int64()
        try:
            fields = index_type(index.type).fields(index)
        except IndexNotPossible:
            continue  # nobody here asks it
        found.update({f"{index.index_id}.{name}": kind for name, kind in fields.items()})
    for name, data_type in found.items():
        if name in reader.columns:
            _check_type(reader, name, data_type)
    present = [name for name in _ALWAYS_THERE if name in wanted]
    # Read one by one, as everybody else does: encrypted columns may have keys of their own.
    for name in present:
        if reader.read([name]).column(name).null_count:
            raise _damaged(reader, f"rows without {name}", "rows about files")
    return reader


def _check_type(reader: SidecarReader, name: str, data_type: pa.DataType) -> None:
    found = reader.type_of(name)
    if found != data_type:
        raise _damaged(reader, f"{name} of type {found}", f"{name} of type {data_type}")


def _damaged(reader: SidecarReader, found: str, expected: str) -> IndexUnreadable:
    return IndexUnreadable(f"{reader.name} is damaged", found=found, expected=expected)


# Chooses segments to rewrite: the newest ones, as far back as they are small.

GROWTH = 4
"""Largest ratio of an older segment to all newer ones with which it still joins them."""

SMALL_ROWS = 10_000
"""A segment of no more rows joins in any case: rewriting it takes milliseconds."""


def rewritten_from(segments: Sequence[Segment]) -> int:
    """Number of the first segment to rewrite; the number of all if nothing is gained."""
    start, newer = len(segments), 0
    for number in reversed(range(len(segments))):
        rows = segments[number].rows
        if rows > max(SMALL_ROWS, GROWTH * newer) and newer:
            break
        start, newer = number, newer + rows
    if any(segment.merges for segment in segments[start:]):
        start = 0  # it completes rows of older segments, which only a whole rewrite can place
    is_one_clean = start == 0 and len(segments) == 1 and not segments[0].removed
    return len(segments) if is_one_clean or len(segments) - start < 2 else start


# Assembles segments to one table of files, reading no more than needed.

Numbers = npt.NDArray[np.int64]

_IDENTITY = tuple(name for name, _ in IDENTITY_FIELDS)


class SegmentReader(Protocol):
    """Columns of one segment."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns it has."""
        ...

    def type_of(self, column: str) -> pa.DataType:
        """Type of a column."""
        ...

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""
        ...


@dataclass(frozen=True)
class Part:
    """A segment and its content."""

    segment: Segment
    reader: SegmentReader


@dataclass(frozen=True)
class _Visible:
    visible: Mask
    """For each row of the showing segments, whether it counts."""
    parts: Numbers
    """For each row that counts, the number of its segment."""
    removed: pa.Array
    """Paths that are gone and not shown again."""


@dataclass(frozen=True)
class _Completion:
    part: Part
    source: Numbers
    """For each row that counts, the row of the segment that completes it; -1 for none."""


def assemble(parts: Sequence[Part], definition: SkippingDefinition) -> FileTable:
    """The rows that count, in order of segments, oldest first."""
    shown = [part for part in parts if not part.segment.removed and not part.segment.merges]
    if len(parts) == len(shown) == 1:
        columns = _Columns(shown, None, (), definition)
        return FileTable(shown[0].segment.rows, columns.load)
    newest = _visible(parts)
    merging = [(number, part) for number, part in enumerate(parts) if part.segment.merges]
    completions: list[_Completion] = []
    if merging:
        rows = _Columns(shown, newest.visible, (), definition).load(_IDENTITY)
        completions = [_completion(part, number, newest, rows) for number, part in merging]
    columns = _Columns(shown, newest.visible, completions, definition)
    return FileTable(len(newest.parts), columns.load)


def removed_paths(parts: Sequence[Part]) -> pa.Array:
    """Paths that these segments mark as removed and no later one shows."""
    return _visible(parts).removed


def _visible(parts: Sequence[Part]) -> _Visible:
    own = [(number, part) for number, part in enumerate(parts) if not part.segment.merges]
    paths = pa.chunked_array(
        [chunk for _, part in own for chunk in part.reader.read(["path"]).column("path").chunks],
        pa.large_string(),
    )
    numbers = np.repeat(
        np.array([number for number, _ in own], dtype=np.int64),
        np.array([part.segment.rows for _, part in own], dtype=np.int64),
    )
    encoded = _whole(pc.dictionary_encode(paths))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    places = np.arange(len(codes), dtype=np.int64)
    last = np.zeros(len(encoded.dictionary), dtype=np.int64)
    last[codes] = places  # of equal indices the last one is kept
    is_last = last[codes] == places
    removing = np.array([part.segment.removed for part in parts], dtype=np.bool_)
    is_removal = removing[numbers] if len(numbers) else np.zeros(0, dtype=np.bool_)
    return _Visible(
        visible=is_last[~is_removal],
        parts=numbers[is_last & ~is_removal],
        removed=_whole(paths.filter(pa.array(is_last & is_removal))),
    )


def _completion(part: Part, number: int, newest: _Visible, rows: pa.Table) -> _Completion:
    """Match by path and identity; only rows that are older than the segment are completed."""
    own = part.reader.read(_IDENTITY)
    found = pc.index_in(_whole(rows.column("path")), value_set=_whole(own.column("path")))
    matches = pc.and_(found.is_valid(), pa.array(newest.parts < number))
    for name in _IDENTITY[1:]:
        mine, theirs = _whole(rows.column(name)), _whole(own.column(name)).take(found)
        is_equal = pc.fill_null(pc.equal(mine, theirs), False)
        matches = pc.and_(matches, pc.or_(is_equal, pc.and_(mine.is_null(), theirs.is_null())))
    source = pc.if_else(matches, pc.fill_null(found.cast(pa.int64()), -1), -1)
    return _Completion(part, source.to_numpy(zero_copy_only=False))


class _Columns:
    def __init__(
        self,
        shown: Sequence[Part],
        visible: Mask | None,
        completions: Sequence[_Completion],
        definition: SkippingDefinition,
    ) -> None:
        self._shown = shown
        self._visible = visible
        self._completions = completions
        self._definition = definition

    def load(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows that count.

        Raises:
            KeyError: no segment has such a column, and no index would.
        """
        return pa.table({name: self._column(name) for name in names})

    def _column(self, name: str) -> pa.ChunkedArray:
        data_type = self._type(name)
        chunks = [_column(part, name, data_type) for part in self._shown]
        column = pa.chunked_array([c for chunk in chunks for c in chunk.chunks], data_type)
        if self._visible is not None:
            column = column.filter(pa.array(self._visible))
        if name in _IDENTITY:
            return column
        for completion in self._completions:
            if name in completion.part.reader.columns:
                added = _column(completion.part, name, data_type)
                both = pa.chunked_array([*column.chunks, *added.chunks], data_type)
                own = np.arange(len(column), dtype=np.int64)
                places = np.where(completion.source >= 0, len(column) + completion.source, own)
                column = both.take(pa.array(places))
        return column

    def _type(self, name: str) -> pa.DataType:
        if name in _IDENTITY:
            return dict(IDENTITY_FIELDS)[name]
        sources = [*self._shown, *(completion.part for completion in self._completions)]
        for part in sources:
            if name in part.reader.columns:
                return part.reader.type_of(name)
        index_id, _, field = name.partition(".")
        for index in self._definition.indexes:
            if index.index_id == index_id:
                if field.split(".")[0] in ("values", "nulls"):
                    return pa.int64()
                return index_type(index.type).fields(index)[field]
        raise KeyError(name)


def _column(part: Part, name: str, data_type: pa.DataType) -> pa.ChunkedArray:
    if name not in part.reader.columns:
        return pa.chunked_array([pa.nulls(part.segment.rows, data_type)])
    return part.reader.read([name]).column(name).cast(data_type)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

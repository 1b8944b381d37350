"""Files that have types of their own: a bounded part of their rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from snaploom.discovery.avro import avro_table, open_avro
from snaploom.discovery.dates import type_of_arrow
from snaploom.discovery.foundfiles import (
    AVRO_ROWS,
    ENOUGH_ROWS,
    KEY_ROWS,
    SAMPLE_ROWS,
    FoundFile,
    NotRecognised,
    refuse_width,
)
from snaploom.discovery.layout import Layout, TableFolder
from snaploom.discovery.profiles import (
    ColumnProfile,
    DatabaseTable,
    Hashes,
    SourceProfile,
    profile_column,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# A file of a store as Arrow reads it, and the meter of bytes read.


@dataclass
class Meter:
    """Counts bytes read."""

    bytes_read: int = 0
    files_opened: set[str] = field(default_factory=set)


class ObjectFile(io.RawIOBase):
    """A file of a store, read by ranges."""

    def __init__(self, file: FoundFile, meter: Meter) -> None:
        """Nothing is read yet."""
        self._file = file
        self._meter = meter
        self._at = 0
        meter.files_opened.add(file.uri)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer with bytes from the place on; how many there were."""
        with memoryview(buffer) as view, view.cast("B") as target:
            content = self.read(len(target))
            target[: len(content)] = content
        return len(content)

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from the place on."""
        rest = max(0, self._file.size - self._at)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if wanted == 0:
            return b""
        content = self._file.place.store.get_range(self._file.key, self._at, wanted)
        self._at += len(content)
        self._meter.bytes_read += len(content)
        return content


# Files that have types of their own: a bounded part of their rows as tables of Arrow.

_BATCH = 65_536
"""Rows that are decoded at once."""
_BUFFER = 1024 * 1024
"""Bytes of Avro that are asked for at once."""


@dataclass(frozen=True)
class DataFile:
    """A file with rows of a source."""

    snapshot: int
    """Number of the snapshot it belongs to, from 1."""
    file: FoundFile
    data_format: str


Shape = Callable[[pa.Table, DataFile], pa.Table]
"""Makes the columns of a source of those of one file."""


def as_it_is(table: pa.Table, _: DataFile) -> pa.Table:
    """The columns of a file."""
    return table


class _OpenFile(Protocol):
    """A file whose schema is known."""

    @property
    def rows(self) -> int | None:
        """In all of it; None where only reading shows that."""
        ...

    @property
    def width(self) -> int:
        """Columns."""
        ...

    def table(self, columns: Sequence[str] | None, limit: int) -> pa.Table:
        """The first rows, of some columns or of all."""
        ...


class _Parquet:
    def __init__(self, source: ObjectFile) -> None:
        self._opened = pq.ParquetFile(source)

    @property
    def rows(self) -> int | None:
        return int(self._opened.metadata.num_rows)

    @property
    def width(self) -> int:
        return len(self._opened.schema_arrow)

    def table(self, columns: Sequence[str] | None, limit: int) -> pa.Table:
        names = None if columns is None else list(columns)
        batches = self._opened.iter_batches(_BATCH, columns=names)
        return _first_rows(batches, self._opened.schema_arrow, columns, limit)


class _Orc:
    def __init__(self, source: ObjectFile) -> None:
        self._opened = paorc.ORCFile(pa.PythonFile(source, "r"))

    @property
    def rows(self) -> int | None:
        return int(self._opened.nrows)

    @property
    def width(self) -> int:
        return len(self._opened.schema)

    def table(self, columns: Sequence[str] | None, limit: int) -> pa.Table:
        names = None if columns is None else list(columns)
        stripes = (self._opened.read_stripe(n, names) for n in range(self._opened.nstripes))
        return _first_rows(stripes, self._opened.schema, columns, limit)


class _Avro:
    def __init__(self, source: ObjectFile) -> None:
        self._opened = open_avro(io.BufferedReader(source, _BUFFER))

    @property
    def rows(self) -> int | None:
        return None

    @property
    def width(self) -> int:
        fields = self._opened.schema.get("fields")
        return len(fields) if isinstance(fields, list) else 0

    def table(self, columns: Sequence[str] | None, limit: int) -> pa.Table:
        records = list(islice(self._opened.records, min(limit, AVRO_ROWS)))
        table = avro_table(self._opened.schema, records)
        return table if columns is None else table.select(columns)


_READERS: dict[str, Callable[[ObjectFile], _OpenFile]] = {
    "parquet": _Parquet, "orc": _Orc, "avro": _Avro,
}  # fmt: skip
TYPED_FORMATS = frozenset(_READERS)
"""Formats of files whose columns have types."""


def _first_rows(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, columns: Sequence[str] | None, limit: int
) -> pa.Table:
    taken: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        taken.append(batch)
        rows += batch.num_rows
        if rows >= limit:
            break
    if not taken:
        return schema.empty_table() if columns is None else schema.empty_table().select(columns)
    return pa.Table.from_batches(taken).slice(0, limit)


def profile_typed(
    name: str,
    origin: Layout | TableFolder,
    files: Sequence[DataFile],
    meter: Meter,
    shape: Shape = as_it_is,
) -> SourceProfile:
    """The profile of a source by the first rows of its files.

    `files` are read in this order, those of further snapshots only while rows are few; `shape`
    makes the source's columns from those of a file.

    Raises:
        NotRecognised: there is nothing, or a file is not of its format.
    """
    tables: list[pa.Table] = []
    ids: list[Hashes] = []
    opened: list[DataFile] = []
    rows = read = 0
    is_counted = True
    for data in files:
        if opened and data.snapshot != opened[-1].snapshot and read >= ENOUGH_ROWS:
            break
        found = _READERS[data.data_format](ObjectFile(data.file, meter))
        refuse_width(found.width)
        opened.append(data)
        if read < SAMPLE_ROWS and (found.rows is not None or read < AVRO_ROWS):
            table = shape(found.table(None, SAMPLE_ROWS - read), data)
            tables.append(table)
            ids.append(np.full(len(table), data.snapshot, dtype=np.uint64))
            read += len(table)
        is_counted = is_counted and found.rows is not None
        rows += found.rows or 0
    if not tables:
        raise NotRecognised("no files with rows")
    sample = _concatenated(tables)
    snapshot = np.concatenate(ids)[: len(sample)]
    columns = columns_of(sample, snapshot)
    if is_counted and read < rows and shape is as_it_is:
        columns = _with_key_columns(columns, opened, read, meter)
    return SourceProfile(
        name=name,
        origin=origin,
        columns=tuple(columns),
        rows=rows if is_counted else read,
        rows_read=len(sample),
        snapshot=snapshot,
        snapshots_read=len({data.snapshot for data in opened}),
        format_options={},
        has_one_schema=True,
    )


def profile_rows(name: str, origin: DatabaseTable, sample: pa.Table, rows: int) -> SourceProfile:
    """The profile of a source of which one table of Arrow was read.

    `sample` has its first rows, of `rows` in all.
    """
    snapshot = np.ones(len(sample), dtype=np.uint64)
    return SourceProfile(
        name=name,
        origin=origin,
        columns=tuple(columns_of(sample, snapshot)),
        rows=rows,
        rows_read=len(sample),
        snapshot=snapshot,
        snapshots_read=1,
        format_options={},
        has_one_schema=True,
    )


def columns_of(sample: pa.Table, snapshot: Hashes) -> list[ColumnProfile]:
    """Profiles of the columns of a sample.

    `snapshot` numbers the snapshot of each row.
    """
    return [
        profile_column(
            field.name, type_of_arrow(field.type), sample.column(index), snapshot, len(sample)
        )
        for index, field in enumerate(sample.schema)
        if field.name
    ]


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; the columns of the first where they do not agree."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        return tables[0]


def _with_key_columns(
    columns: Sequence[ColumnProfile],
    files: Sequence[DataFile],
    sample_rows: int,
    meter: Meter,
) -> list[ColumnProfile]:
    """Profiles of columns, those that may be keys by more rows than the sample has."""
    names = [column.name for column in columns if column.is_unique and column.may_be_key]
    if not names:
        return list(columns)
    tables: list[pa.Table] = []
    ids: list[Hashes] = []
    rows = 0
    for data in files:
        if rows >= KEY_ROWS:
            break
        found = _READERS[data.data_format](ObjectFile(data.file, meter))
        table = found.table(names, KEY_ROWS - rows)
        tables.append(table)
        ids.append(np.full(len(table), data.snapshot, dtype=np.uint64))
        rows += len(table)
    table = _concatenated(tables)
    snapshot = np.concatenate(ids)[: len(table)]
    again = {
        name: profile_column(
            name, type_of_arrow(table.schema.field(name).type), table.column(name), snapshot,
            sample_rows,
        )
        for name in names
        if name in table.schema.names
    }  # fmt: skip
    return [again.get(column.name, column) for column in columns]

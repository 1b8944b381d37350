"""Files that have types of their own: a bounded part of their rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from snaploom.files.typedfiles import RangedFile, reader_at
from snaploom.plugins.discovery.avro import avro_table, open_avro
from snaploom.plugins.discovery.dates import type_of_arrow
from snaploom.plugins.discovery.foundfiles import (
    AVRO_ROWS,
    ENOUGH_ROWS,
    KEY_ROWS,
    SAMPLE_ROWS,
    FoundFile,
    NotRecognised,
    refuse_width,
)
from snaploom.plugins.discovery.layout import Layout, TableFolder
from snaploom.plugins.discovery.profiles import (
    ColumnProfile,
    DatabaseTable,
    Hashes,
    SourceProfile,
    profile_column,
)
from snaploom.policy.fileformats import known_formats

# A file of a store as Arrow reads it, and the meter of bytes read.


@dataclass
class Meter:
    """Counts bytes read."""

    bytes_read: int = 0
    files_opened: set[str] = field(default_factory=set)


def object_file(file: FoundFile, meter: Meter) -> RangedFile:
    """A file of a store, read by ranges."""

    def read(start: int, length: int) -> bytes:
        content = file.place.store.get_range(file.key, start, length)
        meter.bytes_read += len(content)
        return content

    meter.files_opened.add(file.uri)
    return RangedFile(file.size, read)


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


@dataclass(frozen=True)
class _OpenFile:
    """A file whose schema is known."""

    rows: int | None
    """In all of it; None where only reading shows that."""
    width: int
    """Columns."""
    table: Callable[[Sequence[str] | None, int], pa.Table]
    """The first rows, of some columns or of all."""


def _parquet(source: RangedFile) -> _OpenFile:
    opened = pq.ParquetFile(source)
    schema = opened.schema_arrow

    def table(columns: Sequence[str] | None, limit: int) -> pa.Table:
        batches = opened.iter_batches(_BATCH, columns=None if columns is None else list(columns))
        return _first_rows(batches, schema, columns, limit)

    return _OpenFile(int(opened.metadata.num_rows), len(schema), table)


def _orc(source: RangedFile) -> _OpenFile:
    opened = paorc.ORCFile(pa.PythonFile(source, "r"))

    def table(columns: Sequence[str] | None, limit: int) -> pa.Table:
        names = None if columns is None else list(columns)
        stripes = (opened.read_stripe(n, names) for n in range(opened.nstripes))
        return _first_rows(stripes, opened.schema, columns, limit)

    return _OpenFile(int(opened.nrows), len(opened.schema), table)


def _avro(source: RangedFile) -> _OpenFile:
    opened = open_avro(io.BufferedReader(source, _BUFFER))

    def table(columns: Sequence[str] | None, limit: int) -> pa.Table:
        found = avro_table(opened.schema, list(islice(opened.records, min(limit, AVRO_ROWS))))
        return found if columns is None else found.select(columns)

    fields = opened.schema.get("fields")
    return _OpenFile(None, len(fields) if isinstance(fields, list) else 0, table)


def _of_ours(place: str, source: RangedFile) -> _OpenFile:
    opened = reader_at(place)(pa.PythonFile(io.BufferedReader(source, _BUFFER), "r"))

    def table(columns: Sequence[str] | None, limit: int) -> pa.Table:
        found = _first_rows(opened, opened.schema, None, limit)
        return found if columns is None else found.select(columns)

    return _OpenFile(None, len(opened.schema), table)


_READERS: dict[str, Callable[[RangedFile], _OpenFile]] = {
    "parquet": _parquet, "orc": _orc, "avro": _avro,
    **{each.name: partial(_of_ours, each.reader) for each in known_formats() if each.reader},
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
        found = _READERS[data.data_format](object_file(data.file, meter))
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
        found = _READERS[data.data_format](object_file(data.file, meter))
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

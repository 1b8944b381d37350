"""Files that Spark has no reader for, opened as batches of Arrow: on the driver and in workers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.types.arrow import is_list

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Reader = Callable[[pa.NativeFile], pa.RecordBatchReader]
"""Opens a file; raises a `ValueError` or `OSError` where it is not whole, then or from a batch."""
Arguments = Mapping[str, object]
"""Keyword arguments of a reader (`FileFormat.arguments`)."""

PATH, CONTENT = "path", "content"
"""Columns that `RowsOfFiles` takes: the URL of a file and, unless it is a local one, its bytes."""
LARGEST = (1 << 31) - (1 << 20)
"""Bytes of a file of a store: Spark gives a worker no more as one value."""
_ROWS = 10_000
"""Rows that a worker gives at once, whatever batches the file has."""
_LOCAL = re.compile("^file:/+")
_INLINE = 12
"""Bytes of a text that lie in its view itself."""
FAULTS = (ValueError, OSError, LookupError, TypeError, ArithmeticError, EOFError, pa.ArrowException)
"""Errors that readers raise about a file that is not whole, or not of its format."""


def reader_at(place: str, arguments: Arguments = MappingProxyType({})) -> Reader:
    """The reader of a format, by `module:function`."""
    return partial(cast(Reader, resolve_name(place)), **arguments)


class LocalFile(pa.OSFile):  # type: ignore[misc]  # PyArrow has no types
    """A file of this machine, for readers that open it by its path."""

    def __init__(self, path: str) -> None:
        self.path = path


class RangedFile(io.RawIOBase):
    """A file that is read by ranges."""

    def __init__(self, size: int, read: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._read = read
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer with bytes from the place on; how many there were."""
        with memoryview(buffer) as view, view.cast("B") as target:
            content = self.read(len(target))
            target[: len(content)] = content
        return len(content)

    def read(self, size: int | None = -1) -> bytes:
        rest = max(0, self._size - self._at)
        wanted = rest if size is None or size < 0 else min(size, rest)
        content = self._read(self._at, wanted) if wanted else b""
        self._at += len(content)
        return content


# Arrow's own files: IPC files, which Feather's are from version 2 on, and streams.

_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"
_ENDS = (4, 8)
"""Bytes of the mark at the end of a stream, of old and of new writers."""


def open_ipc(file: pa.NativeFile) -> pa.RecordBatchReader:
    """Open an IPC file or stream."""
    magic = file.read(len(_FILE))
    file.seek(0)
    if magic.startswith(_FEATHER_1):
        raise ValueError("it is a file of Feather's version 1: write it by version 2")
    if magic != _FILE:
        stream = pa.ipc.open_stream(file)
        return pa.RecordBatchReader.from_batches(stream.schema, _to_the_mark(file, stream))
    whole = pa.ipc.open_file(file)
    file.seek(len(_FILE) + 2)  # padded to eight bytes, before the same messages as of a stream
    batches = _as_many(pa.ipc.open_stream(file), whole.num_record_batches)
    return pa.RecordBatchReader.from_batches(whole.schema, batches)


def _as_many(stream: pa.RecordBatchReader, number: int) -> Iterator[pa.RecordBatch]:
    """Batches of a file, as many as its footer has; by a damaged one, some would be left out."""
    count = 0
    for batch in stream:
        count += 1
        yield batch
    if count != number:
        raise ValueError(f"it has {count} batches, and {number} in its footer")


def _to_the_mark(file: pa.NativeFile, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Batches of a stream, which may end between two of them, if its writer was stopped."""
    at = file.tell()
    for batch in stream:
        yield batch
        at = file.tell()
    if file.tell() - at not in _ENDS or file.tell() != file.size():
        raise ValueError("the stream does not end in its end mark: it was cut short, or goes on")


# Rows of files in a worker of Spark, with the columns and types of the source.


@dataclass(frozen=True)
class RowsOfFiles:
    """Makes batches of rows out of batches of files, in a worker (`mapInArrow`)."""

    reader: str
    """As `reader_at` takes it."""
    arguments: Arguments
    """Likewise."""
    schema: pa.Schema
    file_column: str
    """A further column, with the URL of the file of each row; empty for none."""

    def __call__(self, files: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all files."""
        for batch in files:
            contents = batch.column(CONTENT) if CONTENT in batch.schema.names else None
            for place, url in enumerate(batch.column(PATH).to_pylist()):
                yield from self._rows(url, None if contents is None else contents[place])

    def _rows(self, url: str, content: pa.BinaryScalar | None) -> Iterator[pa.RecordBatch]:
        try:
            with _opened(url, content) as file:
                for batch in reader_at(self.reader, self.arguments)(file):
                    batch.validate(full=True)
                    for first in range(0, batch.num_rows, _ROWS):
                        yield self._conformed(batch.slice(first, _ROWS), url)
        except FAULTS as error:
            raise OSError(f"Could not read file: {unquote(url)}. {error}") from None

    def _conformed(self, batch: pa.RecordBatch, url: str) -> pa.RecordBatch:
        columns = _parts(batch.columns, batch.schema.names, batch.num_rows, list(self.schema))
        names = list(self.schema.names)
        if self.file_column:
            columns.append(pa.repeat(pa.scalar(url), batch.num_rows))
            names.append(self.file_column)
        return pa.RecordBatch.from_arrays(columns, names)


def _opened(url: str, content: pa.BinaryScalar | None) -> pa.NativeFile:
    if content is not None:
        return pa.BufferReader(content.as_buffer())
    return LocalFile(unquote(_LOCAL.sub("/", url)))


def _parts(
    values: list[pa.Array], names: list[str], rows: int, fields: list[pa.Field]
) -> list[pa.Array]:
    """Columns or fields of structs as other ones, found by their names without regard to case."""
    own = dict(zip((name.lower() for name in names), values, strict=True))
    return [
        conform(own[field.name.lower()], field.type)
        if field.name.lower() in own
        else pa.nulls(rows, field.type)
        for field in fields
    ]


def conform(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values as a type that holds them."""
    if isinstance(values, pa.ExtensionArray):
        return conform(values.storage, wanted)
    own = values.type
    if pa.types.is_dictionary(own):
        return conform(values.dictionary_decode(), wanted)
    if pa.types.is_run_end_encoded(own):
        return conform(pc.run_end_decode(values), wanted)
    if pa.types.is_null(own):
        return pa.nulls(len(values), wanted)
    if own == wanted:
        return values
    if pa.types.is_struct(wanted):
        fields = list(wanted)
        parts = _parts(values.flatten(), [one.name for one in own], len(values), fields)
        return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())
    if pa.types.is_map(wanted):
        entry = pa.struct([wanted.key_field, wanted.item_field])
        pairs = conform(values.keys, wanted.key_type), conform(values.items, wanted.item_type)
        return _around(values, wanted, pa.StructArray.from_arrays(pairs, fields=list(entry)))
    if is_list(own):
        if not pa.types.is_list(own):
            values = values.cast(pa.list_(own.value_type))
        return _around(values, wanted, conform(values.values, wanted.value_type))
    is_view = pa.types.is_string_view(own) or pa.types.is_binary_view(own)
    # Digits of times after microseconds are cut, as those of Parquet.
    is_safe = not (pa.types.is_timestamp(wanted) and str(own).startswith("timestamp[ns"))
    return (_sound(values) if is_view else values).cast(wanted, safe=is_safe)


def _sound(views: pa.Array) -> pa.Array:
    """The same texts, each within its buffer, which Arrow's own validation does not look at."""
    _, buffer, *contents = views.buffers()
    if not len(views) or buffer is None:
        return views
    found = np.frombuffer(buffer, np.int32).reshape(-1, 4)[views.offset :][: len(views)].copy()
    found[views.is_null().to_numpy(zero_copy_only=False)] = 0
    length, place, start = found[:, 0], found[:, 2], found[:, 3]
    is_apart = length > _INLINE
    ends = np.array([content.size for content in contents] or [-1], np.int64)
    known = np.clip(place, 0, len(ends) - 1)
    is_there = (place == known) & (start >= 0) & (start.astype(np.int64) + length <= ends[known])
    if (length < 0).any() or not is_there[is_apart].all():
        raise ValueError("a text of it lies outside of the file")
    parts = [views.is_valid().buffers()[1] if views.null_count else None, pa.py_buffer(found)]
    return pa.Array.from_buffers(views.type, len(views), [*parts, *contents], views.null_count)


def _around(values: pa.Array, wanted: pa.DataType, inner: pa.Array) -> pa.Array:
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(
        wanted, len(values), buffers, values.null_count, values.offset, [inner]
    )

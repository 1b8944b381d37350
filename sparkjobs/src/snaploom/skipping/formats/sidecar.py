"""Our own files: one Parquet file of rows about data files, columns read when needed.

The columns are those of `snaploom.skipping.core.filetable`, flat and under their own names; the
footer's key `snaploom.skipping` holds the format version and the reader of the rows.
Rows lie in order of paths, delta encoded: of a path only what differs from the one before is
kept, so that writing paths relative to the target would save nothing (measured: 10.3 bytes a path
either way). Statistics and dictionaries of values that hardly repeat are left out.

One file of 1,000,000 rows with five indexes of type MIN_MAX takes about 76 bytes a row; opening
it and reading identity and two indexes takes about 0.4 s of processor time.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.errors import IndexUnreadable, KeyUnavailable
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.formats.parquetfiles import (
    MOST_DECODED,
    BoundedParquet,
    EncryptionProperties,
    ParquetKeys,
)

SIDECAR_FORMAT = 1
"""Format of the files; a newer one is refused."""

METADATA_KEY = b"snaploom.skipping"
"""Key of the footer that holds the format."""

ROW_GROUP_ROWS = 131_072
"""Rows that are encoded at once: enough for columns to compress, few enough to be buffered."""

ROW_GROUP_BYTES = 32 * 1024 * 1024
"""The same limit for wide rows (blooms)."""

FILE_BYTES = 128 * 1024 * 1024
"""Size at which a file is closed and another one begun: it is held in memory while written."""

FILE_DECODED = MOST_DECODED // 2
"""The same for the size of its rows in memory, which readers bound: filters that are nearly empty
are a hundredth of that in a file."""

PAGE_BYTES = 128 * 1024
"""Size of pages. Of paths that begin alike, readers know only that each is no longer than a page,
and read so many at once as fit all the same."""

_IDENTITY = tuple(name for name, _ in IDENTITY_FIELDS)
_TEXT = (pa.types.is_large_binary, pa.types.is_large_string, pa.types.is_binary, pa.types.is_string)


@dataclass(frozen=True)
class SidecarFile:
    """A finished file."""

    data: bytes
    rows: int
    indexes: tuple[str, ...]
    """Ids of the indexes about which it has columns, in order of columns."""


def write_sidecars(
    rows: Iterable[pa.Table], definition: SkippingDefinition, keys: ParquetKeys | None
) -> Iterator[SidecarFile]:
    """Encode rows as files of bounded size; no rows give no file.

    Raises:
        KeyUnavailable: a key is named and unavailable.
    """
    writer: _Writer | None = None
    for piece in _pieces(rows):
        if writer is None:
            writer = _Writer(piece.schema, definition, keys)
        writer.write(piece)
        if writer.size > FILE_BYTES or writer.decoded > FILE_DECODED:
            yield writer.finish()
            writer = None
    if writer is not None:
        yield writer.finish()


class SidecarReader:
    """An open file."""

    def __init__(self, data: bytes, name: str, keys: ParquetKeys | None) -> None:
        """Read the footer; `name` is for messages.

        Raises:
            IndexUnreadable: it is damaged, none of ours, or of a newer format.
            KeyUnavailable: it is encrypted, and the key is unavailable.
        """
        self.name = name
        self._file = BoundedParquet(data, keys, name)
        facts = _facts(self._file.schema, name)
        self._is_encrypted = bool(facts.get("encrypted"))
        self.rows: int = self._file.rows
        self.columns: tuple[str, ...] = tuple(self._file.schema.names)

    def type_of(self, column: str) -> pa.DataType:
        """Return the type of a column."""
        return self._file.schema.field(column).type

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all rows.

        Raises:
            IndexUnreadable: it is damaged, or takes too much memory.
            KeyUnavailable: a column is encrypted, and its key is unavailable.
        """
        return self._file.read(columns, is_encrypted=self._is_encrypted)


class _Writer:
    def __init__(
        self, schema: pa.Schema, definition: SkippingDefinition, keys: ParquetKeys | None
    ) -> None:
        self._sink = io.BytesIO()
        self._schema = schema.with_metadata({METADATA_KEY: _metadata(definition)})
        self._rows = 0
        self.decoded = 0
        self._indexes = tuple(
            {name.split(".")[0]: None for name in schema.names if name not in _IDENTITY}
        )
        dictionaries = [name for name in schema.names if _repeats(name)]
        found: dict[str, str] = {}
        for field in schema:
            if _repeats(field.name):
                continue
            if pa.types.is_signed_integer(field.type):
                found[field.name] = "DELTA_BINARY_PACKED"
            elif any(is_text(field.type) for is_text in _TEXT):
                found[field.name] = "DELTA_BYTE_ARRAY"
            elif pa.types.is_float32(field.type) or pa.types.is_float64(field.type):
                found[field.name] = "BYTE_STREAM_SPLIT"
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression="zstd",
            write_statistics=False,
            use_dictionary=dictionaries,
            column_encoding=found,
            data_page_size=PAGE_BYTES,
            write_page_checksum=True,
            encryption_properties=_encryption(schema, definition, keys),
        )

    @property
    def size(self) -> int:
        return self._sink.tell()

    def write(self, piece: pa.Table) -> None:
        ordered = piece.cast(self._schema).sort_by("path")
        self._writer.write_table(ordered, row_group_size=ROW_GROUP_ROWS)
        self._rows += piece.num_rows
        self.decoded += piece.nbytes

    def finish(self) -> SidecarFile:
        self._writer.close()
        return SidecarFile(self._sink.getvalue(), self._rows, self._indexes)


def _pieces(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    count = size = 0
    for piece in (piece for table in rows for piece in _bounded(table)):
        waiting.append(piece)
        count += piece.num_rows
        size += piece.nbytes
        if count >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting, count, size = [], 0, 0
    if count:
        yield pa.concat_tables(waiting)


def _bounded(table: pa.Table) -> Iterator[pa.Table]:
    by_size = table.num_rows * ROW_GROUP_BYTES // max(table.nbytes, 1)
    step = max(1, min(ROW_GROUP_ROWS, by_size))
    return (table.slice(start, step) for start in range(0, table.num_rows, step))


def _repeats(name: str) -> bool:
    return name == "etag" or ".nulls" in name


def _metadata(definition: SkippingDefinition) -> bytes:
    facts = {
        "format": SIDECAR_FORMAT,
        "fingerprint": asdict(definition.fingerprint),
        "encrypted": _is_encrypted(definition),
    }
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _facts(schema: pa.Schema, name: str) -> Mapping[str, object]:
    try:
        facts = json.loads((schema.metadata or {})[METADATA_KEY])
        version = int(facts["format"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise IndexUnreadable(
            f"{name} is none of Snaploom's files", expected=f"a footer with {METADATA_KEY!r}"
        ) from error
    if version > SIDECAR_FORMAT:
        raise IndexUnreadable(
            f"{name} was written by a newer Snaploom",
            found=f"format {version}",
            expected=f"format {SIDECAR_FORMAT} or older",
        )
    return dict(facts)


def _is_encrypted(definition: SkippingDefinition) -> bool:
    return bool(definition.footer_key_label) or any(i.key_label for i in definition.indexes)


def _encryption(
    schema: pa.Schema, definition: SkippingDefinition, keys: ParquetKeys | None
) -> EncryptionProperties | None:
    if not _is_encrypted(definition):
        return None
    if keys is None:
        raise KeyUnavailable(
            "the index is to be encrypted, and no key management service is configured"
        )
    labels = {index.index_id: index.key_label for index in definition.indexes if index.key_label}
    columns: dict[str, list[str]] = {}
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink)
    found = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    for leaf in [found.column(number).path for number in range(len(found))]:
        is_identity = leaf in _IDENTITY
        label = definition.footer_key_label if is_identity else labels.get(leaf.split(".")[0], "")
        if label:
            columns.setdefault(label, []).append(leaf)
    return keys.encryption(definition, columns)

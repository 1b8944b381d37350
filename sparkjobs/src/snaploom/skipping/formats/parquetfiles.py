"""Parquet files of indexes: opened within bounds, encrypted by key labels, and those of our own.

A sidecar has rows about data files. Its columns are those of `snaploom.skipping.core.filetable`,
flat and under their own names; the footer's key `snaploom.skipping` holds the format version and
the reader of the rows. Rows lie in order of paths, delta encoded: of a path only what differs from
the one before is kept (10.3 bytes a path, measured; relative paths would save nothing). Statistics,
and dictionaries of values that hardly repeat, are left out.

One file of 1,000,000 rows with five indexes of type MIN_MAX takes about 76 bytes a row; opening
it and reading identity and two indexes takes about 0.4 s of processor time.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.metadata import entry_points
from typing import NewType, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption as pe

from snaploom.errors import IndexUnreadable, KeyUnavailable
from snaploom.installed import load_registered
from snaploom.parquet.footers import Column, DecodedSize, PagesInvalid, decoded_size, footer_columns
from snaploom.parquet.thrift import PathsTooLong, StructInvalid
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS

# The port through which Parquet files of an index are encrypted and decrypted.

EncryptionProperties = NewType("EncryptionProperties", object)
"""`encryption_properties` of `pyarrow.parquet.write_table`: good for one file only."""

DecryptionProperties = NewType("DecryptionProperties", object)
"""`decryption_properties` of `pyarrow.parquet.ParquetFile`: good for one file only."""


class KeyService(Protocol):
    """A key management service: it wraps keys under a master key that never leaves it.

    Both methods raise `KeyUnavailable`: no such label, not allowed, or no answer.
    """

    def wrap(self, label: str, key: bytes) -> str:
        """Encrypt a key under the master key of a label, as printable text."""

    def unwrap(self, label: str, wrapped: str) -> bytes:
        """Decrypt a key that `wrap` encrypted under a label."""


# Opens the key management service that `spark.snaploom.skipping.kms` names.

SETTING = "spark.snaploom.skipping.kms"
"""Spark setting with the URL; empty for none."""

ENTRY_POINTS = "snaploom.skipping.kms"
"""Entry-point group of services."""

Opening = Callable[[str], KeyService]
"""From the rest of the URL after `<scheme>+` to the service."""


def open_keys(url: str) -> ParquetKeys | None:
    """Keys of the service that a setting names; None when it is empty."""
    if not url:
        return None
    scheme, _, rest = url.partition("+")
    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if scheme not in entries:
        raise KeyUnavailable(
            f"{SETTING} names a key management service that is not registered here",
            found=f"{scheme}+URL" if rest else "no name before a +",
            expected=", ".join(f"{name}+URL" for name in sorted(entries)) or "none is registered",
            hint=f"install the package that registers it in the entry-point group {ENTRY_POINTS}",
        )
    opening = cast(Opening, load_registered(entries[scheme], "the key management service"))
    return ParquetKeys(opening(rest))


# Parquet Modular Encryption by key labels.

CACHE_LIFETIME = timedelta(minutes=10)
"""Time for which unwrapped keys are kept in memory: parquet-mr's default."""

DATA_KEY_BITS = 128
"""Length of the keys of columns: parquet-mr's default."""


class ParquetKeys:
    """Keys for the files of an index, from a service."""

    def __init__(self, service: KeyService) -> None:
        self._factory = pe.CryptoFactory(lambda _: _Client(service))

    def encryption(
        self, definition: SkippingDefinition, columns: Mapping[str, Sequence[str]]
    ) -> EncryptionProperties:
        configuration = pe.EncryptionConfiguration(
            footer_key=definition.footer_key_label,
            column_keys={label: list(leaves) for label, leaves in columns.items()},
            plaintext_footer=definition.plaintext_footer,
            double_wrapping=True,
            cache_lifetime=CACHE_LIFETIME,
            internal_key_material=True,
            data_key_length_bits=DATA_KEY_BITS,
        )
        connection = pe.KmsConnectionConfig()
        properties = self._factory.file_encryption_properties(connection, configuration)
        return EncryptionProperties(properties)

    def decryption(self) -> DecryptionProperties:
        configuration = pe.DecryptionConfiguration(cache_lifetime=CACHE_LIFETIME)
        properties = self._factory.file_decryption_properties(
            pe.KmsConnectionConfig(), configuration
        )
        return DecryptionProperties(properties)


class _Client(pe.KmsClient):  # type: ignore[misc] # pyarrow is untyped
    """Adapter from a service to pyarrow's client."""

    def __init__(self, service: KeyService) -> None:
        super().__init__()
        self._service = service

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self._service.wrap(master_key_identifier, key_bytes)

    def unwrap_key(self, wrapped_key: bytes | str, master_key_identifier: str) -> bytes:
        text = wrapped_key.decode("ascii") if isinstance(wrapped_key, bytes) else wrapped_key
        return self._service.unwrap(master_key_identifier, text)


# Parquet files of untrusted origin, opened and read within bounds.

LONGEST_FOOTER = 4 * 1024 * 1024
"""Bytes of the longest footer: 256 indexes in a dozen row groups take 2 MB."""

MOST_ROW_GROUPS, MOST_COLUMNS = 10_000, 4_096
"""Row groups and columns of a file: a file of ours has a dozen row groups, and some columns for
each of at most 256 indexes."""

MOST_DECODED = 1024 * 1024 * 1024
"""Bytes that the columns of one file may take that are read together; ours are written for half of
that (`sidecar.FILE_DECODED`)."""

_LONGEST_TEXT, _LONGEST_LIST = 8 * 1024 * 1024, 50_000
_BATCH_BYTES = 128 * 1024 * 1024
_MOST_BATCH_ROWS = 131_072
_MAGIC, _MAGIC_ENCRYPTED = b"PAR1", b"PARE"


class BoundedParquet:
    """An open file in memory, decrypted when read; INT96 timestamps as microseconds."""

    def __init__(self, data: bytes, keys: ParquetKeys | None, name: str) -> None:
        """Read the footer; `name` is for messages."""
        self._data = data
        self._name = name
        self._has_keys = keys is not None
        self._lock = threading.Lock()  # queries of several threads share what is open
        self._sizes: dict[int, tuple[DecodedSize | None, ...]] = {}
        if data[-4:] not in (_MAGIC, _MAGIC_ENCRYPTED):
            raise damaged(name)
        length = int.from_bytes(data[-8:-4], "little")
        if length > LONGEST_FOOTER:
            raise beyond(name, f"a footer of {length:,} bytes; at most {LONGEST_FOOTER:,}")
        columns: tuple[tuple[Column | None, ...], ...] = ()
        if data[-4:] == _MAGIC:  # of an encrypted footer nothing can be forged without the key
            try:
                columns = footer_columns(data[max(0, len(data) - 8 - length) : -8])
            except (PathsTooLong, PagesInvalid) as error:
                raise beyond(name, str(error)) from error
            except StructInvalid as error:
                raise damaged(name) from error
        self._columns = columns
        try:
            self.file = pq.ParquetFile(
                pa.BufferReader(data),
                decryption_properties=None if keys is None else keys.decryption(),
                coerce_int96_timestamp_unit="us",
                # What is damaged may decode to other bounds, by which queries would lose rows.
                page_checksum_verification=True,
                thrift_string_size_limit=_LONGEST_TEXT,
                thrift_container_size_limit=_LONGEST_LIST,
            )
            self.schema: pa.Schema = self.file.schema_arrow
        except FAILURES as error:
            is_encrypted = data[:4] == _MAGIC_ENCRYPTED == data[-4:]
            raise (key_unavailable if is_encrypted else damaged)(name) from error
        found = self.file.metadata
        if not 0 <= found.num_row_groups <= MOST_ROW_GROUPS:
            raise beyond(name, f"{found.num_row_groups} row groups")
        if not 0 < found.num_columns <= MOST_COLUMNS:
            raise beyond(name, f"{found.num_columns} columns")
        self.rows: int = found.num_rows
        if any(len(group) != found.num_columns for group in columns):
            raise beyond(name, "row groups without a column, or with another one")

    def read(self, columns: Sequence[str] | None, *, is_encrypted: bool) -> pa.Table:
        """Some or all (None) top-level columns of all rows; keys are needed if encrypted."""
        wanted = list(self.schema.names if columns is None else columns)
        try:
            with self._lock:
                found = self._read(wanted)
        except StructInvalid as error:
            raise beyond(self._name, str(error)) from error
        except FAILURES as error:
            raise (key_unavailable if is_encrypted else damaged)(self._name) from error
        if found.num_rows != self.rows:
            raise damaged(self._name)
        return found

    def _read(self, wanted: list[str]) -> pa.Table:
        leaves = self._leaves(wanted)
        sizes = [self._sizes_of(leaf) for leaf in leaves]
        plain = sum(
            size.most for each in sizes for size in each if size and not size.repeats_previous
        )
        if plain > MOST_DECODED:
            raise PagesInvalid(f"columns of {plain:,} bytes; at most {MOST_DECODED:,}")
        doubtful = sum(size.most for each in sizes for size in each if size)
        # pyarrow's callbacks for keys and its threads have deadlocked before: one or the other.
        threads = not self._has_keys
        if doubtful <= MOST_DECODED:
            # pyarrow reads `i1.values.1` too when asked for `i1.values`.
            return self.file.read(columns=wanted, use_threads=threads).select(wanted)
        longest = max(size.longest_value for each in sizes for size in each if size)
        rows = max(1, min(_MOST_BATCH_ROWS, _BATCH_BYTES // max(longest, 1)))
        batches: list[pa.RecordBatch] = []
        taken = 0
        for batch in self.file.iter_batches(rows, columns=wanted, use_threads=threads):
            taken += batch.nbytes
            if taken > MOST_DECODED:
                raise PagesInvalid(f"columns of more than {MOST_DECODED:,} bytes")
            batches.append(batch)
        schema = pa.schema([self.schema.field(name) for name in wanted])
        return pa.Table.from_batches([each.select(wanted) for each in batches], schema)

    def _leaves(self, wanted: Sequence[str]) -> list[int]:
        named = frozenset(wanted)
        schema = self.file.schema
        found = []
        for number in range(len(schema)):
            path = schema.column(number).path
            parts = path.split(".")
            # Names have dots: a leaf belongs to each column that its path may begin with.
            if any(".".join(parts[:count]) in named for count in range(1, len(parts) + 1)):
                found.append(number)
        return found

    def _sizes_of(self, leaf: int) -> tuple[DecodedSize | None, ...]:
        if leaf not in self._sizes:
            is_nested = self.file.schema.column(leaf).max_repetition_level > 0
            chunks = (group[leaf] for group in self._columns)
            self._sizes[leaf] = tuple(
                None if chunk is None else decoded_size(self._data, chunk, is_nested)
                for chunk in chunks
            )
        return self._sizes[leaf]


FAILURES = (OSError, ValueError, KeyError, TypeError, NotImplementedError, pa.ArrowException)
"""Errors of pyarrow about a file that contradicts itself, memory that it cannot have included
(`ArrowMemoryError`)."""


def key_unavailable(name: str) -> KeyUnavailable:
    """Build the error for a file whose key is unavailable."""
    return KeyUnavailable(
        f"{name} is encrypted and cannot be read",
        found="no key, or not the one with which it was written",
        expected="the key with the label that the index names",
    )


def damaged(name: str) -> IndexUnreadable:
    """Build the error for a file that is no Parquet file."""
    return IndexUnreadable(f"{name} is damaged", expected="a whole Parquet file")


def beyond(name: str, found: str) -> IndexUnreadable:
    """Build the error for a file beyond the bounds."""
    return IndexUnreadable(
        f"{name} is beyond what is read of an index",
        found=found,
        expected="a file as Snaploom, or a metadata store's own writer, makes them",
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
    """Encode rows as files of bounded size; no rows give no file."""
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
        """Read the footer; `name` is for messages."""
        self.name = name
        self._file = BoundedParquet(data, keys, name)
        facts = _facts(self._file.schema, name)
        self._is_encrypted = bool(facts.get("encrypted"))
        self.rows: int = self._file.rows
        self.columns: tuple[str, ...] = tuple(self._file.schema.names)

    def type_of(self, column: str) -> pa.DataType:
        return self._file.schema.field(column).type

    def read(self, columns: Sequence[str]) -> pa.Table:
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

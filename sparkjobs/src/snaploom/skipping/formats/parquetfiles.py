"""Parquet files of indexes: opened within bounds, encrypted by key labels and key services."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib.metadata import entry_points
from typing import NewType, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption as pe

from snaploom.errors import IndexUnreadable, KeyUnavailable
from snaploom.ondemand import load_registered
from snaploom.parquet.pages import Column, DecodedSize, PagesInvalid, decoded_size, footer_columns
from snaploom.parquet.thrift import PathsTooLong, StructInvalid
from snaploom.skipping.core.definition import SkippingDefinition

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
        ...

    def unwrap(self, label: str, wrapped: str) -> bytes:
        """Decrypt a key that `wrap` encrypted under a label."""
        ...


class ParquetKeys(Protocol):
    """Keys for the files of an index."""

    def encryption(
        self, definition: SkippingDefinition, columns: Mapping[str, Sequence[str]]
    ) -> EncryptionProperties:
        """Properties for writing one file, with leaf columns by key label; others are unencrypted.

        Raises:
            KeyUnavailable: a key is unavailable.
        """
        ...

    def decryption(self) -> DecryptionProperties:
        """Properties for reading one file; they work for unencrypted files, too."""
        ...


# Opens the key management service that `spark.snaploom.skipping.kms` names.

SETTING = "spark.snaploom.skipping.kms"
"""Spark setting with the URL; empty for none."""

ENTRY_POINTS = "snaploom.skipping.kms"
"""Entry-point group of services."""

Opening = Callable[[str], KeyService]
"""From the rest of the URL after `<scheme>+` to the service."""


def open_keys(url: str) -> ParquetKeys | None:
    """Keys of the service that a setting names; None when it is empty.

    Raises:
        KeyUnavailable: no such service is registered here.
        IndexNotPossible: its code cannot be loaded.
    """
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
    return ServiceKeys(opening(rest))


# Parquet Modular Encryption by key labels.

CACHE_LIFETIME = timedelta(minutes=10)
"""Time for which unwrapped keys are kept in memory: parquet-mr's default."""

DATA_KEY_BITS = 128
"""Length of the keys of columns: parquet-mr's default."""


class ServiceKeys:
    """The keys of a service, as `ParquetKeys`."""

    def __init__(self, service: KeyService) -> None:
        self._factory = pe.CryptoFactory(lambda _: _Client(service))

    def encryption(
        self, definition: SkippingDefinition, columns: Mapping[str, Sequence[str]]
    ) -> EncryptionProperties:
        """Properties for writing one file."""
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
        """Properties for reading one file."""
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
        """Read the footer; `name` is for messages.

        Raises:
            KeyUnavailable: it is encrypted, and there are no keys or the wrong ones.
            IndexUnreadable: it is no Parquet file, damaged, or beyond the bounds.
        """
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
        """Some or all (None) top-level columns of all rows; keys are needed if encrypted.

        Raises:
            IndexUnreadable: it is damaged, or takes too much memory.
            KeyUnavailable: a column is encrypted, and its key is unavailable.
        """
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

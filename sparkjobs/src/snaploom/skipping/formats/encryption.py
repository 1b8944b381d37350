"""Parquet Modular Encryption by key labels.

pyarrow makes a random key for each footer and column; the key management service wraps those, and
only the wrapped form is written, into the file itself. Keys are wrapped twice, as parquet-mr does
by default, so that a service is asked once for each label and not once for each column.

A file without its keys raises `KeyUnavailable`, which callers turn into a query that runs
unpruned (trap 14).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption as pe

from snaploom.errors import IndexUnreadable, KeyUnavailable
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.formats.keys import (
    DecryptionProperties,
    EncryptionProperties,
    KeyService,
    ParquetKeys,
)

CACHE_LIFETIME = timedelta(minutes=10)
"""How long unwrapped keys are kept in memory: parquet-mr's default."""

DATA_KEY_BITS = 128
"""Length of the keys of columns: parquet-mr's default."""

_MAGIC_ENCRYPTED = b"PARE"


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
    """What pyarrow calls, in front of a service."""

    def __init__(self, service: KeyService) -> None:
        super().__init__()
        self._service = service

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self._service.wrap(master_key_identifier, key_bytes)

    def unwrap_key(self, wrapped_key: bytes | str, master_key_identifier: str) -> bytes:
        text = wrapped_key.decode("ascii") if isinstance(wrapped_key, bytes) else wrapped_key
        return self._service.unwrap(master_key_identifier, text)


def column_keys(columns: Mapping[str, Sequence[str]]) -> str:
    """The column key list as Parquet's Hadoop client writes it: `label:leaf,leaf;label:leaf`."""
    return ";".join(f"{label}:{','.join(leaves)}" for label, leaves in columns.items())


def parse_column_keys(text: str) -> dict[str, tuple[str, ...]]:
    """Leaf paths by key label, from a column key list.

    Parquet's Hadoop client takes entries with exactly one colon, so others are refused here too.

    Raises:
        IndexUnreadable: it is not of that form.
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        label, _, leaves = (part.strip() for part in entry.partition(":"))
        names = tuple(name.strip() for name in leaves.split(",") if name.strip())
        if entry.count(":") != 1 or not label or not names:
            raise IndexUnreadable(
                "a column key list cannot be parsed", found=entry, expected="label:leaf,leaf"
            )
        found[label] = found.get(label, ()) + names
    return found


def open_parquet(data: bytes, keys: ParquetKeys | None, name: str) -> pq.ParquetFile:
    """A Parquet file in memory, decrypted when read; INT96 timestamps as microseconds.

    Args:
        data: the whole file.
        keys: for encrypted files.
        name: what messages call it.

    Raises:
        KeyUnavailable: it is encrypted, and there are no keys or the wrong ones.
        IndexUnreadable: it is no Parquet file, or damaged.
    """
    properties = None if keys is None else keys.decryption()
    try:
        return pq.ParquetFile(
            pa.BufferReader(data),
            decryption_properties=properties,
            coerce_int96_timestamp_unit="us",
        )
    except (OSError, pa.ArrowException) as error:
        raise _refusal(data, keys, name) from error


def read_columns(
    file: pq.ParquetFile, columns: Iterable[str] | None, encrypted: bool, name: str
) -> pa.Table:
    """Columns of an open file.

    Args:
        file: from `open_parquet`.
        columns: names; None for all.
        encrypted: whether the file is, or may be, encrypted: decides what a failure means.
        name: what messages call it.

    Raises:
        KeyUnavailable: a column is encrypted and its key is not to be had.
        IndexUnreadable: the file is damaged.
    """
    try:
        return file.read(columns=None if columns is None else list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise key_unavailable(name) if encrypted else damaged(name) from error


def key_unavailable(name: str) -> KeyUnavailable:
    """The error for a file whose key is not to be had."""
    return KeyUnavailable(
        f"{name} is encrypted and cannot be read",
        found="no key, or not the one with which it was written",
        expected="the key with the label that the index names",
        hint="configure the key management service (spark.snaploom.skipping.kms)",
    )


def damaged(name: str) -> IndexUnreadable:
    """The error for a file that is no Parquet file."""
    return IndexUnreadable(f"{name} is damaged", expected="a whole Parquet file")


def _refusal(data: bytes, keys: ParquetKeys | None, name: str) -> KeyUnavailable | IndexUnreadable:
    encrypted = data[:4] == _MAGIC_ENCRYPTED and data[-4:] == _MAGIC_ENCRYPTED
    return key_unavailable(name) if encrypted else damaged(name)

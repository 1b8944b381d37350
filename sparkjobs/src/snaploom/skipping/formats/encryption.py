"""Parquet Modular Encryption by key labels.

pyarrow makes a random key for each footer and column; the key management service wraps those, and
only the wrapped form is written, into the file itself. Keys are wrapped twice, as parquet-mr does
by default, so that a service is asked once for each label and not once for each column.

A file without its keys raises `KeyUnavailable`, which callers turn into a query that runs
unpruned (rule S14).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyarrow.parquet import encryption as pe

from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.formats.keys import (
    DecryptionProperties,
    EncryptionProperties,
    KeyService,
)

CACHE_LIFETIME = timedelta(minutes=10)
"""How long unwrapped keys are kept in memory: parquet-mr's default."""

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

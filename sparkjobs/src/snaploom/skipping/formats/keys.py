"""The port through which Parquet files of an index are encrypted and decrypted.

Everything here is about *labels*: names of keys in a key management service. Key material is never
in a definition, a file's metadata, a log or a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NewType, Protocol

from snaploom.skipping.core.definition import SkippingDefinition

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

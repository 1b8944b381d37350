"""A metadata store as a folder: read whole, replaced whole.

A folder of plain files cannot be replaced in one step. The order is chosen by what a reader of the
reference would derive from the middle:

* New part files have the same columns as the old ones: they are written first, then the old ones
  are deleted. In between a file may have two rows. The reference drops a file only where none of
  its rows wants it, so that is safe, and rows of changed files name a time that no longer fits.
* They have other columns (an index was added or dropped, an old version is upgraded): the old
  ones are deleted first. Spark takes the columns of one part file for all, and a column that a
  part lacks reads as NULL, which means "no non-null value" and would drop files wrongly. In
  between there is no store, and the reference skips nothing.

A reader that had listed the folder before may find a part file gone; the reference's own refresh
does the same to its readers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import pyarrow as pa

from snaploom.errors import IndexUnreadable, KeyUnavailable, ObjectTooLarge
from snaploom.interop.xskipper.layout import Layout
from snaploom.interop.xskipper.storereader import (
    MOST_BYTES,
    StoredMetadata,
    part_keys,
    read_directory,
    read_part,
)
from snaploom.interop.xskipper.storewriter import complete, write_part
from snaploom.interop.xskipper.translation import layout_of, stored_rows
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.formats.keys import EncryptionProperties, ParquetKeys
from snaploom.skipping.lifecycle.interchange import Written
from snaploom.storage.objectstore import ObjectStore

PART_ROWS = 50_000
"""Most rows of a part file: the reference's default."""


class XskipperDirectory:
    """One store."""

    def __init__(self, store: ObjectStore, keys: ParquetKeys | None = None) -> None:
        self._store = store
        self._keys = keys

    def read(self) -> StoredMetadata:
        """Read the whole store.

        Raises:
            IndexNotFound: there are no part files.
            IndexUnreadable: it is damaged, corrupt, or of a newer version.
            KeyUnavailable: it is encrypted, and a key is unavailable.
        """
        return read_directory(self._store, self._keys)

    def write(self, pieces: Iterable[pa.Table], definition: SkippingDefinition) -> Written:
        """Replace the store by rows in version 4; `check_exportable` accepts the definition.

        Raises:
            IndexNotPossible: version 4 cannot hold it.
            KeyUnavailable: a key is unavailable; nothing has changed then.
        """
        layout = layout_of(definition)
        encoded: list[bytes] = []
        rows = left_out = 0
        for piece in pieces:
            known = complete(stored_rows(piece, definition, layout), layout)
            rows += known.num_rows
            left_out += piece.num_rows - known.num_rows
            for start in range(0, known.num_rows, PART_ROWS):
                part = known.slice(start, PART_ROWS)
                encoded.append(write_part(part, layout, self._encryption(definition, layout)))
        if not encoded:
            # A store without rows still lists its indexes.
            nothing = stored_rows(pa.schema(IDENTITY_FIELDS).empty_table(), definition, layout)
            encoded.append(write_part(nothing, layout, self._encryption(definition, layout)))
        self._replace(encoded, layout)
        return Written(len(encoded), rows, left_out, sum(map(len, encoded)))

    def remove(self) -> None:
        """Delete every part file."""
        self._store.delete(part_keys(self._store))

    def _replace(self, encoded: list[bytes], layout: Layout) -> None:
        old = part_keys(self._store)
        is_alike = all(self._same_columns(key, layout) for key in old)
        if not is_alike:
            self._store.delete(old)
        token = secrets.token_hex(16)
        for number, data in enumerate(encoded):
            self._store.put_if_absent(f"part-{number:05d}-{token}-c000.snappy.parquet", data)
        if is_alike:
            self._store.delete(old)

    def _same_columns(self, key: str, layout: Layout) -> bool:
        try:
            there = read_part(self._store.get(key, MOST_BYTES), key, self._keys).layout
        except (IndexUnreadable, KeyUnavailable, ObjectTooLarge):
            return False
        return _columns(there) == _columns(layout)

    def _encryption(
        self, definition: SkippingDefinition, layout: Layout
    ) -> EncryptionProperties | None:
        if layout.encryption is None:
            return None
        if self._keys is None:
            raise KeyUnavailable(
                "the index is to be encrypted, and no key management service is configured",
                hint="set spark.snaploom.skipping.kms",
            )
        return self._keys.encryption(definition, layout.encryption.columns)


def _columns(layout: Layout) -> tuple[object, ...]:
    indexes = sorted((index.column, index.data_type or "") for index in layout.indexes)
    return layout.version, tuple(indexes), layout.partitions, layout.encryption

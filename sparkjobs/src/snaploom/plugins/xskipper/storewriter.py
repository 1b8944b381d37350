"""Writes a metadata store of version 4 as a folder that is replaced whole."""

from __future__ import annotations

import io
import secrets
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from snaploom.errors import IndexUnreadable, KeyUnavailable, ObjectTooLarge
from snaploom.files.objectstore import ObjectStore
from snaploom.plugins.xskipper import columns
from snaploom.plugins.xskipper.javastream import write_bloom
from snaploom.plugins.xskipper.layout import (
    BLOOM,
    ROW_METADATA,
    SPARK_VERSION,
    VALUE_LIST,
    Layout,
    StoredIndex,
    dump_schema,
    write_layout,
)
from snaploom.plugins.xskipper.names import OBJECT_NAME, virtual_name
from snaploom.plugins.xskipper.storereader import (
    MOST_BYTES,
    StoredMetadata,
    part_keys,
    read_directory,
    read_part,
)
from snaploom.plugins.xskipper.translation import layout_of, stored_rows
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.formats.parquetfiles import EncryptionProperties, ParquetKeys
from snaploom.skipping.lifecycle.interchange import Written

# Writing a metadata store of version 4, as the reference does and reads it.

CALENDAR_VERSION = b"3.5.0"
"""Written as the version of Spark: dates and timestamps are of today's calendar, which readers of
Spark 3 refuse to guess for values before 1900."""


def complete(rows: pa.Table, layout: Layout) -> pa.Table:
    """Rows with values for every index but blooms; the others cannot be written."""
    keep = pa.repeat(True, rows.num_rows)
    for position, index in enumerate(layout.indexes):
        if index.name != BLOOM:
            keep = pc.and_(keep, _complete(rows, position, index))
    return rows.filter(keep)


def write_part(
    rows: pa.Table, layout: Layout, encryption: EncryptionProperties | None = None
) -> bytes:
    """Write one part file of rows from `complete`; None for no encryption.

    Raises:
        KeyUnavailable: a key is unavailable.
        StreamInvalid: a bloom is no filter of version 1.
    """
    sink = io.BytesIO()
    modified = rows[columns.MODIFIED].cast(pa.large_string())
    names = pc.binary_join_element_wise(
        rows[columns.PATH], modified, pa.scalar("#", pa.large_string())
    )
    fields = [pa.field(OBJECT_NAME, pa.large_string(), nullable=False)]
    arrays = [names]
    for position, (name, data_type) in enumerate(layout.partitions):
        values = _column(rows, columns.partition_column(position))
        fields.append(pa.field(virtual_name(name), columns.store_type(data_type)))
        arrays.append(columns.to_store(values, data_type))
    for position, index in enumerate(layout.indexes):
        stored = _stored(rows, position, index)
        fields.append(pa.field(index.column, stored.type))
        arrays.append(stored)
    footer = {
        ROW_METADATA: dump_schema(write_layout(layout)).encode(),
        SPARK_VERSION: CALENDAR_VERSION,
    }
    table = pa.table(arrays, schema=pa.schema(fields, metadata=footer))
    with pq.ParquetWriter(
        sink,
        table.schema.remove_metadata(),
        compression="snappy",
        # Names, bounds and filters are all different: a dictionary of them would be a second copy.
        use_dictionary=_repeated(layout),
        write_page_checksum=True,  # as Java's writer does: what is damaged is found
        write_statistics=False,  # of one group of rows, which is read as a whole
        use_deprecated_int96_timestamps=True,
        store_decimal_as_integer=True,
        store_schema=False,  # Arrow's own schema is of no use to other readers, and 1 KiB long
        encryption_properties=encryption,
    ) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(table.schema.metadata)
    return sink.getvalue()


def _repeated(layout: Layout) -> list[str]:
    partitions = [virtual_name(name) for name, _ in layout.partitions]
    lists = [f"{index.column}.list.element" for index in layout.indexes if index.name == VALUE_LIST]
    return [*partitions, *lists]


def _complete(rows: pa.Table, position: int, index: StoredIndex) -> pa.Array:
    def part(name: str) -> pa.ChunkedArray:
        return rows[columns.row_column(position, name)]

    parts = [columns.SET] if index.name == VALUE_LIST else [columns.MINIMUM, columns.MAXIMUM]
    whole = pc.invert(part(columns.PRESENT))
    held = part(parts[0]).is_valid()
    for name in parts[1:]:
        held = pc.and_(held, part(name).is_valid())
    return pc.and_(part(columns.KNOWN), pc.or_(whole, held)).combine_chunks()


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = rows[name]
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _stored(rows: pa.Table, position: int, index: StoredIndex) -> pa.Array:
    def part(name: str) -> pa.Array:
        return _column(rows, columns.row_column(position, name))

    data_type = index.data_type or ""
    if index.name == BLOOM:
        filters = part(columns.FILTER).to_pylist()
        return pa.array([each and write_bloom(each) for each in filters], pa.large_binary())
    absent = pc.invert(part(columns.PRESENT))
    if index.name == VALUE_LIST:
        # A file without a value has a NULL, never an empty list.
        sets = pc.if_else(absent, None, part(columns.SET))
        values = columns.to_store(pc.list_flatten(sets), data_type)
        lengths = pc.fill_null(pc.list_value_length(sets), 0).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        return pa.LargeListArray.from_arrays(
            offsets,
            values,
            type=pa.large_list(pa.field("element", values.type)),
            mask=sets.is_null(),
        )
    bounds = [
        columns.to_store(part(name), data_type) for name in (columns.MINIMUM, columns.MAXIMUM)
    ]
    return pa.StructArray.from_arrays(
        bounds,
        fields=[pa.field("min", bounds[0].type), pa.field("max", bounds[1].type)],
        mask=absent,
    )


# A metadata store as a folder: read whole, replaced whole.

PART_ROWS = 50_000
"""Most rows of a part file: the reference's default."""


class XskipperDirectory:
    """One store, below a key prefix that is empty or ends in `/`."""

    def __init__(
        self, store: ObjectStore, keys: ParquetKeys | None = None, folder: str = ""
    ) -> None:
        self._store = store
        self._keys = keys
        self._folder = folder

    def read(self) -> StoredMetadata:
        """Read the whole store.

        Raises:
            IndexNotFound: there are no part files.
            IndexUnreadable: it is damaged, corrupt, or of a newer version.
            KeyUnavailable: it is encrypted, and a key is unavailable.
        """
        return read_directory(self._store, self._keys, self._folder)

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
        self._store.delete(part_keys(self._store, self._folder))

    def _replace(self, encoded: list[bytes], layout: Layout) -> None:
        old = part_keys(self._store, self._folder)
        is_alike = all(self._same_columns(key, layout) for key in old)
        if not is_alike:
            self._store.delete(old)
        token = secrets.token_hex(16)
        for number, data in enumerate(encoded):
            name = f"part-{number:05d}-{token}-c000.snappy.parquet"
            self._store.put_if_absent(self._folder + name, data)
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
                "the index is to be encrypted, and no key management service is configured"
            )
        return self._keys.encryption(definition, layout.encryption.columns)


def _columns(layout: Layout) -> tuple[object, ...]:
    indexes = sorted((index.column, index.data_type or "") for index in layout.indexes)
    return layout.version, tuple(indexes), layout.partitions, layout.encryption

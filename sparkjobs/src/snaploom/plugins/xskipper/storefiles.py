"""Reads a metadata store of version 0 to 4, and writes one of version 4, replaced whole.

Columns and types of indexes come from the metadata of the schema, never from names of columns. A
NULL struct or array means that the file has no non-null value; a NULL bloom, a value that cannot be
decoded and a row that is not there mean nothing. Rows that contradict one another about the same
file (a refresh that was killed between two forms) are left out, too: it stays unknown.
"""

import io
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from snaploom.errors import IndexNotFound, IndexUnreadable, KeyUnavailable, ObjectTooLarge
from snaploom.files.objectstore import ObjectStore
from snaploom.plugins.xskipper import columns
from snaploom.plugins.xskipper.columns import (
    MODIFIED,
    PATH,
    Calendar,
    calendar_of,
    decode,
    from_store,
    index_fields,
    kept_type,
    nothing_known,
    partition_column,
    row_column,
)
from snaploom.plugins.xskipper.javastream import write_bloom
from snaploom.plugins.xskipper.layout import (
    BLOOM,
    ROW_METADATA,
    SPARK_VERSION,
    VALUE_LIST,
    Layout,
    StoredIndex,
    check_keys,
    dump_schema,
    parse_schema,
    read_layout,
    write_layout,
)
from snaploom.plugins.xskipper.names import OBJECT_NAME, split_object_name, virtual_name
from snaploom.plugins.xskipper.translation import layout_of, stored_rows
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, whole_column
from snaploom.skipping.formats import parquetfiles
from snaploom.skipping.lifecycle.interchange import Written


@dataclass(frozen=True)
class StoredMetadata:
    """Content of a store."""

    layout: Layout
    """Declarations; of several parts, the newest version and the indexes of all."""
    rows: pa.Table
    """Rows as `storedrows` describes them, each file once."""
    left_out: tuple[str, ...] = ()
    """Unread parts with reasons, for people; no values in it."""


_PART = re.compile(r"(?![_.])[^/]*")

MOST_BYTES = 2 * 1024 * 1024 * 1024
"""Bytes of all part files of a store that is read."""

MOST_PARTS = 100_000
"""Part files of a store: the reference writes one for 50,000 files."""


def part_keys(store: ObjectStore, folder: str = "") -> list[str]:
    """Keys of the part files below a prefix, in order; hidden files and folders are none."""
    keys = (info.key for info in store.list(folder) if info.is_plain)
    parts = (key for key in keys if _PART.fullmatch(key, len(folder)))
    found = sorted(islice(parts, MOST_PARTS + 1))
    if len(found) > MOST_PARTS:
        raise IndexUnreadable(
            f"{store.uri}{folder} is no metadata store",
            found=f"more than {MOST_PARTS:,} files",
            expected="a folder with a few Parquet files in it",
            hint="check the location",
        )
    return found


def read_directory(
    store: ObjectStore, keys: parquetfiles.ParquetKeys | None, folder: str = ""
) -> StoredMetadata:
    """Read a whole store."""
    parts: list[StoredMetadata] = []
    room = MOST_BYTES
    for key in part_keys(store, folder):
        data = _content(store, key, room)
        room -= len(data)
        parts.append(read_part(data, f"{store.uri}{key}", keys))
    if not parts:
        raise IndexNotFound(
            f"there is no metadata store at {store.uri}{folder}",
            expected="a folder with Parquet files in it",
            hint="name the folder of one table, not the base path of several",
        )
    return _merged(parts)


def read_part(data: bytes, name: str, keys: parquetfiles.ParquetKeys | None) -> StoredMetadata:
    """Read one part file; `name` is for messages."""
    try:
        return _part(data, name, keys)
    except _FAILURES as error:
        raise parquetfiles.damaged(name) from error


_FAILURES = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration,
    RecursionError, pa.ArrowException,
)  # fmt: skip
"""Errors of a schema that does not fit the columns beneath it."""


def _content(store: ObjectStore, key: str, room: int) -> bytes:
    try:
        return store.get(key, room)
    except ObjectTooLarge as error:
        raise IndexUnreadable(
            f"the metadata store at {store.uri} is larger than one that is read",
            found=error.found,
            expected=f"at most {MOST_BYTES:,} bytes",
            hint="create the index anew instead of importing it",
        ) from error


def _part(data: bytes, name: str, keys: parquetfiles.ParquetKeys | None) -> StoredMetadata:
    bounded = parquetfiles.BoundedParquet(data, keys, name)
    file = bounded.file
    footer: Mapping[bytes, bytes] = file.metadata.metadata or {}
    if ROW_METADATA not in footer:
        raise IndexUnreadable(
            f"{name} is no part of a metadata store",
            expected="a Parquet file with Spark's schema in its footer",
            hint="remove the file if it is not of the metadata store, or create the index anew",
        )
    layout = read_layout(parse_schema(footer[ROW_METADATA]))
    names = sorted(file.schema_arrow.names, key=len, reverse=True)
    found: dict[str, tuple[str, ...]] = {}
    for position in range(len(file.schema)):
        path = file.schema.column(position).path
        root = next(name for name in names if path == name or path.startswith(f"{name}."))
        found[root] = (*found.get(root, ()), path)
    check_keys(layout, found)
    table = bounded.read(None, is_encrypted=layout.encryption is not None)
    return _rows(table, layout, calendar_of(footer))


def _rows(table: pa.Table, layout: Layout, calendar: Calendar) -> StoredMetadata:
    left_out: list[str] = []
    names = whole_column(table[OBJECT_NAME]).to_pylist()
    split = [None if name is None else split_object_name(name) for name in names]
    unnamed = split.count(None)
    if unnamed:
        left_out.append(f"{unnamed} rows that name no file and time")
    columns: dict[str, pa.Array] = {
        PATH: pa.array([pair and pair[0] for pair in split], pa.large_string()),
        MODIFIED: pa.array([pair and pair[1] for pair in split], pa.int64()),
    }
    for position, (name, data_type) in enumerate(layout.partitions):
        stored = whole_column(table[virtual_name(name)])
        kept = from_store(stored, data_type)
        missing = pa.nulls(len(stored), kept_type(data_type))
        columns[partition_column(position)] = missing if kept is None else kept
    indexes: list[StoredIndex] = []
    for position, index in enumerate(layout.indexes):
        decoded = decode(whole_column(table[index.column]), index, calendar)
        indexes.append(replace(index, data_type=decoded.data_type))
        columns |= {row_column(position, part): each for part, each in decoded.parts.items()}
        if decoded.reason:
            left_out.append(f"{index.label}: {decoded.reason}")
    rows = pa.table(columns)
    described = replace(layout, indexes=tuple(indexes))
    return StoredMetadata(described, rows.filter(pc.is_valid(rows[PATH])), tuple(left_out))


def _merged(parts: list[StoredMetadata]) -> StoredMetadata:
    layouts = [part.layout for part in parts]
    newest = max(layouts, key=lambda layout: layout.version)
    if len({layout.table_identifier.strip("/") for layout in layouts}) > 1:
        raise IndexUnreadable(
            "the parts of the metadata store are about several tables",
            found=", ".join(sorted({layout.table_identifier for layout in layouts})),
            expected="one table",
            hint="name a location with the metadata of one table",
        )
    indexes: dict[tuple[str, tuple[str, ...]], StoredIndex] = {}
    for layout in sorted(layouts, key=lambda layout: -layout.version):
        for index in layout.indexes:
            indexes.setdefault((index.name, index.columns), index)
    merged = replace(newest, indexes=tuple(indexes.values()))
    rows = pa.concat_tables([_aligned(part, merged) for part in parts])
    left_out = dict.fromkeys(reason for part in parts for reason in part.left_out)
    rows, contradicted = _each_file_once(rows)
    if contradicted:
        left_out[f"{contradicted} files about which rows contradict one another"] = None
    return StoredMetadata(merged, rows, tuple(left_out))


def _aligned(part: StoredMetadata, merged: Layout) -> pa.Table:
    own = {(index.name, index.columns): n for n, index in enumerate(part.layout.indexes)}
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        name: part.rows[name] for name in (PATH, MODIFIED)
    }
    own_partitions = {each: n for n, each in enumerate(part.layout.partitions)}
    for n, (name, data_type) in enumerate(merged.partitions):
        there = own_partitions.get((name, data_type))
        columns[partition_column(n)] = (
            pa.nulls(part.rows.num_rows, kept_type(data_type))
            if there is None
            else part.rows[partition_column(there)]
        )
    for n, index in enumerate(merged.indexes):
        position = own.get((index.name, index.columns))
        same = position is not None and part.layout.indexes[position].data_type == index.data_type
        for wanted in index_fields(n, index):
            piece = wanted.name.partition(".")[2]
            if same and position is not None:
                columns[wanted.name] = part.rows[row_column(position, piece)]
            else:
                columns[wanted.name] = nothing_known(piece, wanted.type, part.rows.num_rows)
    return pa.table(columns)


def _each_file_once(rows: pa.Table) -> tuple[pa.Table, int]:
    """Rows without repetitions, and the number of files left out because theirs differ."""
    counted = rows.group_by([PATH, MODIFIED], use_threads=False).aggregate([([], "count_all")])
    if counted.num_rows == rows.num_rows:
        return rows, 0
    several = counted.filter(pc.greater(counted["count_all"], 1))
    keys = set(zip(several[PATH].to_pylist(), several[MODIFIED].to_pylist(), strict=True))
    first: dict[tuple[object, object], tuple[int, dict[str, object]]] = {}
    differ: set[tuple[object, object]] = set()
    keep = [True] * rows.num_rows
    pairs = zip(rows[PATH].to_pylist(), rows[MODIFIED].to_pylist(), strict=True)
    for position, key in enumerate(pairs):
        if key not in keys:
            continue
        (row,) = rows.slice(position, 1).to_pylist()
        _, before = first.setdefault(key, (position, row))
        keep[position] = first[key][0] == position
        if repr(before) != repr(row):
            differ.add(key)
    for key in differ:
        keep[first[key][0]] = False
    return rows.filter(pa.array(keep)), len(differ)


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
    rows: pa.Table, layout: Layout, encryption: parquetfiles.EncryptionProperties | None = None
) -> bytes:
    """Write one part file of rows from `complete`; None for no encryption."""
    sink = io.BytesIO()
    modified = rows[columns.MODIFIED].cast(pa.large_string())
    names = pc.binary_join_element_wise(
        rows[columns.PATH], modified, pa.scalar("#", pa.large_string())
    )
    fields = [pa.field(OBJECT_NAME, pa.large_string(), nullable=False)]
    arrays = [names]
    for position, (name, data_type) in enumerate(layout.partitions):
        values = whole_column(rows[columns.partition_column(position)])
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


def _stored(rows: pa.Table, position: int, index: StoredIndex) -> pa.Array:
    def part(name: str) -> pa.Array:
        return whole_column(rows[columns.row_column(position, name)])

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
        self, store: ObjectStore, keys: parquetfiles.ParquetKeys | None = None, folder: str = ""
    ) -> None:
        self._store = store
        self._keys = keys
        self._folder = folder

    def read(self) -> StoredMetadata:
        return read_directory(self._store, self._keys, self._folder)

    def write(self, pieces: Iterable[pa.Table], definition: SkippingDefinition) -> Written:
        """Replace the store by rows in version 4; `check_exportable` accepts the definition."""
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
    ) -> parquetfiles.EncryptionProperties | None:
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

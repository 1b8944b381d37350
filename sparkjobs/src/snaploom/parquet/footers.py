"""Footers of Parquet files: found, bounded and parsed, and the decoded size of columns.

A footer may have anything, and a page of some bytes may stand for billions of values: runs of one
value, a dictionary of one long text, texts that repeat the one before. Headers of pages show how
many values there are and how many bytes they unpack to, and Parquet's readers hold pages to that.
So the headers are walked here, as Arrow will walk them, and the worst case follows.

Footers and headers of pages are structs of Thrift's compact protocol, of which only what is needed
is kept. pyarrow's own view of a footer is no help: asked for an encrypted column without its key,
it ends the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.models.common import LARGEST
from snaploom.parquet.thrift import (
    INT32,
    INT64,
    LIST,
    STRUCT,
    TEXT,
    CompactStruct,
    Int32,
    StructInvalid,
    Visitor,
    behind_struct,
    behind_value,
    list_at,
    number_at,
    refuse_long_paths,
)
from snaploom.types.schemas import parse_schema

MOST_PAGES = 20_000
"""Pages of one column of a row group: ours have some hundreds at most."""

LONGEST_PAGE = 512 * 1024 * 1024
"""Bytes of the longest page, unpacked: a page holds one value at least, and few are so long."""

BYTES_A_VALUE = 16
"""Bytes that Arrow needs for a value beside its content: offset, validity, levels, or a decimal."""

_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_PLAIN, _PLAIN_DICTIONARY, _DELTA_LENGTH, _DELTA, _RLE_DICTIONARY = 0, 2, 6, 7, 8
_DICTIONARIES = frozenset({_PLAIN_DICTIONARY, _RLE_DICTIONARY})
_STRUCT_OF = {_DATA: 5, _INDEX: 6, _DICTIONARY: 7, _DATA_V2: 8}
_ENCODING_AT = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
_TEXTS = frozenset({6, 7})

_CODECS = {
    0: "", 1: "snappy", 2: "gzip", 3: "lzo", 4: "brotli", 5: "lz4", 6: "zstd", 7: "lz4_raw",
}  # fmt: skip


class PagesInvalid(StructInvalid):
    """Bytes that are not pages of a column, or more of them than allowed."""


@dataclass(frozen=True)
class Column:
    """A footer's metadata of a column of one row group."""

    start: int
    end: int
    is_text: bool
    """Whether its values have lengths of their own."""
    codec: str
    """Compression of its pages, as Arrow calls it; empty for none."""


@dataclass(frozen=True)
class Page:
    """Contents of the header of a page."""

    kind: int
    """0 and 3: data; 2: dictionary; 1: index."""
    start: int
    packed: int
    unpacked: int
    """Bytes of the content, unpacked."""
    values: int
    """Number of values, NULLs among them."""
    encoding: int


@dataclass(frozen=True)
class DecodedSize:
    """Decoded size of a column of one row group."""

    most: int
    """Bytes that it takes at most; None where `longest_value` is more precise."""
    longest_value: int
    """Bytes of the longest value that there can be."""
    repeats_previous: bool
    """Whether values may repeat the one before, so that `most` is far beyond what is likely."""


def footer_columns(footer: bytes) -> tuple[tuple[Column | None, ...], ...]:
    """The columns of each row group; None for encrypted ones."""
    groups = _list_of_pages(CompactStruct(footer, 0, len(footer)).footer().get(4, []))
    return tuple(tuple(map(_column, _list_of_pages(_fields(group).get(1)))) for group in groups)


def _column(described: object) -> Column | None:
    fields = _fields(described)
    # Arrow ignores a field of a wrong kind, and what is encrypted without a word about its key.
    if isinstance(fields.get(8), dict):
        return None
    if 8 in fields or 9 in fields:
        raise PagesInvalid("a column that may be encrypted or not")
    chunk = _fields(fields.get(3))
    kind, codec = chunk.get(1), chunk.get(4)
    if chunk.get(5) == 0 and codec in _CODECS:
        return Column(0, 0, kind in _TEXTS, _CODECS[codec])  # of no values no page is read
    length, start, dictionary = chunk.get(7), chunk.get(9), chunk.get(11)
    if not isinstance(length, int) or not isinstance(start, int) or codec not in _CODECS:
        raise PagesInvalid("a column that is nowhere")
    if any(isinstance(place, Int32) for place in (length, start, dictionary)):
        raise PagesInvalid("a column that is nowhere")
    if isinstance(dictionary, int) and 0 < dictionary < start:
        start = dictionary
    if start < 4 or length < 0:
        raise PagesInvalid("a column that is nowhere")
    return Column(start, start + length, kind in _TEXTS, _CODECS[codec])


def _fields(value: object) -> dict[int, object]:
    if not isinstance(value, dict):
        raise PagesInvalid("something else than a struct")
    return value


def _list_of_pages(value: object) -> list[object]:
    if not isinstance(value, list):
        raise PagesInvalid("something else than a list")
    return value


def decoded_size(data: bytes, column: Column, is_nested: bool) -> DecodedSize:
    """Decoded size of a column of one row group; `is_nested` if a row may have several values."""
    values = unpacked = longest = 0
    encodings: set[int] = set()
    dictionary: Page | None = None
    for page in pages(data, column.start, column.end):
        longest = max(longest, page.unpacked)
        unpacked += page.unpacked
        if page.kind == _DICTIONARY:
            dictionary = page
        elif page.kind != _INDEX:
            values += page.values
            encodings.add(page.encoding)
    fixed = values * BYTES_A_VALUE + unpacked
    if not column.is_text:
        return DecodedSize(fixed, BYTES_A_VALUE, repeats_previous=False)
    if _DELTA in encodings:
        return DecodedSize(fixed + values * longest, longest, repeats_previous=not is_nested)
    if encodings & _DICTIONARIES and dictionary is not None:
        text = _longest_of(data, dictionary, column)
        return DecodedSize(fixed + values * text, longest, repeats_previous=False)
    return DecodedSize(fixed, longest, repeats_previous=False)


def pages(data: bytes, start: int, end: int) -> Iterator[Page]:
    """The pages of a column of one row group, in order; else `PagesInvalid`."""
    at = start
    for _ in range(MOST_PAGES):
        if at >= end:
            return
        page = _page(CompactStruct(data, at, end).read(), end)
        yield page
        at = page.start + page.packed
    raise PagesInvalid(f"more than {MOST_PAGES} pages")


def _page(header: tuple[dict[int, object], int], end: int) -> Page:
    fields, start = header
    kind, unpacked, packed = fields.get(1), fields.get(2), fields.get(3)
    if kind not in _STRUCT_OF or not isinstance(kind, int):
        raise PagesInvalid("a page of no kind")
    if not isinstance(unpacked, int) or not isinstance(packed, int):
        raise PagesInvalid("a page of no length")
    if not 0 <= packed <= end - start or not 0 <= unpacked <= LONGEST_PAGE:
        raise PagesInvalid(f"a page of more than {LONGEST_PAGE:,} bytes, or than its column")
    if kind == _INDEX:
        return Page(kind, start, packed, unpacked, 0, -1)
    inner = fields.get(_STRUCT_OF[kind])
    values = inner.get(1) if isinstance(inner, dict) else None
    encoding = inner.get(_ENCODING_AT[kind]) if isinstance(inner, dict) else None
    if not isinstance(values, int) or not isinstance(encoding, int) or values < 0:
        raise PagesInvalid("a page of no values")
    return Page(kind, start, packed, unpacked, values, encoding)


def _longest_of(data: bytes, page: Page, column: Column) -> int:
    content = memoryview(data)[page.start : page.start + page.packed]
    if column.codec:
        try:
            unpacked = pa.Codec(column.codec).decompress(content, page.unpacked)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise PagesInvalid("a dictionary that cannot be unpacked") from error
        content = memoryview(unpacked)
    longest = at = 0
    while at + 4 <= len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        longest = max(longest, length)
        at += 4 + length
    return min(longest, page.unpacked)


# Column chunks of a Parquet footer: checked before Arrow is asked about them.

_GROUPS = 4
"""Field of a footer: its row groups."""
_LISTS_OF_FOOTER = {2: STRUCT, 5: STRUCT, 7: STRUCT}
"""Other fields that are lists, and the kinds of their members: schema, notes, column orders."""
_COLUMNS = 1
"""Field of a row group: its column chunks."""
_LISTS_OF_GROUP = {4: STRUCT}
"""The columns by which it is sorted."""
_CHUNK, _ENCRYPTION = 3, 8
"""Fields of a column chunk: what it is, and with which key it is encrypted."""
_TYPE, _STATISTICS, _SIZES, _GEOMETRY = 1, 12, 16, 17
"""Fields of a column chunk's metadata."""
_LISTS_OF_CHUNK = {2: INT32, 3: TEXT, 8: STRUCT, 13: STRUCT}
"""Encodings, path, notes, and pages by encoding."""
_LISTS_OF_GEOMETRY = {2: INT32}
"""Kinds of shapes."""
_BOUNDS = (1, 2, 5, 6)
"""Fields of statistics: greatest and least value, in the old and in the new order."""
_BYTES_OF_VALUES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
"""Fields of sizes: of values of any length, and how often each level comes."""

_TYPES = {
    "BOOLEAN": (0, 1),
    "INT32": (1, 4),
    "INT64": (2, 8),
    "INT96": (3, 12),
    "FLOAT": (4, 4),
    "DOUBLE": (5, 8),
    "BYTE_ARRAY": (6, 0),
    "FIXED_LEN_BYTE_ARRAY": (7, 0),
}
"""Number of a physical type in footers, and bytes of a value (0: any, or as the schema has it)."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    type: int
    size: int
    """Bytes of a value; 0 for any."""
    repetitions: int
    """Levels of repetition, 0 included."""
    definitions: int
    """Levels of definition, 0 included."""

    @classmethod
    def of(cls, column: pq.ColumnSchema) -> _Leaf:
        number, size = _TYPES[column.physical_type]
        if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
            size = column.length
        return cls(number, size, column.max_repetition_level + 1, column.max_definition_level + 1)


def refuse_odd_chunks(footer: bytes, schema: pq.ParquetSchema) -> int:
    """Raise `StructInvalid` for chunks Arrow may not see; returns row groups without columns."""
    walk = _Walk([_Leaf.of(schema.column(place)) for place in range(len(schema))])
    try:
        behind_struct(footer, 0, {**_lists(_LISTS_OF_FOOTER), _GROUPS: walk.groups})
    except (IndexError, RecursionError) as error:
        raise StructInvalid("a footer that is cut") from error
    return walk.empty


class _Walk:
    def __init__(self, leaves: list[_Leaf]) -> None:
        self._leaves = leaves
        self._leaf: _Leaf
        self._described = False
        self.empty = 0
        self._in_group = {**_lists(_LISTS_OF_GROUP), _COLUMNS: self._columns}
        self._in_column: Mapping[int, Visitor] = {
            _CHUNK: self._chunk,
            _ENCRYPTION: self._encryption,
        }
        self._in_chunk: Mapping[int, Visitor] = {
            **_lists(_LISTS_OF_CHUNK),
            _TYPE: self._type,
            _STATISTICS: self._statistics,
            _SIZES: self._sizes,
            _GEOMETRY: self._geometry,
        }
        self._in_geometry = _lists(_LISTS_OF_GEOMETRY)
        self._in_statistics: Mapping[int, Visitor] = dict.fromkeys(_BOUNDS, self._bound)
        self._in_sizes: Mapping[int, Visitor] = {
            _BYTES_OF_VALUES: self._bytes_of_values,
            _REPETITIONS: self._repetitions,
            _DEFINITIONS: self._definitions,
        }

    def groups(self, data: bytes, at: int, kind: int) -> int:
        count, at = _structs(data, at, kind)
        for _ in range(count):
            at = behind_struct(data, at, self._in_group)
        return at

    def _columns(self, data: bytes, at: int, kind: int) -> int:
        count, at = _structs(data, at, kind)
        if count not in (0, len(self._leaves)):
            raise StructInvalid(f"a row group of {count} columns, of {len(self._leaves)}")
        self.empty += count < len(self._leaves)
        for leaf in self._leaves[:count]:
            self._leaf = leaf
            self._described = False
            at = behind_struct(data, at, self._in_column)
            if not self._described:
                raise StructInvalid("a column chunk that is not described")
        return at

    def _chunk(self, data: bytes, at: int, kind: int) -> int:
        _expect(kind, STRUCT)
        return behind_struct(data, at, self._in_chunk)

    def _encryption(self, data: bytes, at: int, kind: int) -> int:
        raise StructInvalid("a column that is encrypted")

    def _type(self, data: bytes, at: int, kind: int) -> int:
        _expect(kind, INT32)
        found, at = number_at(data, at)
        if found != self._leaf.type << 1:  # as whole numbers are written that are not negative
            raise StructInvalid("a column chunk of another type than its column")
        self._described = True
        return at

    def _statistics(self, data: bytes, at: int, kind: int) -> int:
        _expect(kind, STRUCT)
        return (
            behind_struct(data, at, self._in_statistics)
            if self._leaf.size
            else behind_value(data, at, kind)
        )

    def _bound(self, data: bytes, at: int, kind: int) -> int:
        _expect(kind, TEXT)
        length, at = number_at(data, at)
        if length != self._leaf.size:
            raise StructInvalid(f"a bound of {length} bytes, of {self._leaf.size}")
        return at + length

    def _sizes(self, data: bytes, at: int, kind: int) -> int:
        _expect(kind, STRUCT)
        return behind_struct(data, at, self._in_sizes)

    def _geometry(self, data: bytes, at: int, kind: int) -> int:
        _expect(kind, STRUCT)
        return behind_struct(data, at, self._in_geometry)

    def _bytes_of_values(self, data: bytes, at: int, kind: int) -> int:
        if self._leaf.type != _TYPES["BYTE_ARRAY"][0]:
            raise StructInvalid("bytes of values that all have the same length")
        return behind_value(data, at, kind)

    def _repetitions(self, data: bytes, at: int, kind: int) -> int:
        return _histogram(data, at, kind, self._leaf.repetitions)

    def _definitions(self, data: bytes, at: int, kind: int) -> int:
        return _histogram(data, at, kind, self._leaf.definitions)


def _lists(kinds: Mapping[int, int]) -> dict[int, Visitor]:
    """Visitors of fields that are lists, by number, from the kind of their members.

    Arrow reads members as what they ought to be, whatever kind the list states: where that is
    another one, it would not see what is walked here.
    """
    return {number: partial(_list, of) for number, of in kinds.items()}


def _list(of: int, data: bytes, at: int, kind: int) -> int:
    _expect(kind, LIST)
    found, count, _ = list_at(data, at)
    if count:
        _expect(found, of)
    return behind_value(data, at, kind)


def _structs(data: bytes, at: int, kind: int) -> tuple[int, int]:
    _expect(kind, LIST)
    of, count, at = list_at(data, at)
    if count:
        _expect(of, STRUCT)
    return count, at


def _histogram(data: bytes, at: int, kind: int, levels: int) -> int:
    """Walk numbers, one for each level; returns the place behind them."""
    _expect(kind, LIST)
    of, count, _ = list_at(data, at)
    if count not in (0, levels) or (count and of != INT64):
        raise StructInvalid(f"a histogram of {count} levels, of {levels}")
    return behind_value(data, at, kind)


def _expect(kind: int, expected: int) -> None:
    if kind != expected:
        raise StructInvalid("a field of another kind")


# Footers of Parquet files: found, bounded and parsed; no other byte of a file is read.

LONGEST = 64 * 2**20
"""Bytes of a footer: some 100 for a column in a row group, so that it describes 600,000 of them."""
MOST_PARTS = 1_000_000
"""Members of a list in a footer: the limit that Arrow has by itself."""
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Key of the schema of the frame from which Spark wrote a file; Spark reads files by it."""

END = 8
"""Bytes at the end of a file: the length of its footer, and the format's mark."""
_MAGIC = b"PAR1"

ReadLast = Callable[[int], bytes]
"""Reads so many bytes at the end of a file; raises an `OSError` where it cannot."""


class FooterInvalid(ValueError):
    """A file without a Parquet footer, or with one beyond the bounds."""


def footer_bytes(read_last: ReadLast, size: int, first: int = END) -> bytes:
    """End of a file from its footer or before; reads `first` bytes, and a second time if needed."""
    if size < END + len(_MAGIC):
        raise FooterInvalid(f"{size} bytes are no Parquet file")
    end = read_last(min(size, max(first, END)))
    if end[-len(_MAGIC) :] != _MAGIC:
        raise FooterInvalid(f"no Parquet file: it does not end in {_MAGIC.decode()}")
    length = int.from_bytes(end[-END:-4], "little")
    if not 0 < length <= min(LONGEST, size - END - len(_MAGIC)):
        raise FooterInvalid(f"a footer of {length} bytes in a file of {size}")
    return end if length + END <= len(end) else read_last(length + END)


def local_footer_bytes(name: str) -> bytes:
    """As `footer_bytes`, of a file as the operating system names it."""
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        return footer_bytes(lambda count: os.pread(file, count, size - count), size)
    finally:
        os.close(file)


def bare_footer(content: bytes) -> bytes:
    """Strip the length, the format's mark and everything before the footer from a file's end."""
    return content[-END - int.from_bytes(content[-END:-4], "little") : -END]


def framed_footer(footer: bytes) -> bytes:
    """A bare footer with its length and the format's mark, as it is at the end of a file."""
    return footer + len(footer).to_bytes(4, "little") + _MAGIC


def parse_footer(content: bytes) -> pq.FileMetaData:
    """Parse a footer, from the end of a file, that Arrow can be asked about."""
    metadata, empty = parse_row_groups(content)
    if empty:
        raise FooterInvalid("a row group without the columns of the file")
    return metadata


def parse_row_groups(content: bytes) -> tuple[pq.FileMetaData, int]:
    """As `parse_footer`, where row groups may have no columns; and how many have none."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(content),
            thrift_string_size_limit=LONGEST,
            thrift_container_size_limit=MOST_PARTS,
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FooterInvalid(f"{type(error).__name__}: {error}") from error
    metadata = file.metadata
    try:
        return metadata, refuse_odd_chunks(bare_footer(content), metadata.schema)
    except StructInvalid as error:
        raise FooterInvalid(str(error)) from error


@dataclass(frozen=True)
class PublishedFooter:
    """Content of the footer of a published file."""

    rows: int
    schema: str | None
    """Its schema, as `StructType.json()` gives it; None where Spark did not write it."""


def read_footer(store: ObjectStore, info: ObjectInfo) -> PublishedFooter | None:
    """Footer of a file in a store; None if it is not Parquet, `StorageError` if unreadable."""

    def read_last(count: int) -> bytes:
        return store.get_range(info.key, info.size - count, count)

    try:
        content = footer_bytes(read_last, info.size)
        refuse_long_paths(bare_footer(content))
        metadata = parse_footer(content)
        stored = (metadata.metadata or {}).get(SPARK_SCHEMA)
        schema = None if stored is None else stored.decode("utf-8")
    except (FooterInvalid, StructInvalid, UnicodeDecodeError):
        return None
    return PublishedFooter(metadata.num_rows, schema) if 0 <= metadata.num_rows <= LARGEST else None


def is_spark_schema(text: str) -> bool:
    """Whether a text is a schema of types that are Spark's own."""
    try:
        parse_schema(text, "")
    except ValueError:
        return False
    return True

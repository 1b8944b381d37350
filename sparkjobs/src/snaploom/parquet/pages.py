"""Decoded size of the columns of a Parquet file, computed before memory is taken for them.

A footer may have anything, and a page of some bytes may stand for billions of values: runs of one
value, a dictionary of one long text, texts that repeat the one before. Headers of pages show how
many values there are and how many bytes they unpack to, and Parquet's readers hold pages to that.
So the headers are walked here, as Arrow will walk them, and the worst case follows.

Footers and headers of pages are structs of Thrift's compact protocol, of which only what is needed
is kept. pyarrow's own view of a footer is no help: asked for an encrypted column without its key,
it ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from snaploom.parquet.thrift import CompactStruct, Int32, StructInvalid

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
    """Bytes of the content."""
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
    """The columns of each row group; None for encrypted ones.

    Raises:
        PathsTooLong: its schema would take too much.
        PagesInvalid: a column is nowhere, or may be encrypted or not.
        StructInvalid: it is no footer.
    """
    groups = _list(CompactStruct(footer, 0, len(footer)).footer().get(4, []))
    return tuple(tuple(map(_column, _list(_fields(group).get(1)))) for group in groups)


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


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise PagesInvalid("something else than a list")
    return value


def decoded_size(data: bytes, column: Column, is_nested: bool) -> DecodedSize:
    """Decoded size of a column of one row group; `is_nested` if a row may have several values.

    Raises:
        PagesInvalid: there are no such pages in the file.
    """
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

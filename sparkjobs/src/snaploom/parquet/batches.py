"""Footers of many Parquet files parsed at once: those that were written alike as one footer.

A call of Arrow's parser costs ten times what a short footer costs it. Footers of one table are the
same bytes but for the number of rows and the row groups in the middle. So the row groups of many
are put into one footer, between the beginning and the end that all have, and are parsed together.

Anybody may have written the files. Behind the row groups of each comes one of ours, with a number
that nobody could know. If each of those is found where it has to be, then the bytes of each file
are as many row groups as the file states: exactly what parsing it by itself would give. If one is
not found, each file is parsed by itself, and so is each whose footer is in any way another.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from snaploom.parquet.footers import (
    FooterInvalid,
    bare_footer,
    framed_footer,
    parse_footer,
    parse_row_groups,
)
from snaploom.parquet.thrift import CompactStruct, StructInvalid

FILES_OF_A_BATCH = 256
"""Footers that are parsed at once; by then a call of the parser costs each next to nothing."""
BYTES_OF_A_BATCH = 4 << 20
"""Bytes of such footers; Arrow takes some ten times as much memory."""
_SHAPES = 8
"""Beginnings and ends that are remembered at a time."""
_REUSES = 64
"""Files of known shapes that pay for a walk through one more footer by Python."""

_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
"""Fields of a footer: schema, number of rows, row groups."""
_NEEDED = {_SCHEMA, _ROWS, _GROUPS}
_ROWS_HEAD, _GROUPS_HEAD = 0x16, 0x19
"""Beginning of both behind the field before: a long number, a list."""
_STRUCT = 12
_SHORT_LIST = 15
"""Members from which on a list has its length in a number of its own."""
_NONCE_BITS = 60


@dataclass(frozen=True)
class FileFooter:
    """The footer of one file, among those parsed together."""

    place: int
    """Of the file among those that were given."""
    rows: int
    """Rows that the file states."""
    groups: range
    """Its row groups in `ParsedFooters.metadata`."""


@dataclass(frozen=True)
class ParsedFooters:
    """Footers with one schema, writer and notes."""

    metadata: pq.FileMetaData
    """Row groups of all of them, and of nobody; its number of rows means nothing."""
    files: Sequence[FileFooter]


@dataclass(frozen=True)
class FailedFooter:
    """A footer that cannot be parsed."""

    place: int
    """Of the file among those that were given."""
    why: str


class FooterParser:
    """Parses footers, and remembers what those of a table have in common."""

    def __init__(self) -> None:
        self._shapes: list[_Shape] = []
        self._reused = 0
        self._walked = 0

    def parse(self, contents: Sequence[bytes]) -> Iterator[ParsedFooters | FailedFooter]:
        """Parse the ends of files, each from where its footer begins or before; in any order."""
        batches: dict[int, _Batch] = {}
        for place, content in enumerate(contents):
            middle = self._middle(place, content)
            if middle is None:
                yield self._single(place, content)
                continue
            batch = batches.setdefault(id(middle.shape), _Batch(middle.shape))
            batch.middles.append(middle)
            batch.size += len(middle.groups)
            if len(batch.middles) == FILES_OF_A_BATCH or batch.size > BYTES_OF_A_BATCH:
                yield from self._together(batches.pop(id(middle.shape)), contents)
        for batch in batches.values():
            yield from self._together(batch, contents)

    def _middle(self, place: int, content: bytes) -> _Middle | None:
        footer = bare_footer(content)
        for shape in self._shapes:
            if footer.startswith(shape.beginning) and footer.endswith(shape.end):
                self._reused += 1
                return shape.middle(place, footer)
        return None

    def _single(self, place: int, content: bytes) -> ParsedFooters | FailedFooter:
        try:
            metadata = parse_footer(content)
        except FooterInvalid as error:
            return FailedFooter(place, str(error))
        self._remember(content)
        whole = FileFooter(place, metadata.num_rows, range(metadata.num_row_groups))
        return ParsedFooters(metadata, (whole,))

    def _remember(self, content: bytes) -> None:
        if self._walked > _SHAPES + self._reused // _REUSES:
            return
        self._walked += 1
        shape = _Shape.of(bare_footer(content))
        if shape is not None:
            self._shapes = [shape, *self._shapes][:_SHAPES]

    def _together(
        self, batch: _Batch, contents: Sequence[bytes]
    ) -> Iterator[ParsedFooters | FailedFooter]:
        parsed = batch.parsed() if len(batch.middles) > 1 else None
        if parsed is not None:
            yield parsed
            return
        for middle in batch.middles:
            yield self._single(middle.place, contents[middle.place])


@dataclass(frozen=True)
class _Shape:
    beginning: bytes
    """Up to the number of rows: the schema."""
    end: bytes
    """Behind the row groups: notes and the writer."""

    @classmethod
    def of(cls, footer: bytes) -> _Shape | None:
        try:
            found = list(CompactStruct(footer, 0, len(footer), keeps=False).field_ends())
        except StructInvalid:
            return None
        ends = dict(found)
        # A field that comes again, behind the row groups, would count instead of the first.
        if list(ends) != sorted(ends) or len(ends) < len(found) or not set(ends) >= _NEEDED:
            return None
        shape = cls(footer[: ends[_SCHEMA]], footer[ends[_GROUPS] :])
        return shape if shape.middle(0, footer) is not None else None

    def middle(self, place: int, footer: bytes) -> _Middle | None:
        """The part of a footer that is its own; None where it does not have this shape."""
        at, stop = len(self.beginning), len(footer) - len(self.end)
        if stop - at < 4 or footer[at] != _ROWS_HEAD:
            return None
        rows, at = _varint(footer, at + 1, stop)
        if at + 2 > stop or footer[at] != _GROUPS_HEAD or footer[at + 1] & 0x0F != _STRUCT:
            return None
        count = footer[at + 1] >> 4
        at += 2
        if count == _SHORT_LIST:
            count, at = _varint(footer, at, stop)
        is_stated = rows >= 0 and 0 <= count <= stop - at
        is_whole = is_stated and rows & 1 == 0
        return _Middle(self, place, rows >> 1, count, footer[at:stop]) if is_whole else None


@dataclass(frozen=True, slots=True)
class _Middle:
    shape: _Shape
    place: int
    rows: int
    count: int
    """Row groups that are stated."""
    groups: bytes
    """Their bytes, if the footer is sound."""


@dataclass
class _Batch:
    shape: _Shape
    middles: list[_Middle] = field(default_factory=list)
    size: int = 0

    def parsed(self) -> ParsedFooters | None:
        """All footers as one; None where the contents contradict one of them."""
        nonce = secrets.randbits(_NONCE_BITS)
        head = b"\x19\x0c\x16" + _number(nonce << 1) + b"\x16"
        pieces = []
        for number, middle in enumerate(self.middles):
            pieces += [middle.groups, head, _number(number << 1), b"\x00"]
        count = sum(middle.count for middle in self.middles) + len(self.middles)
        footer = b"".join([
            self.shape.beginning, bytes([_ROWS_HEAD, 0, _GROUPS_HEAD, 0xF0 | _STRUCT]),
            _number(count), *pieces, self.shape.end,
        ])  # fmt: skip
        try:
            metadata, empty = parse_row_groups(framed_footer(footer))
        except FooterInvalid:
            return None
        is_whole = metadata.num_row_groups == count and empty in (0, len(self.middles))
        return self._checked(metadata, nonce) if is_whole else None

    def _checked(self, metadata: pq.FileMetaData, nonce: int) -> ParsedFooters | None:
        files = []
        at = 0
        for number, middle in enumerate(self.middles):
            groups = range(at, at + middle.count)
            ours = metadata.row_group(groups.stop)
            if ours.total_byte_size != nonce or ours.num_rows != number or ours.num_columns:
                return None
            files.append(FileFooter(middle.place, middle.rows, groups))
            at = groups.stop + 1
        return ParsedFooters(metadata, files)


_LONGEST = 8
"""Bytes of numbers that are read here: 56 bits."""


def _varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """A number and the place after it; -1 for one that is cut or too long."""
    found = 0
    for shift in range(0, 7 * _LONGEST, 7):
        if at >= stop:
            break
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
    return -1, at


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])

"""Footers of Parquet files, taken apart and put together again with something else in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _STRUCT = 1, 2, 3, 7, 8, 9, 12
INT32, INT64, TEXT, LIST, STRUCT = 5, 6, _TEXT, _LIST, _STRUCT
_LENGTHS = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}


@dataclass
class Value:
    """A value of Thrift's compact protocol; raw bytes unless it has members."""

    kind: int
    raw: bytes = b""
    members: list[Value] = field(default_factory=list)
    fields: list[tuple[int, Value]] = field(default_factory=list)
    of: int = 0

    def get(self, number: int) -> Value:
        """A field of a struct."""
        return dict(self.fields)[number]

    def put(self, number: int, value: Value) -> None:
        """Set a field of a struct; the others stay where they are."""
        self.fields = [each for each in self.fields if each[0] != number] + [(number, value)]


def varint(number: int) -> bytes:
    """A number as it is written."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def whole(number: int, kind: int = INT32) -> Value:
    """A whole number, not negative."""
    return Value(kind, varint(number << 1))


def text(content: bytes) -> Value:
    """A text."""
    return Value(TEXT, varint(len(content)) + content)


def edited(data: bytes, edit: Callable[[Value], None]) -> bytes:
    """A Parquet file with another footer."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    found, _ = _value(footer, 0, STRUCT)
    edit(found)
    changed = _written(found)
    return data[: -8 - length] + changed + len(changed).to_bytes(4, "little") + b"PAR1"


def long_paths(footer: Value) -> None:
    """Put 10,000 columns into a group whose name has 128 KiB: their paths take 1.3 GB."""
    group, column = Value(STRUCT), Value(STRUCT)
    group.fields = [(3, whole(1)), (4, text(b"g" * 2**17)), (5, whole(10_000))]
    column.fields = [(1, whole(1)), (3, whole(1)), (4, text(b"c"))]
    root, *_ = footer.get(2).members
    root.put(5, whole(1))
    footer.get(2).members = [root, group, *[column] * 10_000]


def _number(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        found |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return found, at


def _value(data: bytes, at: int, kind: int) -> tuple[Value, int]:
    start = at
    if kind == _STRUCT:
        found, number = Value(kind), 0
        while head := data[at]:
            at += 1
            if head >> 4:
                number += head >> 4
            else:
                raw, at = _number(data, at)
                number = raw >> 1
            value, at = _value(data, at, head & 15)
            found.fields.append((number, value))
        return found, at + 1
    if kind == _LIST:
        found, count, at = Value(kind, of=data[at] & 15), data[at] >> 4, at + 1
        if count == 15:
            count, at = _number(data, at)
        for _ in range(count):
            member, at = _value(data, at, _BYTE if found.of < _BYTE else found.of)
            found.members.append(member)
        return found, at
    if kind == _TEXT:
        length, at = _number(data, at)
        at += length
    elif kind in _LENGTHS:
        at += _LENGTHS[kind]
    else:
        _, at = _number(data, at)
    return Value(kind, data[start:at]), at


def _written(value: Value) -> bytes:
    if value.kind == _STRUCT:
        fields = (
            bytes([each.kind]) + varint(number << 1) + _written(each)
            for number, each in value.fields
        )
        return b"".join(fields) + b"\0"
    if value.kind == _LIST:
        members = b"".join(map(_written, value.members))
        return bytes([0xF0 | value.of]) + varint(len(value.members)) + members
    return value.raw

"""Footers of Parquet files, taken apart and put together again with something else in them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from support.skipping.xskipperfiles import (
    OLD_PACKAGE,
    java_bloom,
    java_class,
    java_object,
    java_string,
)

HEADER = b"\xac\xed\x00\x05"
_NAME = struct.pack(">H", 1) + b"A"

OWN_PARENT = (
    HEADER + b"\x73\x72" + _NAME + struct.pack(">qBH", 1, 2, 0) + b"\x78\x71\x00\x7e\x00\x00"
)
"""An object whose class is its own parent."""


def _array(code: bytes, count: int, content: bytes = b"") -> bytes:
    return HEADER + b"\x75" + java_class(f"[{code.decode()}") + struct.pack(">i", count) + content


def _set_of_references() -> bytes:
    """A long text, and a million references to it."""
    fields = [("L", "values", "Lscala/collection/mutable/HashSet;")]
    described = java_class(f"{OLD_PACKAGE}.ValueListMetaData", fields)
    count = 200_000
    block = struct.pack(">iii?", 450, count + 1, 5, False)
    # Handles: the class, its field's type, the object, the set's class, the set, then the text.
    content = b"\x77" + bytes([len(block)]) + block + java_string("x" * 60_000)
    content += b"\x71\x00\x7e\x00\x05" * count + b"\x78"
    hash_set = b"\x73" + java_class("scala.collection.mutable.HashSet", flags=3) + content
    return java_object(described, hash_set)


def _bounds_of_decimals(scale: int, magnitude: bytes) -> bytes:
    whole_fields = [("I", "signum", ""), ("[", "magnitude", "[B")]
    whole = b"\x73" + java_class("java.math.BigInteger", whole_fields)
    whole += struct.pack(">i", 1) + b"\x75" + java_class("[B")
    whole += struct.pack(">i", len(magnitude)) + magnitude
    fields = [("I", "scale", ""), ("L", "intVal", "Ljava/math/BigInteger;")]
    decimal = b"\x73" + java_class("java.math.BigDecimal", fields) + struct.pack(">i", scale)
    decimal += whole
    described = java_class(
        f"{OLD_PACKAGE}.MinMaxMetaData", [("L", "max", "LO;"), ("L", "min", "LO;")]
    )
    return java_object(described, decimal + decimal)


STREAMS = {
    "empty": b"",
    "header": HEADER,
    "own-parent": OWN_PARENT,
    "deep": HEADER + b"\x73\x72" * 100_000,
    "nested": HEADER + (b"\x75" + java_class("[L") + struct.pack(">i", 1)) * 2000,
    "array-endless": _array(b"J", 2**31 - 1),
    "array-negative": _array(b"J", -1),
    "array-of-nothing": _array(b"", 5, b"\x70" * 5),
    "bytes-endless": _array(b"B", 2**31 - 1),
    "text-endless": HEADER + b"\x7c" + struct.pack(">Q", 2**63),
    "block-endless": HEADER + b"\x7a" + struct.pack(">i", 2**31 - 1),
    "reference-to-nothing": HEADER + b"\x71\xff\xff\xff\xff",
    "command": java_object(java_class("java.lang.Runtime"), b""),
    "references": _set_of_references(),
    "decimal-scale": _bounds_of_decimals(2**31 - 1, b"\x01"),
    "decimal-digits": _bounds_of_decimals(0, b"\xff" * 400_000),
    "bloom-endless-functions": java_bloom(
        struct.pack(">iii", 1, 2**31 - 1, 1) + b"\xff" * 8
    ),
    "bloom-endless-words": java_bloom(struct.pack(">iii", 1, 7, 2**31 - 1) + b"\xff" * 8),
    "bloom-of-no-words": java_bloom(struct.pack(">iii", 1, 7, 0)),
    "bloom-of-version-9": java_bloom(struct.pack(">iii", 9, 7, 1) + b"\xff" * 8),
}  # fmt: skip


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
        return dict(self.fields)[number]

    def put(self, number: int, value: Value) -> None:
        """Set a field of a struct; the others stay where they are."""
        self.fields = [each for each in self.fields if each[0] != number] + [(number, value)]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def whole(number: int, kind: int = INT32) -> Value:
    return Value(kind, varint(number << 1))


def text(content: bytes) -> Value:
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

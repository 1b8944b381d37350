"""Streams of Java objects that no serialisation writes."""

from __future__ import annotations

import struct

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

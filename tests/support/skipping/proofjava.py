"""Boxed values and the metadata objects around them, as version 0 of the reference has them.

Put together byte by byte from Java's grammar, like everything in `xskipperfiles`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal

from support.skipping.prooffacts import Plain
from support.skipping.xskipperfiles import java_bounds, java_class, java_set, java_string

_MICROS = 1_000_000
_NUMBERS = {
    "tinyint": ("java.lang.Byte", "B", ">b"),
    "smallint": ("java.lang.Short", "S", ">h"),
    "int": ("java.lang.Integer", "I", ">i"),
    "bigint": ("java.lang.Long", "J", ">q"),
    "float": ("java.lang.Float", "F", ">f"),
    "double": ("java.lang.Double", "D", ">d"),
}
_NO_OBJECT = b"\x70"


def java_value(value: Plain, data_type: str) -> bytes:
    """A value in its box.

    Raises:
        TypeError: version 0 cannot hold it so that it can be read again.
    """
    if data_type in _NUMBERS:
        name, code, form = _NUMBERS[data_type]
        number = java_class("java.lang.Number")
        described = java_class(name, [(code, "value", "")], parent=number)
        return b"\x73" + described + struct.pack(form, value)
    match value:
        case bool():
            described = java_class("java.lang.Boolean", [("Z", "value", "")])
            return b"\x73" + described + struct.pack(">?", value)
        case int() if data_type == "timestamp":
            return _timestamp(value)
        case bytes() if data_type == "string":
            return java_string(value.decode())
        case bytes() if data_type == "binary":
            return _bytes(value)
        case Decimal():
            return _decimal(value)
    raise TypeError(f"no Java object for a {data_type}")


def java_min_max(values: Sequence[Plain], data_type: str) -> bytes:
    """Bounds from their two values, or from none."""
    if not values:
        return java_bounds(_NO_OBJECT, _NO_OBJECT)
    return java_bounds(java_value(values[0], data_type), java_value(values[-1], data_type))


def java_value_list(values: Sequence[Plain], data_type: str) -> bytes:
    """A set."""
    return java_set([java_value(value, data_type) for value in values])


JavaMaker = Callable[[Sequence[Plain], str], bytes]


def _timestamp(micros: int) -> bytes:
    """`java.sql.Timestamp`: whole seconds in the date it extends, and nanoseconds of its own."""
    seconds, rest = divmod(micros, _MICROS)
    date = java_class("java.util.Date", flags=3)
    described = java_class("java.sql.Timestamp", [("I", "nanos", "")], parent=date)
    block = b"\x77\x08" + struct.pack(">q", seconds * 1000) + b"\x78"
    return b"\x73" + described + block + struct.pack(">i", rest * 1000)


def _bytes(value: bytes) -> bytes:
    return b"\x75" + java_class("[B") + struct.pack(">i", len(value)) + value


def _decimal(value: Decimal) -> bytes:
    sign, _, exponent = value.as_tuple()
    whole = int(value.scaleb(-int(exponent), Context(prec=76)))
    magnitude = abs(whole).to_bytes((abs(whole).bit_length() + 7) // 8, "big")
    number = java_class("java.lang.Number")
    fields = [
        *(("I", name, "") for name in ("bitCount", "bitLength", "firstNonzeroByteNum")),
        *(("I", name, "") for name in ("lowestSetBit", "signum")),
        ("[", "magnitude", "[B"),
    ]
    integer = b"\x73" + java_class("java.math.BigInteger", fields, flags=3, parent=number)
    signum = 0 if whole == 0 else -1 if sign else 1
    integer += struct.pack(">iiiii", -1, -1, -2, -2, signum) + _bytes(magnitude) + b"\x78"
    scaled = [("I", "scale", ""), ("L", "intVal", "Ljava/math/BigInteger;")]
    described = java_class("java.math.BigDecimal", scaled, flags=3, parent=number)
    return b"\x73" + described + struct.pack(">i", -int(exponent)) + integer + b"\x78"

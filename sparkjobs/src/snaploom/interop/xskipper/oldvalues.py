"""Values of version 0: Java objects of the reference's metadata classes, with boxed values.

Only unambiguous values are read. A `java.sql.Date` is midnight in a time zone that nobody
stored, so dates are unknown, as is every class that is not named here.
"""

from __future__ import annotations

from decimal import Context, Decimal

from snaploom.interop.xskipper.javastream import JavaObject, StreamInvalid, read_stream
from snaploom.skipping.core.terms import Value

_INTEGRALS = {
    "java.lang.Byte": "tinyint",
    "java.lang.Short": "smallint",
    "java.lang.Integer": "int",
    "java.lang.Long": "bigint",
}
_OTHERS = {
    "java.lang.Boolean": "boolean",
    "java.lang.Float": "float",
    "java.lang.Double": "double",
}
DECIMAL = "decimal"
"""Type of every decimal here: precision and scale were not stored."""

_DECIMAL_CLASS = "java.math.BigDecimal"
_TIMESTAMP = "java.sql.Timestamp"
_MICROS = 1_000_000
_HASH_SET = "scala.collection.mutable.HashSet"
_MOST_DIGITS = 76
_MOST_BYTES = 32
"""Bytes of a decimal of so many digits."""

MOST_VALUES, LONGEST_SET = 1_000_000, 64 * 1024 * 1024
"""Values of a set, and bytes of all its texts: the reference keeps every value of a file, and a
set beyond this would be of no use to anybody."""

TypedValue = tuple[str, Value]
"""A Spark type (`decimal` for any decimal) and a value of it."""


def read_bounds(data: bytes) -> tuple[TypedValue | None, TypedValue | None]:
    """The least and the greatest value, None without any; `StreamInvalid` if unreadable."""
    stored = _metadata(data)
    if not {"min", "max"} <= stored.fields.keys():
        raise StreamInvalid(f"a {stored.class_name} holds no bounds")
    return _boxed(stored.fields["min"]), _boxed(stored.fields["max"])


def read_values(data: bytes) -> list[TypedValue]:
    """Every distinct value; `StreamInvalid` if unreadable."""
    values = _metadata(data).fields.get("values")
    if not isinstance(values, JavaObject) or values.class_name != _HASH_SET:
        raise StreamInvalid("there is no set of values")
    blocks = values.block_data()
    elements = [each for each in values.added if not isinstance(each, bytes)]
    # Load factor, number of elements, seed, and whether there is a size map.
    if len(blocks) < 8 or int.from_bytes(blocks[4:8], "big") != len(elements):
        raise StreamInvalid("the set of values is not whole")
    if len(elements) > MOST_VALUES:
        raise StreamInvalid("the set has too many values")
    typed: list[TypedValue] = []
    room = LONGEST_SET
    for each in map(_boxed, elements):
        if each is not None:
            typed.append(each)
            # One text may be there many times, by references of some bytes.
            room -= len(each[1]) if isinstance(each[1], bytes) else 0
        if room < 0:
            raise StreamInvalid("the values of the set are too long")
    return typed


def _metadata(data: bytes) -> JavaObject:
    stored = read_stream(data)
    if not isinstance(stored, JavaObject):
        raise StreamInvalid("the stream holds no metadata object")
    return stored


def _boxed(value: object) -> TypedValue | None:
    if value is None:
        return None
    if isinstance(value, str):
        return "string", value.encode()
    if isinstance(value, bytes):
        return "binary", value
    if not isinstance(value, JavaObject):
        raise StreamInvalid(f"a {type(value).__name__} is no value")
    name, inner = value.class_name, value.fields.get("value")
    if name in _INTEGRALS and isinstance(inner, int):
        return _INTEGRALS[name], inner
    if name in _OTHERS and isinstance(inner, bool | float):
        return _OTHERS[name], inner
    if name == _DECIMAL_CLASS:
        return DECIMAL, _decimal(value)
    if name == _TIMESTAMP:
        return "timestamp", _timestamp(value)
    raise StreamInvalid(f"values of {name} are not read")


def _decimal(value: JavaObject) -> Decimal:
    scale, whole = value.fields.get("scale"), value.fields.get("intVal")
    magnitude = whole.fields.get("magnitude") if isinstance(whole, JavaObject) else None
    sign = whole.fields.get("signum") if isinstance(whole, JavaObject) else None
    if not isinstance(scale, int) or not isinstance(magnitude, bytes) or not isinstance(sign, int):
        raise StreamInvalid("a decimal is not whole")
    if len(magnitude) > _MOST_BYTES or abs(scale) > _MOST_DIGITS or abs(sign) > 1:
        raise StreamInvalid("a decimal has too many digits")
    number = Decimal(sign * int.from_bytes(magnitude, "big"))
    return number.scaleb(-scale, Context(prec=_MOST_DIGITS))


def _timestamp(value: JavaObject) -> int:
    milliseconds, nanos = value.block_data(), value.fields.get("nanos")
    if len(milliseconds) != 8 or not isinstance(nanos, int):
        raise StreamInvalid("a timestamp is not whole")
    seconds = int.from_bytes(milliseconds, "big", signed=True) // 1000
    return seconds * _MICROS + nanos // 1000

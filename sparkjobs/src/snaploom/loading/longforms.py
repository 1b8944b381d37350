"""How short forms that people know are written here: types, lengths of time, dates, variants.

Somebody who writes `dataType: bigint` or `intervalLength: 7d` means one thing only. The message of
such a fault shows the form that is right, to be copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from snaploom.loading.modelfields import Target, fields_of
from snaploom.models.base import ApiModel
from snaploom.models.common import DataType, DecimalType, TimeOffset
from snaploom.models.outputdataset import LocalDateTime

TYPE_NAMES = {
    "bigint": "long", "int": "integer", "int32": "integer", "int64": "long", "int16": "short",
    "int8": "byte", "smallint": "short", "tinyint": "byte", "varchar": "string", "char": "string",
    "text": "string", "str": "string", "bool": "boolean", "numeric": "decimal", "dec": "decimal",
    "real": "float", "float32": "float", "float64": "double", "bytes": "binary",
    "datetime": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestampNtz",
    "datetime64": "timestampNtz", "number": "decimal", "void": "null",
    "interval": "calendarInterval",
}  # fmt: skip
"""Names of types in SQL and elsewhere, and what they are called in declarations."""

_LONGEST = 400
"""Characters of a short form that is read."""
_WORD = re.compile(r"\s*(?:([A-Za-z_][A-Za-z_0-9]*|`[^`]+`|\d+)|(.))")
_LENGTH = re.compile(r"P?T?\s*(\d+)\s*([A-Za-zµ]+)$")
_UNITS = {
    "ns": "nano", "nanosecond": "nano", "s": "second", "sec": "second", "second": "second",
    "min": "minute", "minute": "minute", "h": "hour", "hr": "hour", "hour": "hour", "d": "day",
    "day": "day", "w": "week", "week": "week", "mo": "month", "month": "month", "y": "year",
    "yr": "year", "year": "year",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")
_PLAIN = re.compile(r"[^\"\\\x00-\x1f`]{1,200}")
"""Text that stands in double quotes as it is."""
_CLOCK = ("hour", "minute", "second")


def long_form(target: Target, name: str, given: object) -> str:
    """What to write instead of a text where a mapping belongs; empty where nobody can know.

    Args:
        target: what the place expects.
        name: the field.
        given: what stands there.
    """
    if target is None:
        return ""
    if isinstance(given, int) and not isinstance(given, bool) and issubclass(target, TimeOffset):
        return f"write the unit too, such as `{name}: {{day: {given}}}`"
    if not isinstance(given, str) or len(given) > _LONGEST:
        return ""
    form = _form(target, given.strip())
    if form is not None:
        return f"write `{name}: {flow(form)}`"
    parts = [each for each, is_required in fields_of(target) if is_required]
    return f"write `{name}: {{{parts[0]}: ...}}`" if len(parts) == 1 else ""


def plain_form(expected: str, name: str, given: object) -> str:
    """What to write for a value of the right content in another form; empty where nobody can know.

    Args:
        expected: what the place expects, in words.
        name: the field.
        given: what stands there.
    """
    if given is None:
        return f"give a value, or leave `{name}` out"
    if expected == "a list":
        if isinstance(given, str) and _PLAIN.fullmatch(given):
            return f'write a list: `{name}: ["{given}"]`'
        return f"write a list: `{name}: [...]`"
    if isinstance(given, str) and _NUMBER.fullmatch(given) and expected.endswith("number"):
        return f"write it without quotes: `{name}: {given}`"
    return ""


def flow(value: JsonValue) -> str:
    """A value in YAML's flow form, in one line."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(flow, value)) + "]"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _form(target: type[ApiModel], given: str) -> JsonValue:
    if issubclass(target, DataType):
        return type_form(given)
    if issubclass(target, DecimalType):
        found = re.fullmatch(r"\(?(\d+)\s*,\s*(\d+)\)?", given)
        return {"precision": int(found[1]), "scale": int(found[2])} if found else None
    if issubclass(target, TimeOffset):
        return _offset(given)
    if issubclass(target, LocalDateTime):
        return _local_time(given)
    if given in target.one_of:
        return {given: {}}
    return None


def type_form(text: str) -> JsonValue:
    """The long form of a type as SQL writes it; None where it is none."""
    words = [first or other for first, other in _WORD.findall(text)]
    try:
        form = _read_type(words)
    except (IndexError, ValueError):
        return None
    return form if not words else None


def _read_type(words: list[str]) -> JsonValue:
    """The type at the beginning of some words, which are taken away.

    Raises:
        IndexError: the words end too early.
        ValueError: this is no type.
    """
    written = words.pop(0).lower()
    name = TYPE_NAMES.get(written, written)
    if name == "array":
        _expect(words, "<")
        element = _read_type(words)
        _expect(words, ">")
        return {"array": {"elementType": element}}
    if name == "map":
        _expect(words, "<")
        key = _read_type(words)
        _expect(words, ",")
        value = _read_type(words)
        _expect(words, ">")
        return {"map": {"keyType": key, "valueType": value}}
    if name == "struct":
        return {"struct": {"fields": _read_fields(words)}}
    numbers = _read_numbers(words)
    if name == "decimal":
        precision, scale = [*numbers, 0][:2] if numbers else (10, 0)
        return {"decimal": {"precision": precision, "scale": scale}}
    if name in DataType.one_of:
        return {name: {}}
    raise ValueError(written)


def _read_fields(words: list[str]) -> list[JsonValue]:
    _expect(words, "<")
    fields: list[JsonValue] = []
    while words[0] != ">":
        if fields:
            _expect(words, ",")
        name = words.pop(0).strip("`")
        if words[0] == ":":
            words.pop(0)
        fields.append({"name": name, "dataType": _read_type(words)})
    words.pop(0)
    return fields


def _read_numbers(words: list[str]) -> list[int]:
    """The numbers in parentheses, as in `decimal(10,2)`."""
    if not words or words[0] != "(":
        return []
    words.pop(0)
    numbers = [int(words.pop(0))]
    while words[0] == ",":
        words.pop(0)
        numbers.append(int(words.pop(0)))
    _expect(words, ")")
    return numbers


def _expect(words: list[str], sign: str) -> None:
    if words.pop(0) != sign:
        raise ValueError(sign)


def _offset(text: str) -> JsonValue:
    found = _LENGTH.match(text)
    if found is None:
        return None
    number, unit = int(found[1]), found[2]
    if unit == "M" and text.startswith("P"):
        return {"minute" if "T" in text else "month": number}
    lowered = unit.lower()
    name = _UNITS.get(lowered) or _UNITS.get(lowered.removesuffix("s"))
    return {name: number} if name else None


def _local_time(text: str) -> JsonValue:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    parts: Mapping[str, int] = {"year": read.year, "month": read.month, "day": read.day}
    clock = {name: getattr(read, name) for name in _CLOCK}
    return {**parts, **clock, "nano": read.microsecond * 1000, "timezone": "UTC"}

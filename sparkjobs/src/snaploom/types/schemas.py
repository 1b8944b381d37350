"""Schemas of snapshots as frozen data, with their forms for people, and paths of fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

# Paths of fields as declarations write them: names joined by dots, odd ones in backticks.

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quote(name: str) -> str:
    """A name in backticks, so that Spark takes dots, spaces and backticks in it literally."""
    return "`" + name.replace("`", "``") + "`"


def split_path(path: str) -> tuple[str, ...] | None:
    """The names of a path such as `a.b` or `` `a.b`.c ``; None when it is not one."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(path, position)
        if match is None:
            return None
        quoted, plain = match.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        position = match.end()
        if position == len(path):
            return tuple(parts)
        if path[position] != ".":
            return None
        position += 1


def path_text(parts: Iterable[str]) -> str:
    """Names as a path, those in backticks that SQL would take for something else."""
    return ".".join(part if re.fullmatch(r"\w+", part) else quote(part) for part in parts)


def folded_path(path: str) -> str:
    """The one form in which paths are compared: the same for `a` and `` `A` ``."""
    parts = split_path(path)
    return path.casefold() if parts is None else path_text(parts).casefold()


# The table of types without parts, with a column for each system.


@dataclass(frozen=True, slots=True)
class SimpleType:
    """A type without parts, as each system names it."""

    declared: str
    """In declarations."""
    spark: str
    """In the JSON of Spark's schemas."""
    sql: str
    """In Spark's SQL, which is its `catalogString`."""
    arrow: str
    """In Arrow, as Spark exchanges it; empty where it does not."""
    kept: str
    """In Arrow, as indexes keep its values (rule S20); empty where they keep none."""
    logical: str
    """In data contracts."""
    bits: int = 0
    """Of a whole number; 0 for others."""
    digits: int = 0
    """The most digits of a whole number."""


SIMPLE_TYPES = (
    SimpleType("boolean", "boolean", "boolean", "bool", "bool", "boolean"),
    SimpleType("byte", "byte", "tinyint", "int8", "int8", "integer", 8, 3),
    SimpleType("short", "short", "smallint", "int16", "int16", "integer", 16, 5),
    SimpleType("integer", "integer", "int", "int32", "int32", "integer", 32, 10),
    SimpleType("long", "long", "bigint", "int64", "int64", "integer", 64, 19),
    SimpleType("float", "float", "float", "float32", "float32", "number"),
    SimpleType("double", "double", "double", "float64", "float64", "number"),
    SimpleType("string", "string", "string", "string", "large_binary", "string"),
    SimpleType("binary", "binary", "binary", "binary", "large_binary", "string"),
    SimpleType("date", "date", "date", "date32", "int32", "date"),
    SimpleType("timestamp", "timestamp", "timestamp", "timestamp[us, UTC]", "int64", "timestamp"),
    SimpleType(
        "timestampNtz", "timestamp_ntz", "timestamp_ntz", "timestamp[us]", "int64", "timestamp"
    ),
    SimpleType("calendarInterval", "interval", "interval", "", "", "string"),
    SimpleType("null", "void", "void", "null", "", "string"),
)  # fmt: skip
SQL_NAMES = {each.spark: each.sql for each in SIMPLE_TYPES if each.spark != each.sql}
"""Names of types in SQL by those in the JSON of schemas, where they differ."""
INTEGER_BITS = {each.sql: each.bits for each in SIMPLE_TYPES if each.bits}
"""Whole numbers by their names in SQL, the narrowest first."""

# Schemas of snapshots without Spark: the JSON that Spark gives for a schema, as frozen data.

SPARK_TYPES = frozenset({
    ("org.apache.spark.ml.linalg.VectorUDT", "pyspark.ml.linalg.VectorUDT"),
    ("org.apache.spark.ml.linalg.MatrixUDT", "pyspark.ml.linalg.MatrixUDT"),
})  # fmt: skip
"""User-defined types that are allowed, by their classes in Java and Python."""
MOST_DIGITS = 38
"""Of a decimal number: Spark's limit."""
_SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9_ (),.:-]{0,99}")
_HALVES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Halves of surrogate pairs, which no file can hold: escaped, or literally."""
_DDL = re.compile(r"\s*+(?:[A-Za-z0-9_`]|$)")
"""Beginning of DDL, and of no JSON object."""
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class Simple:
    """A type without parts, by Spark's name: `integer`, `string`, `timestamp_ntz` ..."""

    name: str
    seen: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number."""

    precision: int
    scale: int
    seen: str


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values."""

    element: Type
    contains_null: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key."""

    key: Type
    value: Type
    value_contains_null: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Field:
    """A named field; its metadata is carried along as JSON text."""

    name: str
    type: Type
    nullable: bool
    metadata: str


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: tuple[Field, ...]
    seen: str


Type = Simple | Decimal | Array | Map | Struct


def parse_schema(text: str, seen: str) -> Struct:
    """Parse the result of `StructType.json()`; `seen` names the snapshot, for messages.

    Raises:
        ValueError: when it is no schema.
    """
    try:
        raw: JsonValue = json.loads(text)
        if _HALVES.search(text):
            json.dumps(raw, ensure_ascii=False).encode()  # raises a ValueError for a lone half
        found = _parse(raw, seen)
    except RecursionError:
        raise ValueError("not the JSON of a schema: nested too deep") from None
    if not isinstance(found, Struct):
        raise ValueError("not the JSON of a schema: the outermost type is no struct")
    return found


def is_type(text: str) -> bool:
    """Whether a text, which Spark takes for a type, names none but Spark's own types.

    Spark reads it as DDL and, where that fails, as JSON. Only JSON has user-defined types.
    """
    if _DDL.match(text):
        return True
    try:
        _parse(json.loads(text, object_pairs_hook=_without_doubles), "")
    except (ValueError, RecursionError):
        return False
    return True


def _without_doubles(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of JSON, whose names every parser takes alike."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("not the JSON of a type: an object has a name twice")
    return found


def _parse(raw: JsonValue, seen: str) -> Type:
    if isinstance(raw, str):
        decimal = _DECIMAL.fullmatch(raw)
        if decimal:
            precision, scale = int(decimal[1]), int(decimal[2])
            if not 0 < precision <= MOST_DIGITS or abs(scale) > MOST_DIGITS:
                raise ValueError(f"not the JSON of a type: {raw[:200]}")
            return Decimal(precision, scale, seen)
        if not _SIMPLE.fullmatch(raw):
            raise ValueError(f"not the JSON of a type: {raw[:200]!r}")
        return Simple("void" if raw == "null" else raw, seen)
    match raw:
        case {"type": "struct", "fields": list(fields)}:
            return Struct(tuple(_parse_field(field, seen) for field in fields), seen)
        case {"type": "array", "elementType": element, "containsNull": bool(contains_null)}:
            return Array(_parse(element, seen), contains_null, seen)
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool(nulls)}:
            return Map(_parse(key, seen), _parse(value, seen), nulls, seen)
        case {"type": "udt", **rest}:
            if "serializedClass" in rest or (rest.get("class"), rest.get("pyClass")) not in (
                SPARK_TYPES
            ):
                name = str(rest.get("pyClass", rest.get("class")))[:200]
                raise ValueError(f"the user-defined type {name}, which is not one of Spark's own")
            return Simple(json.dumps(raw, sort_keys=True), seen)
    raise ValueError(f"not the JSON of a type: {json.dumps(raw)[:200]}")


def _parse_field(raw: JsonValue, seen: str) -> Field:
    match raw:
        case {"name": str(name), "type": type_, "nullable": bool(nullable), **rest}:
            described = rest.get("metadata") or {}
            if not isinstance(described, dict):
                raise ValueError("not the JSON of a field: its metadata are no object")
            metadata = json.dumps(described, sort_keys=True)
            return Field(name, _parse(type_, seen), nullable, metadata)
    raise ValueError(f"not the JSON of a field: {json.dumps(raw)[:200]}")


def schema_json(schema: Type) -> str:
    """The text that Spark's `StructType.fromJson` reads; the inverse of `parse_schema`."""
    return json.dumps(schema_document(schema), separators=(",", ":"), ensure_ascii=False)


def schema_document(schema: Type) -> JsonValue:
    """The same as a document."""
    return _plain(schema)


def _plain(type_: Type) -> JsonValue:
    match type_:
        case Simple(name):
            return json.loads(name) if name.startswith("{") else name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element, contains_null):
            return {
                "type": "array", "elementType": _plain(element), "containsNull": contains_null,
            }  # fmt: skip
        case Map(key, value, nulls):
            return {
                "type": "map", "keyType": _plain(key), "valueType": _plain(value),
                "valueContainsNull": nulls,
            }  # fmt: skip
        case Struct(fields):
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": field.name,
                        "type": _plain(field.type),
                        "nullable": field.nullable,
                        "metadata": json.loads(field.metadata),
                    }
                    for field in fields
                ],
            }


def struct_at(schema: Struct, path: Iterable[str]) -> Struct:
    """The struct at a path, inside arrays too; one without fields where there is none."""
    at = schema
    for name in path:
        inner = next((f.type for f in at.fields if f.name.casefold() == name.casefold()), None)
        while isinstance(inner, Array):
            inner = inner.element
        if not isinstance(inner, Struct):
            return Struct((), "")
        at = inner
    return at


def describe(type_: Type) -> str:
    """The type as a person knows it, without the parts of structs."""
    match type_:
        case Simple(name):
            return name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return f"array<{describe(element)}>"
        case Map(key, value):
            return f"map<{describe(key)},{describe(value)}>"
        case Struct():
            return "struct"


# A schema as people read it: one line a field, indented below its parent.


def schema_text(schema: Struct) -> str:
    """The fields of a schema; an array of structs shows the fields of its elements."""
    return "".join(f"{line}\n" for line in _lines(schema, 0))


def _lines(struct: Struct, depth: int) -> Iterator[str]:
    for field in struct.fields:
        yield f"{'  ' * depth}{field.name}: {describe(field.type)}"
        for inner in structs_in(field.type):
            yield from _lines(inner, depth + 1)


def structs_in(type_: Type) -> Iterator[Struct]:
    """The outermost structs of a type, inside arrays and maps too."""
    match type_:
        case Struct():
            yield type_
        case Array(element):
            yield from structs_in(element)
        case Map(key, value):
            yield from structs_in(key)
            yield from structs_in(value)

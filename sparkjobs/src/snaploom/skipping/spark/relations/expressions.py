"""Catalyst expressions as the optimizer rule serialises them, over a relation's columns."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import cast

from snaploom.skipping.core.definition import Term, Value, arrow_type, column_term
from snaploom.skipping.core.predicates import value_text
from snaploom.types.schemas import SQL_NAMES

# Catalyst expressions as the optimizer rule serialises them, parsed once at this edge.


@dataclass(frozen=True)
class Column:
    """A top-level column of the relation."""

    name: str
    data_type: str


@dataclass(frozen=True)
class Literal:
    """A constant. `value` is None for NULL and for types that no index keeps."""

    value: Value | None
    data_type: str
    is_null: bool = False
    source: object = field(default=None, compare=False)
    """The value as it was serialised."""


@dataclass(frozen=True)
class Opaque:
    """An expression that the rule does not show."""

    text: str


@dataclass(frozen=True)
class Call:
    """Any other expression."""

    name: str
    """Simple name of the Catalyst class."""
    arguments: Mapping[str, object] = field(hash=False)
    children: tuple[Expression, ...]


Expression = Column | Literal | Opaque | Call


def parse(node: object) -> Expression:
    """One serialised expression.

    Anything that does not have the expected form is `Opaque`: it keeps every file.
    """
    match node:
        case ["col", str(name), str(data_type)]:
            return Column(name, data_type)
        case ["lit", value, str(data_type)]:
            return literal(value, data_type)
        case ["?", str(text)]:
            return Opaque(text)
        case [str(name), dict(arguments), *children]:
            return Call(name, arguments, tuple(parse(child) for child in children))
    return Opaque(str(node))


def serialised(expression: Expression) -> object:
    """The JSON value that `parse` read, for columns and calls; literals unchanged."""
    match expression:
        case Column(name, data_type):
            return ["col", name, data_type]
        case Literal(_, data_type, _, source):
            return ["lit", source, data_type]
        case Opaque(text):
            return ["?", text]
        case Call(name, arguments, children):
            return [name, dict(arguments), *(serialised(child) for child in children)]


def names_of(subject: Expression) -> tuple[str, ...] | None:
    """Names from a top-level column to the field; None for anything else."""
    match subject:
        case Column(name):
            return (name,)
        case Call("GetStructField", {"name": str(name)}, (child,)):
            outer = names_of(child)
            return None if outer is None else (*outer, name)
    return None


def literal(value: object, data_type: str) -> Literal:
    """A literal from its JSON value; one that does not fit its type has no value."""
    if value is None:
        return Literal(None, data_type, is_null=True)
    try:
        return Literal(_value(value, data_type), data_type, source=value)
    except (ValueError, ArithmeticError):
        return Literal(None, data_type, source=value)


def _value(value: object, data_type: str) -> Value | None:
    if arrow_type(data_type) is None:
        return None
    match value:
        case bool():
            return value if data_type == "boolean" else None
        case {"hex": str(digits)} if data_type in ("string", "binary"):
            return bytes.fromhex(digits)
        case str() if data_type == "string":
            return value.encode()
        case str() | int() | float() if data_type in ("float", "double"):
            return _floating(float(value), data_type)
        case str() | int() if data_type.startswith("decimal"):
            return Decimal(value)
        case int() if data_type not in ("boolean", "string", "binary"):
            return value
    return None


def _floating(value: float, data_type: str) -> float:
    """-0.0 becomes 0.0, which it equals (rule S4); a float is rounded to its own 32 bits."""
    if data_type == "float":
        value = cast(float, struct.unpack("f", struct.pack("f", value))[0])
    return value + 0.0


_INFIX = {
    "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=",
    "GreaterThan": ">", "GreaterThanOrEqual": ">=", "And": "AND", "Or": "OR", "Like": "LIKE",
    "RLike": "RLIKE", "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/",
    "Remainder": "%", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip

_FUNCTIONS = {
    "DayOfMonth": "day", "DateFormatClass": "date_format", "TruncTimestamp": "date_trunc",
    "TruncDate": "trunc", "StringTrim": "trim", "RegExpExtract": "regexp_extract",
    "XxHash64": "xxhash64", "IsNaN": "isnan", "StartsWith": "startswith",
    "EndsWith": "endswith", "CreateNamedStruct": "named_struct",
}  # fmt: skip
"""Names of functions that are not the class's name in snake case."""


def as_text(expression: Expression) -> str:
    """An expression as people write it, near enough to be recognised."""
    match expression:
        case Column(name):
            return name
        case Literal():
            return _literal_text(expression)
        case Opaque(text):
            return text
        case Call(name, arguments, children):
            return _call_text(name, arguments, [as_text(child) for child in children])


def _call_text(name: str, arguments: Mapping[str, object], children: list[str]) -> str:
    match name, children:
        case "GetStructField", [child]:
            return f"{child}.{arguments.get('name')}"
        case "Cast", [child]:
            return f"cast({child} as {arguments.get('dataType')})"
        case "Not", [child]:
            return f"NOT {child}"
        case "IsNull", [child]:
            return f"{child} IS NULL"
        case "IsNotNull", [child]:
            return f"{child} IS NOT NULL"
        case "In", [child, *values]:
            return f"{child} IN ({_few(values)})"
        case "InSet", [child]:
            members = arguments.get("values")
            return f"{child} IN ({_few(members if isinstance(members, list) else [])})"
        case _, [left, right] if name in _INFIX:
            return f"({left} {_INFIX[name]} {right})"
        case "And" | "Or", [*parts]:
            return f"({f' {_INFIX[name]} '.join(parts)})"
    function = _FUNCTIONS.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{function}({', '.join(children)})"


def _few(values: Sequence[object]) -> str:
    more = [f"... {len(values)} values"] if len(values) > 5 else []
    return ", ".join([str(value) for value in values[:5]] + more)


def _literal_text(constant: Literal) -> str:
    if constant.is_null:
        return "NULL"
    return "?" if constant.value is None else value_text(constant.value, constant.data_type)


# Current columns of a relation: type of each term, and unusable ones.

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
_VARCHAR = re.compile(r"varchar\(\d+\)")
_COLLATIONS = "__COLLATIONS"
_DEFAULTS = frozenset({"EXISTS_DEFAULT", "CURRENT_DEFAULT"})


@dataclass(frozen=True)
class Columns:
    """Columns and nested fields of a relation."""

    terms: tuple[Term, ...]
    """Every column, and every field of structs, with its type."""
    defaulted: frozenset[str] = frozenset()
    """Names of the top-level columns that have a DEFAULT."""
    is_case_sensitive: bool = False

    @cached_property
    def types(self) -> Mapping[str, str]:
        """Type by key of term, of names that are not ambiguous."""
        return {
            terms[0].key: terms[0].data_type for terms in self._by_name.values() if not terms[1:]
        }

    def find(self, names: tuple[str, ...]) -> Term | None:
        """Column or field of a name; None if there is none, or several."""
        key = _fold(column_term(names, "").key, self.is_case_sensitive)
        found = self._by_name.get(key, [])
        return found[0] if len(found) == 1 else None

    def type_of(self, names: Sequence[str]) -> str:
        """The type of a column or field; empty if there is none, or several."""
        found = self.find(tuple(names))
        return "" if found is None else found.data_type

    @cached_property
    def _by_name(self) -> Mapping[str, list[Term]]:
        by_name: dict[str, list[Term]] = {}
        for term in self.terms:
            by_name.setdefault(_fold(term.key, self.is_case_sensitive), []).append(term)
        return by_name


def columns_of(
    data_schema: Mapping[str, object],
    partition_schema: Mapping[str, object],
    *,
    is_case_sensitive: bool = False,
) -> Columns:
    """Columns of a relation from the JSON of its two schemas.

    A column that is in both is a partition column: Spark takes its value from the path.
    """
    partition_names = {_fold(name, is_case_sensitive) for name, _ in _fields(partition_schema)}
    fields = [
        (name, field)
        for name, field in _fields(data_schema)
        if _fold(name, is_case_sensitive) not in partition_names
    ]
    fields.extend(_fields(partition_schema))
    return Columns(
        terms=tuple(_terms((), fields)),
        defaulted=frozenset(
            name for name, field in fields if not _DEFAULTS.isdisjoint(_metadata(field))
        ),
        is_case_sensitive=is_case_sensitive,
    )


def _fold(name: str, is_case_sensitive: bool) -> str:
    return name if is_case_sensitive else name.lower()


def _fields(schema: Mapping[str, object]) -> list[tuple[str, Mapping[str, object]]]:
    fields = schema.get("fields")
    if not isinstance(fields, Sequence):
        return []
    return [(str(field["name"]), field) for field in fields if isinstance(field, Mapping)]


def _terms(
    path: tuple[str, ...], fields: Sequence[tuple[str, Mapping[str, object]]]
) -> Iterator[Term]:
    for name, member in fields:
        yield column_term((*path, name), _type_of(member))
        inner = member.get("type")
        if not isinstance(inner, Mapping) or _is_collated(member):
            continue
        if inner.get("type") == "struct":
            yield from _terms((*path, name), _fields(inner))


def _type_of(field: Mapping[str, object]) -> str:
    metadata = _metadata(field)
    declared = _VARCHAR.sub("string", str(metadata.get(_PADDED, "")))
    if "char(" in declared:
        return str(metadata[_PADDED])
    if _is_collated(field):
        return f"{_type_text(field.get('type'))} collate {metadata[_COLLATIONS]}"
    return _type_text(field.get("type"))


def _type_text(data_type: object) -> str:
    match data_type:
        case str():
            return SQL_NAMES.get(data_type, data_type)
        case {"type": "struct", "fields": list(fields)}:
            inner = _fields({"fields": fields})
            return f"struct<{','.join(f'{name}:{_type_of(field)}' for name, field in inner)}>"
        case {"type": "array", "elementType": element}:
            return f"array<{_type_text(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{_type_text(key)},{_type_text(value)}>"
    return str(data_type)


def _metadata(field: Mapping[str, object]) -> Mapping[str, object]:
    metadata = field.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _is_collated(field: Mapping[str, object]) -> bool:
    return _COLLATIONS in _metadata(field)

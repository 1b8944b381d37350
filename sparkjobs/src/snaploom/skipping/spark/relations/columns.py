"""Current columns of a relation: type of each term, and unusable ones.

An index serves a predicate only if its term has the very type it had when it was built (rule S7).
Spark's schema JSON hides in a field's metadata what changes the meaning of its values. Collations
and CHAR, which is padded, are made part of the type here, and no index keeps such a type; a column
with a default, which files older than it do not have, is treated separately (rules S19 and S20).
VARCHAR is a string: its length is checked when rows are written, and reading changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from snaploom.skipping.core.terms import Term, column_term

_TYPES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Schema JSON's name of a type, where it is not the `catalogString`."""

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
_VARCHAR = re.compile(r"varchar\(\d+\)")
_COLLATIONS = "__COLLATIONS"
_DEFAULTS = ("EXISTS_DEFAULT", "CURRENT_DEFAULT")


@dataclass(frozen=True)
class Columns:
    """Columns and nested fields of a relation."""

    terms: tuple[Term, ...]
    """Every column, and every field of structs, with its type."""
    defaulted: frozenset[str] = frozenset()
    """Names of the top-level columns that have a DEFAULT."""
    is_case_sensitive: bool = False
    """Whether names differ by case."""

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
        defaulted=frozenset(name for name, field in fields if _has_default(field)),
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
    for name, field in fields:
        yield column_term((*path, name), _type_of(field))
        inner = field.get("type")
        if isinstance(inner, Mapping) and inner.get("type") == "struct" and not _is_collated(field):
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
            return _TYPES.get(data_type, data_type)
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


def _has_default(field: Mapping[str, object]) -> bool:
    return any(name in _metadata(field) for name in _DEFAULTS)

"""Columns of published schemas: those of each source, and differences between two schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from snaploom.planning.commonchecks.columns import DATA
from snaploom.planning.schemas import Struct, Type, describe, struct_at
from snaploom.planning.schematree import structs_in
from snaploom.site.pagedata import Column

MOST_COLUMNS = 5_000
"""Columns of one schema that a page lists: more is no reading matter, and would be heavy."""


def columns_at(schema: Struct, path: Iterable[str]) -> tuple[Column, ...]:
    """The own columns of the source at a path of fields, inside arrays too."""
    found = struct_at(schema, (*path, DATA))
    return tuple(Column(field.name, describe(field.type)) for field in found.fields)


def flat(schema: Struct) -> Mapping[str, Column]:
    """All columns without parts, by path in lower case."""
    found: dict[str, Column] = {}
    for path, type_ in _leaves(schema, ""):
        if len(found) == MOST_COLUMNS:
            break
        found.setdefault(path.casefold(), Column(path, describe(type_)))
    return found


def changes(
    before: Mapping[str, Column], after: Mapping[str, Column]
) -> tuple[tuple[Column, ...], tuple[Column, ...], tuple[tuple[Column, str], ...]]:
    """Columns that were added, that were removed, and those of another type with the old one."""
    added = tuple(column for name, column in after.items() if name not in before)
    removed = tuple(column for name, column in before.items() if name not in after)
    retyped = tuple(
        (column, before[name].type)
        for name, column in after.items()
        if name in before and before[name].type != column.type
    )
    return added, removed, retyped


def _leaves(struct: Struct, prefix: str) -> Iterator[tuple[str, Type]]:
    for field in struct.fields:
        path = f"{prefix}{field.name}"
        parts = tuple(structs_in(field.type))
        if not parts:
            yield path, field.type
        for part in parts:
            yield from _leaves(part, f"{path}.")

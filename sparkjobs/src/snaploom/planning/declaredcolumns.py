"""Columns as far as declarations show: those of `schemaFields`, and captures of paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from snaploom.models.common import DataType, SchemaField
from snaploom.planning.fieldpaths import split_path


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """The columns of a source, and none besides."""

    names: tuple[str, ...]
    """In the order of the declaration."""
    types: Mapping[str, DataType | None]
    """By name in lower case; None where the type is not known."""

    def missing_part(self, parts: Sequence[str]) -> str | None:
        """The first name of a path that no column or field has; None when all are there.

        Several names together may be one column whose own name has points.
        """
        for count in range(1, len(parts) + 1):
            column = ".".join(parts[:count]).lower()
            if column in self.types:
                return _missing_inside(self.types[column], parts[count:])
        return parts[0]

    def missing_of(self, path: str) -> str | None:
        """As `missing_part`, of a path as text; None as well where it is no path."""
        parts = split_path(path)
        return None if parts is None else self.missing_part(parts)


def columns_of(fields: Sequence[SchemaField], captures: Iterable[str] = ()) -> DeclaredColumns:
    """The columns of a schema, and the captures of the path."""
    types: dict[str, DataType | None] = {field.name.lower(): field.data_type for field in fields}
    captured = tuple(captures)
    return DeclaredColumns(
        (*(field.name for field in fields), *captured),
        {name.lower(): None for name in captured} | types,
    )


def _missing_inside(data_type: DataType | None, parts: Sequence[str]) -> str | None:
    if not parts or data_type is None or data_type.map_ is not None:
        return None
    if data_type.array is not None:
        return _missing_inside(data_type.array.element_type, parts)
    if data_type.struct is None:
        return parts[0]
    return columns_of(data_type.struct.fields_).missing_part(parts)

"""Keys that the catalogue of a database declares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeclaredKey:
    """A foreign key of a table."""

    name: str
    columns: tuple[str, ...]
    parent: str
    """Reference of the table that it leads to, as `tableReference` names it."""
    parent_columns: tuple[str, ...]

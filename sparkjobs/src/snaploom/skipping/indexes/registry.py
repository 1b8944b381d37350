"""Which index types there are: the built-in ones and what others register."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import cast

from snaploom.errors import IndexNotPossible
from snaploom.skipping.indexes.base import IndexType

ENTRY_POINTS = "snaploom.skipping.indexes"
"""Entry-point group: the name is the type's, the value an object of it."""


@cache
def registered_types() -> dict[str, IndexType]:
    """Every type by name; ours are registered like anybody's, in `pyproject.toml`."""
    return {entry.name: cast(IndexType, entry.load()) for entry in entry_points(group=ENTRY_POINTS)}


def index_type(name: str) -> IndexType:
    """The type of that name.

    Raises:
        IndexNotPossible: no such type is registered here.
    """
    types = registered_types()
    if name not in types:
        raise IndexNotPossible(
            f"there is no index type {name}",
            found=name,
            expected=", ".join(sorted(types)),
            hint=f"install the package that registers it in the entry-point group {ENTRY_POINTS}",
        )
    return types[name]

"""Registry of index types, built-in and from other packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.registrations import load_registered
from snaploom.skipping.indexes.base import IndexType

ENTRY_POINTS = "snaploom.skipping.indexes"
"""Entry-point group: the name is the type's, the value an object of it."""

_MEMBERS = tuple(name for name in vars(IndexType) if not name.startswith("_"))


def registered_types() -> tuple[str, ...]:
    """Names of all types, sorted; ours are registered like any other, in `pyproject.toml`."""
    return tuple(sorted(_entries()))


@cache
def index_type(name: str) -> IndexType:
    """The type of that name.

    Raises:
        IndexNotPossible: no such type is registered here, or its code cannot be loaded or is for
            another version of Snaploom.
    """
    entry = _entries().get(name)
    if entry is None:
        raise IndexNotPossible(
            f"there is no index type {name}",
            found=name,
            expected=", ".join(registered_types()),
            hint="choose one of these, or install the package that registers it in the entry-point "
            f"group {ENTRY_POINTS}",
        )
    return cast(IndexType, load_registered(entry, "the index type", _MEMBERS))


@cache
def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}

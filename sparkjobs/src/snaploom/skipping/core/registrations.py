"""Objects that packages register by entry points, loaded when first needed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint

from snaploom.errors import IndexNotPossible


def load_registered(entry: EntryPoint, what: str, members: Iterable[str] = ()) -> object:
    """Load the object of an entry point; `what` names its kind in messages.

    Raises:
        IndexNotPossible: its code cannot be loaded, or it is for another version of Snaploom.
    """
    try:
        found: object = entry.load()
    except (ImportError, AttributeError) as failure:
        raise IndexNotPossible(
            f"{what} {entry.name} cannot be loaded: {failure}",
            found=entry.value,
            expected="a package whose modules can be imported",
            hint="install what the package that registers it needs, or uninstall that package",
        ) from failure
    missing = [member for member in members if not hasattr(found, member)]
    if missing:
        raise IndexNotPossible(
            f"{what} {entry.name} lacks {', '.join(missing)}",
            found=entry.value,
            expected="what this version of Snaploom asks of it",
            hint="install a version of the package that registers it which fits this Snaploom",
        )
    return found

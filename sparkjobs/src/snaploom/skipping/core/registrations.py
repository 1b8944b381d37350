"""What packages register by entry points, loaded when it is first needed."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from snaploom.errors import IndexNotPossible


def load_registered(entry: EntryPoint, what: str) -> object:
    """The object that an entry point names.

    Args:
        entry: as its package registers it.
        what: it is, with its article, such as `the index type`.

    Raises:
        IndexNotPossible: its code cannot be loaded.
    """
    try:
        return entry.load()
    except (ImportError, AttributeError) as failure:
        raise IndexNotPossible(
            f"{what} {entry.name} cannot be loaded: {failure}",
            found=entry.value,
            expected="a package whose modules can be imported",
            hint="install what the package that registers it needs, or uninstall that package",
        ) from failure

"""A process in which there is no `snaploom.plugins`: a pytest plugin, and a function for programs.

`python -m pytest -p support.skipping.withoutinterop FILES`
"""

import sys
from collections.abc import Callable
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

import pytest

ABSENT = "snaploom.plugins"


class Absent(MetaPathFinder):
    """Finds no module of the packages that are taken away."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == ABSENT or name.startswith(f"{ABSENT}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def without(registered: Callable[..., metadata.EntryPoints]) -> Callable[..., metadata.EntryPoints]:
    """`entry_points` of a group without those of the packages that are taken away."""

    def entry_points(**wanted: str) -> metadata.EntryPoints:
        if not wanted:
            return registered()  # a mapping of groups in Python 3.11; nobody here asks so
        kept = (each for each in registered(**wanted) if not each.value.startswith(f"{ABSENT}."))
        return metadata.EntryPoints(kept)

    return entry_points


def take_away() -> None:
    """Take the packages and their entry points away; before anything of Snaploom is imported."""
    if any(name.startswith("snaploom.skipping") for name in sys.modules):
        raise RuntimeError("snaploom.skipping has been imported, perhaps with its interchange")
    sys.meta_path.insert(0, Absent())
    metadata.entry_points = without(metadata.entry_points)  # type: ignore[assignment]


def pytest_load_initial_conftests() -> None:
    take_away()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of what is taken away."""
    left_out = [item for item in items if item.get_closest_marker("plugged")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]

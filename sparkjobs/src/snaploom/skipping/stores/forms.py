"""Forms of folders: extra files for other programs, beside our rows.

A form is registered in the entry-point group `snaploom.skipping.forms` under its name. An index of
a form that is not registered here is read and described, and not changed: what other programs read
would not follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, cast

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.registrations import load_registered
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.stores.port import IndexStore
from snaploom.storage.objectstore import ObjectStore

ENTRY_POINTS = "snaploom.skipping.forms"
"""Entry-point group: the name is the form's, the value a `StoreForm`."""


class StoreForm(Protocol):
    """A form that a folder may have."""

    def check(self, definition: SkippingDefinition) -> None:
        """Raise `IndexNotPossible`, with all reasons, for a definition the form cannot hold."""
        ...

    def parameters(self, index_type: str, given: Mapping[str, str]) -> Mapping[str, str]:
        """Parameters of an index as the form needs them."""
        ...

    def store(
        self, native: IndexStore, base: ObjectStore, folder: str, keys: ParquetKeys | None
    ) -> IndexStore:
        """A store that also maintains the form of its indexes; others' indexes pass through."""
        ...


@cache
def registered_forms() -> Mapping[str, StoreForm]:
    """Every form by its name."""
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {
        name: cast(StoreForm, load_registered(found[name], "the form")) for name in sorted(found)
    }


def store_form(name: str) -> StoreForm:
    """The form of that name; `IndexNotPossible` if it is not registered here."""
    form = registered_forms().get(name)
    if form is None:
        raise IndexNotPossible(
            f"the form {name} of a store is not registered here",
            found=name,
            expected=", ".join(("NATIVE", *registered_forms())),
            hint=f"install the package that registers it in the entry-point group {ENTRY_POINTS}; "
            "Snaploom's own are in snaploom.interop",
        )
    return form

"""Bases: places that hold the skipping indexes of many targets, and how they are opened.

The bases of folders are here. Another kind of place is a function from its URI to an `IndexBase`,
registered in the entry-point group `snaploom.skipping.stores` under the URI's scheme.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.stores.address import is_opensearch
from snaploom.skipping.stores.folder import FolderIndexStore, folder_name
from snaploom.skipping.stores.forms import registered_forms
from snaploom.skipping.stores.port import IndexStore
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.stores import StoreOpener, UnsupportedStore, open_store

ENTRY_POINTS = "snaploom.skipping.stores"
"""Entry-point group: the name is the URI's scheme, the value a `BaseOpener`."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_STATE = re.compile(r"([0-9a-f]{64})/manifest/\d{20}\.json")


class IndexBase(Protocol):
    """A place that holds skipping indexes."""

    @property
    def uri(self) -> str:
        """URI for people and logs; no secrets in it."""
        ...

    def index(self, target_uri: str) -> IndexStore:
        """The store of a target's index, existing or not; no call goes out."""
        ...

    def indexes(self) -> list[IndexStore]:
        """Stores of all indexes, dropped ones included.

        Raises:
            StorageError: the base cannot be listed.
        """
        ...


BaseOpener = Callable[[str, ParquetKeys | None], IndexBase]
"""From a URI and keys to a base."""


class FolderBase:
    """A folder of an object store with one folder for each index (rule S24)."""

    def __init__(self, store: ObjectStore, keys: ParquetKeys | None = None) -> None:
        """Wrap the store of the base; `keys` are for encrypted indexes."""
        self._store = store
        self._keys = keys
        self._opened: dict[str, IndexStore] = {}

    @property
    def uri(self) -> str:
        """URI of the base."""
        return self._store.uri

    def index(self, target_uri: str) -> IndexStore:
        """The store of a target's index; the same object each time, because it caches."""
        return self._open(folder_name(target_uri))

    def indexes(self) -> list[IndexStore]:
        """Stores of every folder below the base that holds a state."""
        matches = (_STATE.fullmatch(info.key) for info in self._store.list(""))
        names = sorted({match[1] for match in matches if match})
        return [self._open(name) for name in names]

    def _open(self, name: str) -> IndexStore:
        folder = f"{name}/"
        store: IndexStore = FolderIndexStore(self._store, folder, self._keys)
        for form in registered_forms().values():
            store = form.store(store, self._store, folder, self._keys)
        return self._opened.setdefault(name, store)


def open_base(
    uri: str, keys: ParquetKeys | None = None, others: StoreOpener | None = None
) -> IndexBase:
    """Open the base at a URI; `others` opens folders only Hadoop's client knows (rule P6).

    Raises:
        StorageError: no store is known for the scheme, or what it needs is not installed.
    """
    match = _SCHEME.match(uri)
    scheme = match[1].lower() if match is not None else ""
    openers = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if scheme in openers:
        return _loaded(openers[scheme])(uri, keys)
    if is_opensearch(uri):
        raise _not_installed(scheme, "no package that registers the scheme")
    return FolderBase(open_store(uri, create=False, others=others), keys)


def _loaded(entry: EntryPoint) -> BaseOpener:
    try:
        return cast(BaseOpener, entry.load())
    except ImportError as failure:
        raise _not_installed(entry.name, str(failure)) from failure


def _not_installed(scheme: str, found: str) -> UnsupportedStore:
    return UnsupportedStore(
        f"skipping indexes cannot be kept in {scheme}: here",
        found=found,
        expected=f"a store in the entry-point group {ENTRY_POINTS}, and what it needs",
        hint=f"pip install 'snaploom[{scheme}]', or the package that registers {scheme}:",
    )

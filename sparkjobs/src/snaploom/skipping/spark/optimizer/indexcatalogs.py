"""Index catalogs of a Spark application, by its sessions' locations and keys."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from snaploom.hadoop.store import hadoop_stores
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.formats.keyservices import open_keys
from snaploom.skipping.spark.optimizer.settings import SkippingSettings
from snaploom.skipping.stores.bases import open_base
from snaploom.skipping.stores.catalog import IndexCatalog


class IndexCatalogs:
    """One catalog for all sessions with the same locations and keys; safe to use from threads."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._bases: tuple[tuple[str, ParquetKeys | None], ...] = ()
        self._catalogs: dict[tuple[str, tuple[str, ...]], IndexCatalog] = {}
        self._lock = threading.Lock()

    @property
    def bases(self) -> tuple[str, ...]:
        """Folders below which indexes are looked for, in every session."""
        return tuple(uri for uri, _ in self._bases)

    def add_bases(self, uris: Sequence[str], keys: ParquetKeys | None) -> None:
        """Look for indexes below these folders, too; `StorageError` for unknown schemes."""
        for uri in uris:
            open_base(uri, keys, hadoop_stores())
        with self._lock:
            given = dict(self._bases)
            given.update(dict.fromkeys(uris, keys))
            self._bases = tuple(given.items())
            self._catalogs.clear()

    def forget(self) -> None:
        """Read every state anew with the next query."""
        with self._lock:
            self._catalogs.clear()

    def of_session(self, settings: SkippingSettings) -> IndexCatalog:
        """The catalog for a session with these settings."""
        given = dict(self._bases)
        uris = tuple(dict.fromkeys((*given, *settings.locations)))
        wanted = (settings.key_service, uris)
        with self._lock:
            if wanted in self._catalogs:
                return self._catalogs[wanted]
        service = self._keys(settings)
        opened = []
        for uri in uris:
            try:
                opened.append(open_base(uri, given.get(uri) or service, hadoop_stores()))
            except Exception as error:  # noqa: BLE001 -- another location may well be right
                self._warn(f"no skipping index of {uri} is used: {first_line(error)}")
        catalog = IndexCatalog(opened)
        with self._lock:
            return self._catalogs.setdefault(wanted, catalog)

    def _keys(self, settings: SkippingSettings) -> ParquetKeys | None:
        try:
            return open_keys(settings.key_service)
        except Exception as error:  # noqa: BLE001 -- indexes in plain text may well be used
            self._warn(f"no encrypted skipping index is used: {first_line(error)}")
            return None


def first_line(error: Exception) -> str:
    """The first line of an error, without its hint."""
    return getattr(error, "message", "") or str(error)

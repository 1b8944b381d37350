"""Finding, importing and exporting metadata stores of Xskipper: `lifecycle.interchange` for them.

A table's property names the store itself, its database's a folder with one store for each table
(`locations`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from snaploom.errors import IndexNotFound
from snaploom.interop.xskipper.directory import XskipperDirectory
from snaploom.interop.xskipper.locations import (
    LOCATION,
    OLD_LOCATION,
    LocationKind,
    below_base,
    property_in,
    resolve,
)
from snaploom.interop.xskipper.objectnames import table_identifier
from snaploom.interop.xskipper.storeimport import export_index, import_index
from snaploom.interop.xskipper.storereader import StoredMetadata
from snaploom.skipping.core.definition import Target
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.lifecycle.interchange import CatalogProperties, ImportResult, Written
from snaploom.skipping.lifecycle.target import IndexableTarget, Progress
from snaploom.skipping.stores.port import IndexStore
from snaploom.storage.objectstore import ObjectStore

_CATALOG = "spark_catalog."


@dataclass(frozen=True)
class FoundStore:
    """Implementation of the port `FoundMetadata`."""

    metadata: StoredMetadata
    """Content of the store."""

    def import_into(
        self,
        store: IndexStore,
        target: IndexableTarget,
        *,
        is_trusted: bool,
        progress: Progress,
    ) -> ImportResult:
        """A new index."""
        return import_index(store, target, self.metadata, is_trusted=is_trusted, progress=progress)


@dataclass(frozen=True)
class XskipperInterchange:
    """Implementation of the port `Interchange`."""

    property_names: tuple[str, ...] = (LOCATION, OLD_LOCATION)

    def base(self, properties: CatalogProperties) -> str:
        """The folder of a table's indexes; empty for none."""
        own = property_in(properties.table)
        if own is not None:
            return str(PurePosixPath(own.rstrip("/")).parent) if "/" in own else ""
        return property_in(properties.database) or ""

    def find(
        self,
        target: Target,
        directory: str,
        properties: CatalogProperties,
        opened: Callable[[str], ObjectStore],
        keys: ParquetKeys | None,
    ) -> FoundStore:
        """The metadata store of a target, of version 0 to 4."""
        folders = _folders(target, directory, properties)
        for folder in folders:
            try:
                return FoundStore(XskipperDirectory(opened(folder), keys).read())
            except IndexNotFound:
                continue
        raise IndexNotFound(
            "there is no metadata store",
            found=f"no Parquet files in {' or '.join(folders)}",
            expected="the folder of a metadata store, or the one that holds those of many tables",
            hint="look for a folder with files part-*.parquet in it",
        )

    def export(self, store: IndexStore, folder: ObjectStore, keys: ParquetKeys | None) -> Written:
        """A metadata store of version 4."""
        return export_index(store, folder, XskipperDirectory(folder, keys))


def _folders(target: Target, directory: str, properties: CatalogProperties) -> list[str]:
    table = target.table.removeprefix(_CATALOG)
    identifiers = [name for name in (table, table_identifier(target.uri)) if name]
    if directory:
        return [directory, *(below_base(directory, name) for name in identifiers)]
    if not table:
        raise IndexNotFound(
            "the location of the metadata store is not set",
            found="files that are no table, so that no property names it",
            expected="the folder of the store",
            hint="name it: `snaploom index import TARGET DIRECTORY`",
        )
    kind = LocationKind.HIVE_TABLE_NAME
    found = [resolve(kind, "", name, properties.table, properties.database) for name in identifiers]
    return list(dict.fromkeys(found))


XSKIPPER = XskipperInterchange()

"""The files of all sources of one run; what was listed once stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from snaploom import lazyimport
from snaploom.extras import PackageMissing
from snaploom.listing.capturedfiles import FileListing
from snaploom.listing.icebergversions import iceberg_snapshots
from snaploom.listing.otherfiles import OtherFiles
from snaploom.listing.pathsnapshots import path_snapshots
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.sources.declared import DeclaredSource
from snaploom.planning.sources.files.source import FileSource
from snaploom.planning.sources.registry import declared
from snaploom.planning.sources.tables.source import TableSource

ColumnSnapshots = Callable[[FileListing], SourceSnapshots | None]
"""`snaploom.listing.columnsnapshots.column_snapshots`, which brings Arrow along."""


class SourceFiles:
    """The files of sources, by name of the source."""

    def __init__(self, others: OtherFiles) -> None:
        """Nothing is listed yet; `others` lists what is not on a local disk."""
        self.others = others
        self._listings: dict[str, FileListing] = {}

    def of(self, source: FileSource) -> FileListing:
        """The files of a source; listed when they are asked for."""
        name = source.source.name
        if name not in self._listings:
            identity = source.source.identity
            self._listings[name] = FileListing(identity, source.declared, self.others)
        return self._listings[name]

    def asking(self, others: OtherFiles) -> SourceFiles:
        """The same files, and others to list what has not been listed."""
        files = SourceFiles(others)
        files._listings.update(
            (name, listing.asking(others))
            for name, listing in self._listings.items()
            if listing.is_enumerated
        )
        return files


def file_snapshots(listing: FileListing) -> SourceSnapshots | None:
    """The snapshots of files, where these need not be opened; None where a column holds them.

    Raises:
        SnapshotValueInvalid: a path has none.
        SourceError: the files cannot be listed.
        SparkNeeded: only Spark can list them.
    """
    if listing.declared.snapshot.from_field_value is None:
        return listing.at_read_time
    snapshots = path_snapshots(listing)
    return None if snapshots is None else snapshots.listed


def enumerated_source(bundle: Bundle, name: str) -> DeclaredSource:
    """The source whose snapshots a source has: itself, or the one that it is a query over.

    Args:
        bundle: holds both.
        name: of the source.
    """
    source = declared(bundle.source(name))
    while source.snapshots_of is not None:
        source = declared(bundle.source(source.snapshots_of))
    return source


def listed_without_spark(bundle: Bundle, name: str, files: SourceFiles) -> SourceSnapshots | None:
    """The snapshots of a source; None where only Spark can enumerate them.

    Args:
        bundle: holds the source, and those that it reads.
        name: of the source.
        files: of all of them.

    Raises:
        SourceError: as `file_snapshots`.
        SparkNeeded: as `file_snapshots`.
    """
    source = enumerated_source(bundle, name)
    if isinstance(source, TableSource):
        return iceberg_snapshots(source, files.others)
    if not isinstance(source, FileSource):
        return None
    listing = files.of(source)
    found = file_snapshots(listing)
    return _of_column(listing) if found is None else found


def _of_column(listing: FileListing) -> SourceSnapshots | None:
    try:
        found = cast(ColumnSnapshots, lazyimport.resolve(lazyimport.COLUMN_SNAPSHOTS))
    except PackageMissing:
        return None  # nor is Spark there, whose absence is what people should learn of
    return found(listing)

"""The files of all sources of one run; what was listed once stays as it was."""

from __future__ import annotations

from snaploom.listing.capturedfiles import FileListing
from snaploom.listing.otherfiles import OtherFiles
from snaploom.listing.pathsnapshots import path_snapshots
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.sources.files.source import FileSource
from snaploom.planning.sources.registry import declared


class SourceFiles:
    """The files of sources, by name of the source."""

    def __init__(self, others: OtherFiles) -> None:
        """Nothing is listed yet; `others` lists what is not on a local disk."""
        self._others = others
        self._listings: dict[str, FileListing] = {}

    def of(self, source: FileSource) -> FileListing:
        """The files of a source; listed when they are asked for."""
        name = source.source.name
        if name not in self._listings:
            identity = source.source.identity
            self._listings[name] = FileListing(identity, source.declared, self._others)
        return self._listings[name]

    def asking(self, others: OtherFiles) -> SourceFiles:
        """The same files, and others to list what has not been listed."""
        files = SourceFiles(others)
        files._listings.update(
            (name, listing) for name, listing in self._listings.items() if listing.is_listed
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
    source = declared(bundle.source(name))
    while source.snapshots_of is not None:
        source = declared(bundle.source(source.snapshots_of))
    return file_snapshots(files.of(source)) if isinstance(source, FileSource) else None

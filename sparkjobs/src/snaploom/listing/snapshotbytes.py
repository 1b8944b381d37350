"""Size of a snapshot's files, before anything is read."""

from __future__ import annotations

from snaploom.listing.pathsnapshots import path_snapshots
from snaploom.listing.sourcefiles import SourceFiles, enumerated_source
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.files.source import FileSource


def snapshot_bytes(
    bundle: Bundle, name: str, snapshot: EpochNanos, files: SourceFiles
) -> int | None:
    """Bytes of the files of a snapshot; None where it is not read from files only.

    Where a column holds the snapshots these are the bytes of all files, each of which may have
    some of its rows.

    Raises:
        SourceError: the files cannot be listed.
        SparkNeeded: only Spark can list them.
    """
    source = enumerated_source(bundle, name)
    if not isinstance(source, FileSource):
        return None
    listing = files.of(source)
    by_path = path_snapshots(listing)
    found = listing.files if by_path is None else by_path.files_of(snapshot)
    return sum(each.file.length for each in found)

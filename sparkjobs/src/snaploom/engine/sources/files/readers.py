"""Readers of `hdfsLike` sources, one for each way to declare snapshots (rule W19).

* by read time: everything there is, as one snapshot at the instant of the run;
* by path: enumerated from only the names of files, without opening one;
* by column: read from the files, and remembered (`snaploom.engine.sources.files.columnreader`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql.types import StructType

from snaploom.engine.sources.files.columnreader import ColumnReader
from snaploom.engine.sources.files.fileset import FileSet
from snaploom.engine.sources.files.schemas import common_schema
from snaploom.engine.sources.port import SourceFrame, SourceReader, not_listed, read_as_listed
from snaploom.engine.sources.readercontext import ReaderContext
from snaploom.listing.pathsnapshots import PathSnapshots, path_snapshots
from snaploom.listing.sourcefiles import ReadFiles
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.sources.declared import DeclaredSource
from snaploom.planning.sources.files.source import FileSource


def open_files(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of a source of files."""
    if not isinstance(source, FileSource):
        return None
    name, settings = source.source.name, source.declared.snapshot.from_field_value
    listing = context.files.of(source)
    files = FileSet(context.spark, listing, context.allow)
    if settings is None:
        return ReadTimeReader(name, files, context.now)
    snapshots = path_snapshots(listing)
    if snapshots is not None:
        return PathReader(name, files, snapshots)
    return ColumnReader(name, files, settings, context.listings)


@dataclass(frozen=True)
class ReadTimeReader:
    """All files are one snapshot, at the instant of the run."""

    name: str
    files: FileSet
    now: EpochNanos

    def listing(self) -> SourceSnapshots:
        """The current snapshot; empty when there is no file."""
        return self.files.listing.at_read_time

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """All files.

        Raises:
            SnapshotMissing: there are none, or another time is asked for.
            SourceError: they cannot be read.
        """
        files = self.files.files
        if not files or snapshot != self.now:
            raise not_listed(self.name, snapshot)
        listed = ReadFiles(self.files.listing, files)
        with read_as_listed(listed, self.files.listing.others):
            frame = self.files.read(files, self._schema)
        return SourceFrame(frame, snapshot, listed.fingerprint, listed=listed)

    @cached_property
    def _schema(self) -> StructType | None:
        return common_schema(self.files, self.files.files)


@dataclass(frozen=True)
class PathReader:
    """The path of a file holds its snapshot."""

    name: str
    files: FileSet
    snapshots: PathSnapshots

    def listing(self) -> SourceSnapshots:
        """The instants in paths; no file is opened.

        Raises:
            SnapshotValueInvalid: a path has none.
        """
        return self.snapshots.listed

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The files of one snapshot.

        Raises:
            SnapshotMissing: there are none.
            SourceError: they cannot be read.
        """
        files = self.snapshots.files_of(snapshot)
        if not files:
            raise not_listed(self.name, snapshot)
        listed = ReadFiles(self.files.listing, files, snapshot)
        with read_as_listed(listed, self.files.listing.others):
            if snapshot not in self._schemas:
                self._schemas[snapshot] = common_schema(self.files, files)
            frame = self.files.read(files, self._schemas[snapshot])
        is_dropped = self.snapshots.settings.drop_field
        dropped = (self.snapshots.capture.name,) if is_dropped else ()
        return SourceFrame(frame, snapshot, listed.fingerprint, dropped, listed=listed)

    @cached_property
    def _schemas(self) -> dict[EpochNanos, StructType | None]:
        return {}

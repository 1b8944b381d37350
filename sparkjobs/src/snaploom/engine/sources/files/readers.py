"""Readers of `hdfsLike` sources, one for each way to declare snapshots (rule W19).

* by read time: everything there is, as one snapshot at the instant of the run;
* by path: enumerated from only the names of files, without opening one;
* by column: read from the files, and remembered (`snaploom.engine.sources.files.columnreader`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql.types import StructType

from snaploom.engine.sources.files.columnreader import ColumnReader
from snaploom.engine.sources.files.fileset import CapturedFile, FileSet, shown
from snaploom.engine.sources.files.globs import fingerprint
from snaploom.engine.sources.files.schemas import common_schema
from snaploom.engine.sources.instants import (
    EXPECTED,
    NotAnInstant,
    instant_of,
    instant_of_date_time,
    month_hint,
)
from snaploom.engine.sources.port import SourceFrame, SourceReader, not_listed
from snaploom.engine.sources.readercontext import ReaderContext
from snaploom.errors import SnapshotValueInvalid
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import READ_TIME, SourceSnapshots
from snaploom.planning.prefix import CapturedValue, UriPrefix
from snaploom.planning.sources.declared import DeclaredSource
from snaploom.planning.sources.files.source import FileSource


def open_files(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of a source of files."""
    if not isinstance(source, FileSource):
        return None
    name, settings = source.source.name, source.declared.snapshot.from_field_value
    files = FileSet(context.spark, source.source.identity, source.declared, context.allow)
    if settings is None:
        return ReadTimeReader(name, files, context.now)
    if files.prefix is not None and files.prefix.capture(settings.field_name) is not None:
        return PathReader(name, files, settings, files.prefix)
    return ColumnReader(name, files, settings, context.listings)


@dataclass(frozen=True)
class ReadTimeReader:
    """All files are one snapshot, at the instant of the run."""

    name: str
    files: FileSet
    now: EpochNanos

    def listing(self) -> SourceSnapshots:
        """What is there when it is read; nothing when there is no file."""
        return READ_TIME if self.files.files else SourceSnapshots()

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """All files.

        Raises:
            SnapshotMissing: there are none, or another time is asked for.
            SourceError: they cannot be read.
        """
        files = self.files.files
        if not files or snapshot != self.now:
            raise not_listed(self.name, snapshot)
        frame = self.files.read(files, self._schema)
        return SourceFrame(frame, snapshot, _fingerprint(files))

    @cached_property
    def _schema(self) -> StructType | None:
        return common_schema(self.files, self.files.files)


@dataclass(frozen=True)
class PathReader:
    """The path of a file holds its snapshot."""

    name: str
    files: FileSet
    settings: FromFieldValue
    prefix: UriPrefix

    def listing(self) -> SourceSnapshots:
        """The instants in paths; no file is opened.

        Raises:
            SnapshotValueInvalid: a path has none.
        """
        return SourceSnapshots.of(self._by_instant)

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The files of one snapshot.

        Raises:
            SnapshotMissing: there are none.
            SourceError: they cannot be read.
        """
        files = self._by_instant.get(snapshot)
        if files is None:
            raise not_listed(self.name, snapshot)
        if snapshot not in self._schemas:
            self._schemas[snapshot] = common_schema(self.files, files)
        frame = self.files.read(files, self._schemas[snapshot])
        field = self.prefix.capture(self.settings.field_name)
        assert field is not None  # open_files chose this reader because of it
        dropped = (field.name,) if self.settings.drop_field else ()
        return SourceFrame(frame, snapshot, _fingerprint(files), dropped)

    @cached_property
    def _schemas(self) -> dict[EpochNanos, StructType | None]:
        """The schemas of snapshots that were read."""
        return {}

    @cached_property
    def _by_instant(self) -> Mapping[EpochNanos, tuple[CapturedFile, ...]]:
        capture = self.prefix.capture(self.settings.field_name)
        assert capture is not None  # open_files chose this reader because of it
        by_value: dict[CapturedValue, list[CapturedFile]] = defaultdict(list)
        for file in self.files.files:
            by_value[file.values[capture.name]].append(file)
        by_instant: dict[EpochNanos, list[CapturedFile]] = defaultdict(list)
        invalid: list[str] = []
        wrong: list[CapturedValue] = []
        for value, files in by_value.items():
            try:
                by_instant[self._instant(value)] += files
            except NotAnInstant:
                wrong.append(value)
                invalid += [f"{value!r} in {file.file.uri}" for file in files]
        if invalid:
            raise SnapshotValueInvalid(
                f"{len(invalid)} of {len(self.files.files)} files have a path whose "
                f"{capture.name} is no snapshot time",
                resource=f"DataSource/{self.name}",
                path="spec.hdfsLike.snapshot.fromFieldValue.timeFormat",
                found=shown(invalid),
                expected=f"{EXPECTED[self.settings.time_format]} ({self.settings.time_format})",
                hint=month_hint(wrong, in_paths=True)
                or "correct timeFormat or the names, or make sourceUriGlobs leave them out",
            )
        return {instant: tuple(files) for instant, files in by_instant.items()}

    def _instant(self, value: CapturedValue) -> EpochNanos:
        if self.settings.time_format is TimeFormat.TIMESTAMP:
            # The one capture that is a timestamp is the one of an ISO 8601 text.
            return instant_of_date_time(str(value), self.settings.default_timezone)
        return instant_of(value, self.settings)


def _fingerprint(files: tuple[CapturedFile, ...]) -> str:
    return fingerprint(file.file for file in files)

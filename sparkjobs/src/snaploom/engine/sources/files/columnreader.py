"""Files of which a column holds the snapshot of each row: which there are, and their rows.

Such files are one table whose rows came at different times, and so they are read under one schema
that holds what any of them has (`snaploom.engine.sources.files.schemas`).

The values of a file are read from its footer, where that has them, else by one pass over the column
of those files that are in doubt. The result is remembered, and not asked again while the file
stays as it is (`storage.listingcache`). A snapshot is read from the files that hold its rows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from snaploom.engine.committers import COMMITTERS
from snaploom.engine.sources.files.fileset import FileSet, urls_of
from snaploom.engine.sources.files.schemas import (
    are_asked,
    have_footer_schemas,
    inferred_schemas,
    merged_schema,
)
from snaploom.engine.sources.port import SourceFrame, not_listed, read_as_listed
from snaploom.engine.sources.snapshotcolumn import RawValue, SnapshotColumn
from snaploom.hadoop.client import client_of
from snaploom.hadoop.fileends import FileEnds
from snaploom.listing.capturedfiles import CapturedFile
from snaploom.listing.footers import Footer, read_footers
from snaploom.listing.listedfile import file_key
from snaploom.listing.sourcefiles import ReadFiles
from snaploom.models.datasource import FromFieldValue
from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos
from snaploom.planning.fieldpaths import split_path
from snaploom.planning.intervals import SourceSnapshots
from snaploom.storage.layout import content_hash
from snaploom.storage.listingcache import FileFacts, Listings, SourceListing
from snaploom.version import VERSION

_FORMATS_WITH_FILE_PATH = frozenset(["parquet", "orc", "avro", "csv", "json", "text", "xml"])
"""Formats of which Spark exposes the file of a row (`_metadata.file_path`)."""
_FORMATS = ("parquet.", "orc.", "avro.", "csv.", "json.", "files.")
_READING = (*_FORMATS, "legacy.", "session.", "timestampType")
"""Settings of Spark, after `spark.sql.`, that change its reading of a file."""


@dataclass(frozen=True)
class _Enumerated:
    """The snapshots of a source."""

    values: Mapping[EpochNanos, tuple[RawValue, ...]]
    """The raw values of each."""
    files: Mapping[EpochNanos, tuple[CapturedFile, ...]] | None
    """The files that hold its rows; None where these were too many to list."""


@dataclass(frozen=True)
class ColumnReader:
    """A column of the data holds the snapshot of each row."""

    name: str
    files: FileSet
    settings: FromFieldValue
    listings: Listings | None = None
    """Facts that earlier runs learned of files."""

    def listing(self) -> SourceSnapshots:
        """The distinct instants of the column.

        Raises:
            SnapshotValueInvalid: a row has NULL, or a value that is not of its format.
            SourceError: the files cannot be read.
        """
        return SourceSnapshots.of(self._enumerated.values)

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The rows of one snapshot, out of the files that hold them.

        Raises:
            SnapshotMissing: there are none.
        """
        values = self._enumerated.values.get(snapshot)
        if values is None:
            raise not_listed(self.name, snapshot)
        files = self._files_of(snapshot)
        listed = ReadFiles(self.files.listing, files)
        with read_as_listed(listed, self.files.listing.others):
            frame = self._column.select(self._frame_of(files), values)
        dropped = self._column.field.parts if self.settings.drop_field else ()
        return SourceFrame(frame, snapshot, listed.fingerprint, dropped, listed=listed)

    def _files_of(self, snapshot: EpochNanos) -> tuple[CapturedFile, ...]:
        holding = self._enumerated.files
        return self.files.files if holding is None else holding[snapshot]

    def _frame_of(self, files: Sequence[CapturedFile]) -> DataFrame:
        if len(files) == len(self.files.files):
            return self._frame
        return self.files.with_captures(self.files.data(files, self._data.schema), files)

    @cached_property
    def _frame(self) -> DataFrame:
        return self.files.with_captures(self._data, self.files.files)

    @cached_property
    def _data(self) -> DataFrame:
        return self.files.data(self.files.files, self._schema)

    @cached_property
    def _column(self) -> SnapshotColumn:
        return SnapshotColumn.find(self._frame.schema, self.settings, self.files.resource)

    @property
    def _format(self) -> str:
        return self.files.declared.format.lower()

    @cached_property
    def _listing(self) -> SourceListing:
        if self.listings is None:
            return SourceListing("", {}, EpochNanos(0))
        return self.listings.of(self.name, self._about())

    def _about(self) -> str:
        """Hash over all that decides the values of a file, beside the file itself."""
        declared = self.files.declared.model_copy(
            update={"source_uri_globs": (), "source_uri_prefix": None}
        )
        settings = {
            name: value
            for name, value in self.files.spark.conf.getAll.items()
            if name.removeprefix("spark.sql.").startswith(_READING) and name not in COMMITTERS
        }
        versions = [VERSION, self.files.spark.version]
        inputs = [versions, declared.model_dump_json(), sorted(settings.items())]
        return content_hash(json.dumps(inputs).encode())

    @cached_property
    def _facts(self) -> tuple[FileFacts, ...]:
        return tuple(self._listing.find(file_key(file.file)) for file in self.files.files)

    @cached_property
    def _footers(self) -> Mapping[str, Footer]:
        """Footers by URI, of files that are not known; options may make Spark read otherwise."""
        if not have_footer_schemas(self.files.declared):
            return {}
        is_declared = self.files.declared.schema_fields is not None
        asked = [
            file.file
            for file, facts in zip(self.files.files, self._facts, strict=True)
            if facts.column is None or not (is_declared or facts.schema)
        ]
        footers = read_footers(asked, self._plain_name, FileEnds(client_of(self.files.spark)).read)
        found = zip(asked, footers, strict=True)
        return {file.uri: footer for file, footer in found if footer is not None}

    @property
    def _plain_name(self) -> str | None:
        """The name of the column, where it cannot be taken for a field of a struct."""
        parts = split_path(self.settings.field_name) or ()
        return parts[0] if len(parts) == 1 and "." not in parts[0] else None

    @cached_property
    def _schemas(self) -> tuple[str | None, ...]:
        """The schema of each file; None where it is not known."""
        if self.files.declared.schema_fields is not None:
            return tuple(None for _ in self.files.files)
        known = [facts.schema for facts in self._facts]
        return inferred_schemas(self.files, self.files.files, self._footers, known)

    @cached_property
    def _schema(self) -> spark_types.StructType | None:
        """The schema with the fields of all files; None to let the format find one.

        Raises:
            SourceSchemaInvalid: types of one column have nothing in common.
        """
        if not are_asked(self.files.declared):
            return None
        if not have_footer_schemas(self.files.declared):
            return self.files.merged_by_spark(self.files.files)
        return merged_schema(self.files, self.files.files, self._schemas)

    @cached_property
    def _enumerated(self) -> _Enumerated:
        files = self.files.files
        if not files:
            return _Enumerated({}, {})
        values = dict(self._known_values())
        asked = [file for file in files if file.file.uri not in values]
        rest = self._asked(asked) if asked else {}
        if rest is None:
            others = self._column.values(self._only(asked)).values()
            raw_values = chain.from_iterable((*values.values(), *others))
            found = _Enumerated(self._column.instants(raw_values), None)
        else:
            values.update(rest)
            found = self._by_file(values)
        self._learn(values)
        return found

    def _known_values(self) -> Iterator[tuple[str, tuple[RawValue, ...]]]:
        for file, facts in zip(self.files.files, self._facts, strict=True):
            footer = self._footers.get(file.file.uri)
            if facts.column == self._column_key:
                yield file.file.uri, facts.values
            elif footer is not None and footer.column is not None:
                field = self._column.field
                values = footer.column.of(field.parts, field.data_type.simpleString())
                if values is not None and self._column.are_instants(values):
                    yield file.file.uri, tuple(sorted(values))

    def _asked(self, files: Sequence[CapturedFile]) -> Mapping[str, tuple[RawValue, ...]] | None:
        """Values of files, by URI, by one pass over their column; None where that is too much."""
        if self._format not in _FORMATS_WITH_FILE_PATH:
            return None
        frame = self._only(files)
        uris = [file.file.uri for file in files]
        found = self._column.values_by_file(frame, self.files.file_of_row(frame, uris))
        if found is None:
            return None
        urls = urls_of(frame, uris)
        return {uri: found.get(url, ()) for url, uri in urls.items()}

    def _only(self, files: Sequence[CapturedFile]) -> DataFrame:
        if len(files) == len(self.files.files):
            return self._data
        return self.files.data(files, self._data.schema)

    def _by_file(self, values: Mapping[str, tuple[RawValue, ...]]) -> _Enumerated:
        by_instant = self._column.instants(chain.from_iterable(values.values()))
        instants = {raw: instant for instant, raws in by_instant.items() for raw in raws}
        holding: dict[EpochNanos, list[CapturedFile]] = defaultdict(list)
        for file in self.files.files:
            for instant in dict.fromkeys(instants[raw] for raw in values[file.file.uri]):
                holding[instant].append(file)
        return _Enumerated(by_instant, {at: tuple(files) for at, files in holding.items()})

    def _learn(self, values: Mapping[str, tuple[RawValue, ...]]) -> None:
        for file, facts, schema in zip(self.files.files, self._facts, self._schemas, strict=True):
            learned = replace(facts, schema=schema)
            found = values.get(file.file.uri)
            if found is not None:
                learned = replace(learned, column=self._column_key, values=found)
            changed = EpochNanos(file.file.changed * NANOS_PER_MILLISECOND)
            self._listing.learn(file_key(file.file), changed, learned)

    @property
    def _column_key(self) -> str:
        field = self._column.field
        return f"{field.path} {field.data_type.simpleString()}"

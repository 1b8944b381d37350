"""Readers of `hdfsLike` sources, one for each way to declare snapshots (rule W19)."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructType

from snaploom.errors import SourceSchemaInvalid
from snaploom.files.listed import file_key
from snaploom.installed import VERSION
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, format_instant
from snaploom.models.datasource import FromFieldValue, HdfsLike
from snaploom.output.caches import FileFacts, Listings, SourceListing
from snaploom.output.layout import content_hash
from snaploom.plan.intervals import SourceSnapshots
from snaploom.policy.fileformats import format_of
from snaploom.sources import port
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.files.declared import FileSource
from snaploom.sources.files.fileset import FileSet, urls_of
from snaploom.sources.files.footers import Footer, read_footers
from snaploom.sources.files.snapshots import CapturedFile, PathSnapshots, path_snapshots
from snaploom.sources.snapshotcolumn import RawValue, SnapshotColumn
from snaploom.sources.sourcefiles import ReadFiles
from snaploom.spark.jvm import COMMITTERS, FileEnds, client_of
from snaploom.spark.types import struct_from
from snaploom.types.merge import TypeConflict, merge_schemas
from snaploom.types.schemas import split_path

# One schema for files that are read together, and need not have the same columns.


def common_schema(files: FileSet, some: Sequence[CapturedFile]) -> spark_types.StructType | None:
    """The schema of some of a source's files; None where one file's is that of all.

    Raises:
        SourceSchemaInvalid: types of one column have nothing in common.
    """
    if len(some) < 2 or not are_asked(files.declared):
        return None
    if files.format.reader:
        return merged_schema(files, some, files.typed.schemas([file.file for file in some]))
    if not have_footer_schemas(files.declared):
        return files.merged_by_spark(some)
    listed = [file.file for file in some]
    read = read_footers(listed, None, FileEnds(client_of(files.spark)).read)
    footers = {f.uri: footer for f, footer in zip(listed, read, strict=True) if footer is not None}
    if len(footers) == len(some) and len({one.schema_hash for one in footers.values()}) == 1:
        return None
    return merged_schema(files, some, inferred_schemas(files, some, footers, [None] * len(some)))


def are_asked(declared: HdfsLike) -> bool:
    """Whether the schema of files is in the files, and Spark would ask only one."""
    is_declared = declared.schema_fields is not None or "mergeSchema" in declared.format_options
    asked = format_of(declared.format)
    return not is_declared and (asked.is_merged or bool(asked.reader))


def have_footer_schemas(declared: HdfsLike) -> bool:
    """Whether footers give the schema that Spark reads; options may make it read otherwise."""
    return format_of(declared.format).has_footers and not declared.format_options


def inferred_schemas(
    files: FileSet,
    some: Sequence[CapturedFile],
    footers: Mapping[str, Footer],
    known: Sequence[str | None],
) -> tuple[str | None, ...]:
    """The schema of each file as `StructType.json()` gives it; None where it is not known.

    Spark infers it, of one file for all with equal footers. `some` are the files in question,
    `footers` those whose schema is not known, by URI.
    """
    if files.format.reader and None in known:
        return files.typed.schemas([file.file for file in some])
    inferred: dict[str, str] = {}
    schemas: list[str | None] = []
    for file, schema in zip(some, known, strict=True):
        footer = footers.get(file.file.uri)
        if schema is None and footer is not None:
            if footer.schema_hash not in inferred:
                inferred[footer.schema_hash] = files.data([file]).schema.json()
            schema = inferred[footer.schema_hash]
        schemas.append(schema)
    return tuple(schemas)


def merged_schema(
    files: FileSet, some: Sequence[CapturedFile], schemas: Sequence[str | None]
) -> spark_types.StructType:
    """The schema with the fields of all files.

    Where a schema is not known, Spark merges them.

    Raises:
        SourceSchemaInvalid: types of one column have nothing in common.
    """
    if None in schemas:
        return files.merged_by_spark(some)
    firsts: dict[str, int] = {}
    for number, schema in enumerate(schemas):
        firsts.setdefault(str(schema), number)
    if len(firsts) == 1:
        return struct_from(next(iter(firsts)), files.resource, "spec.hdfsLike")
    # The places of files stand for times: of equal names, the first one's case stays.
    merged = merge_schemas((EpochNanos(number), text) for text, number in firsts.items())
    if merged.conflicts:
        raise _conflict(files, some, merged.conflicts)
    return struct_from(merged.schema, files.resource, "spec.hdfsLike")


def _conflict(
    files: FileSet, some: Sequence[CapturedFile], conflicts: Sequence[TypeConflict]
) -> SourceSchemaInvalid:
    uris = {format_instant(EpochNanos(n)): file.file.uri for n, file in enumerate(some)}
    return SourceSchemaInvalid(
        "files give one column types that have nothing in common",
        resource=files.resource,
        path="spec.hdfsLike.sourceUriGlobs",
        found="; ".join(
            f"{each.path} is {each.first} in {uris[each.first_seen]} "
            f"and {each.second} in {uris[each.second_seen]}"
            for each in conflicts
        ),
        expected="types of which one holds all values of the other",
        hint="write the files with one type, or declare them as two sources",
    )


# Files of which a column holds the snapshot of each row: which there are, and their rows.

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
        """
        return SourceSnapshots.of(self._enumerated.values)

    def read(self, *snapshots: EpochNanos) -> port.SourceFrame:
        """The rows of snapshots, out of the files that hold them.

        Raises:
            SnapshotMissing: there are none of one.
        """
        known = self._enumerated.values
        for snapshot in snapshots:
            if snapshot not in known:
                raise port.not_listed(self.name, snapshot)
        by_time = {time: self._files_of(time) for time in snapshots}
        by_uri = {each.file.uri: each for each in chain.from_iterable(by_time.values())}
        files = tuple(by_uri.values())
        listed = ReadFiles(self.files.listing, files)
        values = [value for time in snapshots for value in known[time]]
        with port.read_as_listed(listed, self.files.listing.others):
            frame = self._column.select(self._frame_of(files), values)
        listed = replace(listed, notes=tuple(self.files.remarks(files, frame.schema)))
        dropped = self._column.field.parts if self.settings.drop_field else ()
        return _source_frame(frame, listed, by_time, dropped)

    def _files_of(self, snapshot: EpochNanos) -> tuple[CapturedFile, ...]:
        holding = self._enumerated.files
        return self.files.files if holding is None else holding[snapshot]

    def _frame_of(self, files: Sequence[CapturedFile]) -> DataFrame:
        if len(files) == len(self.files.files):
            return self._frame
        return self.files.with_captures(self._only(files), files)

    @cached_property
    def _frame(self) -> DataFrame:
        return self.files.with_captures(self._data, self.files.files)

    @cached_property
    def _data(self) -> DataFrame:
        return self.files.data(self.files.files, self._schema, is_placed=True)

    @cached_property
    def _column(self) -> SnapshotColumn:
        return SnapshotColumn.find(self._frame.schema, self.settings, self.files.resource)

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
        """The schema with the fields of all files; None to let the format find one."""
        if not are_asked(self.files.declared):
            return None
        if not self.files.format.reader and not have_footer_schemas(self.files.declared):
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
        if not self.files.format.has_file_path:
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
        return self.files.data(files, self._data.schema, is_placed=True)

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


# Readers of `hdfsLike` sources, one for each way to declare snapshots (rule W19).


def _source_frame(
    frame: DataFrame,
    listed: ReadFiles,
    by_time: Mapping[EpochNanos, tuple[CapturedFile, ...]],
    dropped: tuple[str, ...],
) -> port.SourceFrame:
    prints = {time: replace(listed, read=files).fingerprint for time, files in by_time.items()}
    fingerprint, history = port.of_all(prints)
    newest = max(by_time)
    return port.SourceFrame(frame, newest, fingerprint, dropped, listed=listed, history=history)


def open_files(source: DeclaredSource, context: port.ReaderContext) -> port.SourceReader | None:
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

    def read(self, *snapshots: EpochNanos) -> port.SourceFrame:
        """All files.

        Raises:
            SnapshotMissing: there are none, or another time is asked for.
        """
        files, (snapshot,) = self.files.files, snapshots
        if not files or snapshot != self.now:
            raise port.not_listed(self.name, snapshot)
        listed = ReadFiles(self.files.listing, files)
        with port.read_as_listed(listed, self.files.listing.others):
            frame = self.files.read(files, self._schema)
        listed = replace(listed, notes=tuple(self.files.remarks(files, frame.schema)))
        return port.SourceFrame(frame, snapshot, listed.fingerprint, listed=listed)

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

    def read(self, *snapshots: EpochNanos) -> port.SourceFrame:
        """The files of snapshots, under one schema.

        Raises:
            SnapshotMissing: there are none of one.
        """
        by_time = {time: self.snapshots.files_of(time) for time in snapshots}
        for snapshot, found in by_time.items():
            if not found:
                raise port.not_listed(self.name, snapshot)
        files = tuple(chain.from_iterable(by_time.values()))
        listed = ReadFiles(self.files.listing, files, snapshots)
        with port.read_as_listed(listed, self.files.listing.others):
            if snapshots not in self._schemas:
                self._schemas[snapshots] = common_schema(self.files, files)
            frame = self.files.read(files, self._schemas[snapshots])
        listed = replace(listed, notes=tuple(self.files.remarks(files, frame.schema)))
        is_dropped = self.snapshots.settings.drop_field
        dropped = (self.snapshots.capture.name,) if is_dropped else ()
        return _source_frame(frame, listed, by_time, dropped)

    @cached_property
    def _schemas(self) -> dict[tuple[EpochNanos, ...], StructType | None]:
        return {}

"""Readers of all kinds of sources, each opened once a run, and the columns that they give."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from snaploom.errors import SnaploomError, SourceNotReadable, SourceSchemaInvalid
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator, Transformer
from snaploom.output.caches import Listings
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots
from snaploom.sources import port
from snaploom.sources.databases.declared import DatabaseSource
from snaploom.sources.databases.reader import open_database
from snaploom.sources.files.fileset import FileSet
from snaploom.sources.files.hadoop import HadoopFiles
from snaploom.sources.files.reader import open_files
from snaploom.sources.queries.reader import open_complex_query, open_simple_query
from snaploom.sources.registry import declared
from snaploom.sources.sourcefiles import ReadFiles, SourceFiles, shaped_fingerprint, shapes_of
from snaploom.sources.tables.reader import open_table
from snaploom.sources.transformers import (
    Columns,
    applied,
    is_in_effect,
    is_selected,
    renamed,
    transformed,
)
from snaploom.spark.failures import translate
from snaploom.spark.jvm import client_of
from snaploom.spark.types import find_field, relabelled
from snaploom.types.schemas import Struct, quote

# The read column that each column of a source comes from, through its transformers.


@dataclass(frozen=True)
class Origin:
    """Origin of a column."""

    column: str
    is_same: bool = True
    """Whether its values are the same; casts and expressions change them."""


@dataclass(frozen=True)
class _Followed:
    name: str
    metadata: Mapping[str, object]
    origin: Origin


def origins(
    read: Struct, transformers: Iterable[FieldTransformer], time: EpochNanos
) -> Mapping[str, Origin]:
    """The origin of each column, by its name after all transformers."""
    columns = [
        _Followed(field.name, json.loads(field.metadata), Origin(field.name))
        for field in read.fields
    ]
    for transformer in transformers:
        for change in transformer.spec.transformers:
            if is_in_effect(change, time):
                columns = [made for column in columns for made in _changed(column, change)]
    return {column.name: column.origin for column in columns}


def _changed(column: _Followed, change: Transformer) -> Iterator[_Followed]:
    if not is_selected(change.selectors, column.name, column.metadata):
        yield column
    elif change.rename is not None:
        name = renamed(column.name, change.rename)
        if name == column.name or not change.replace_inputs:
            yield column
        if name != column.name:
            yield replace(column, name=name)
    elif change.drop is None:
        yield replace(column, origin=replace(column.origin, is_same=False))


# Declarations about the columns of a source, carried out once they are read.


@dataclass(frozen=True)
class ShapedReader:
    """A source whose columns are as its declarations want them."""

    source: port.SourceReader
    variant: str
    """Field of `spec` that declares it, such as `hdfsLike`."""
    transformers: tuple[FieldTransformer, ...] = ()
    applicators: tuple[MetadataApplicator, ...] = ()

    @property
    def name(self) -> str:
        return self.source.name

    def listing(self) -> SourceSnapshots:
        return self.source.listing()

    def read(self, *snapshots: EpochNanos) -> port.SourceFrame:
        """Snapshots in their final shape.

        Raises:
            SourceSchemaInvalid: a transformer cannot be carried out, or the snapshot's field is all
                that its struct has, or types have nothing in common.
            SnapshotMissing: a snapshot is not listed.
        """
        changes = [c for transformer in self.transformers for c in transformer.spec.transformers]
        alike = groupby(snapshots, key=lambda time: [is_in_effect(each, time) for each in changes])
        frames = [self._shaped(self.source.read(*times)) for _, times in alike]
        return port.united(f"DataSource/{self.name}", frames)

    def _shaped(self, read: port.SourceFrame) -> port.SourceFrame:
        resource = f"DataSource/{self.name}"
        columns = Columns(read.frame, read.snapshot_field)
        columns = transformed(columns, self.transformers, read.time, resource)
        schema = applied(columns.frame.schema, self.applicators)
        frame = relabelled(columns.frame, schema)
        if columns.snapshot_field:
            frame = self._without(frame, columns.snapshot_field)
        shapes: list[FieldTransformer | MetadataApplicator] = []
        shapes += self.transformers
        shapes += self.applicators
        prints = {time: shaped_fingerprint(text, shapes) for time, text in read.snapshots.items()}
        fingerprint, history = port.of_all(prints)
        return replace(
            read,
            frame=frame,
            fingerprint=fingerprint,
            history=history,
            snapshot_field=(),
            unshaped=read.frame.schema,
        )

    def _without(self, frame: DataFrame, parts: tuple[str, ...]) -> DataFrame:
        """The frame without a field, which may lie in structs; one that is gone stays gone."""
        if find_field(frame.schema, ".".join(map(quote, parts))) is None:
            return frame
        top, *below = parts
        columns = [
            sf.col(quote(field.name)) for field in frame.schema.fields if below or field.name != top
        ]
        if not below:
            return frame.select(*columns)
        position = frame.schema.names.index(top)
        metadata = frame.schema.fields[position].metadata
        inner = ".".join(quote(part) for part in below)
        columns[position] = columns[position].dropFields(inner).alias(top, metadata=metadata)
        try:
            return frame.select(*columns)
        except PySparkException as error:
            raise SourceSchemaInvalid(
                f"dropField would leave nothing of a struct: {translate(error).message}",
                resource=f"DataSource/{self.name}",
                path=f"spec.{self.variant}.snapshot.fromFieldValue.dropField",
                found=".".join(parts),
                hint="set dropField to false",
            ) from error


# Readers of the kinds of sources, one a line; the kinds are in planning's registry.

READERS: tuple[port.OpenReader, ...] = (
    open_files,
    open_table,
    open_database,
    open_simple_query,
    open_complex_query,
)


# From declared sources to their readers, each opened once a run.


class Sources:
    """The readers of one run."""

    def __init__(
        self,
        spark: SparkSession,
        bundle: Bundle,
        now: EpochNanos,
        listings: Listings | None = None,
        allow: Allowances = NO_ALLOWANCES,
        files: SourceFiles | None = None,
    ) -> None:
        """Nothing is opened yet; `files` are those listed before there was a session."""
        self._bundle = bundle
        self._resources = ExitStack()
        hadoop = HadoopFiles(client_of(spark))
        listed = SourceFiles(hadoop) if files is None else files.asking(hadoop)
        self._context = port.ReaderContext(
            spark, now, allow, listings, listed, self.reader, self._resources
        )
        self._opened: dict[str, port.SourceReader] = {}

    def reader(self, name: str) -> port.SourceReader:
        """The reader of one source; nothing is listed or read yet."""
        if name not in self._opened:
            self._opened[name] = self._shaped(self._bundle.source(name))
        return self._opened[name]

    @property
    def files(self) -> SourceFiles:
        """The files of sources, each listed once."""
        return self._context.files

    def look_again(self, frames: Iterable[port.SourceFrame], *, had_moment: bool = False) -> None:
        """Make sure that sources are as they were listed; one more listing, and no read of data.

        With `had_moment` the snapshots were fixed at one moment already, after all was listed: then
        only their presence is checked, since files that came beside them are later.

        Raises:
            SourceChanged: they are not.
        """
        now = SourceFiles(self._context.files.others)
        looked = (port.change_of(each, now) for each in listed_for(frames))
        found = [change for change in looked if change is not None]
        changes = [each for each in found if each.is_of_read or not had_moment]
        if changes:
            raise port.changed(changes)

    def list_again(self) -> None:
        """Forget the listed snapshots; databases keep the moment that they have fixed."""
        self._context = replace(self._context, files=SourceFiles(self._context.files.others))
        self._opened = {
            name: reader
            for name, reader in self._opened.items()
            if isinstance(declared(self._bundle.source(name)), DatabaseSource)
        }

    def close(self) -> None:
        """Close connections to databases; frames of their tables cannot be read any more."""
        self._resources.close()

    def _shaped(self, source: DataSource) -> port.SourceReader:
        known = declared(source)
        readers = (open_reader(known, self._context) for open_reader in READERS)
        opened = next(reader for reader in readers if reader is not None)
        return ShapedReader(opened, known.field, *shapes_of(self._bundle, source.name))


def listed_for(frames: Iterable[port.SourceFrame]) -> tuple[port.Listed, ...]:
    """Return the listings of frames and of those that they are queries over; each once."""
    found: dict[int, port.Listed] = {}
    for frame in frames:
        below = listed_for((*frame.below.values(), *frame.united))
        found |= {id(each): each for each in (frame.listed, *below) if each is not None}
    return tuple(found.values())


def located(
    error: SnaploomError, frames: Iterable[port.SourceFrame], spark: SparkSession, allow: Allowances
) -> SnaploomError:
    """The error of a record that does not fit, with its line, column and value; others unchanged.

    Spark names only the file of such a record.
    """
    place = unquote(error.found or "")
    for each in listed_for(frames) if isinstance(error, SourceNotReadable) else ():
        if not isinstance(each, ReadFiles):
            continue
        named = [one for one in each.read if one.file.uri.rpartition("/")[2] in place]
        try:
            found = FileSet(spark, each.listing, allow).unreadable(named) if named else None
        except (SnaploomError, PySparkException, Py4JError):
            continue  # which adds nothing to the error
        if found is not None:
            return found
    return error

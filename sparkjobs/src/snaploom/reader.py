"""`snaploom.read`: the committed snapshots of an output, and only those, as one DataFrame.

The manifest lists which files belong to which snapshot. One manifest sequence is pinned for the
whole read, so that a snapshot which is published or deleted meanwhile changes nothing. Of a long
history only those snapshots are looked at that a query chooses by the partition column. Snapshots
whose schemas differ are read together under the merged schema (types widened, fields that are
absent NULL), which Spark's own `mergeSchema` refuses to do.
"""

import os
import re
import threading
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from snaploom import ondemand
from snaploom.confidential import remember_environment
from snaploom.engine.publishedfiles import READ_OPTIONS, SPARK_FORMATS
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.files.stores import UnsupportedStore, open_store
from snaploom.models.outputdataset import DataFormat
from snaploom.output import history, layout
from snaploom.output.entries import FileRecord, FolderSettings
from snaploom.output.folder import Folder, open_folder
from snaploom.output.history import PublishedSnapshots
from snaploom.output.state import FolderState, Version
from snaploom.output.versions import ReadChoice, Time, known_state, refuse_number, refuse_removed
from snaploom.spark.types import conform_frame, struct_from

FOLDERS_KNOWN = 4
"""Folders whose manifest is kept between two reads, those that were read last: 10,000 snapshots
take 60 ms of a processor to open and some ten megabytes to keep."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
"""The beginning of a URI; a path is taken from the working directory."""

_known: dict[str, Folder] = {}
"""By URI of the folder, the one that was read last at the end."""
_known_lock = threading.Lock()

READ_AHEAD = 64
"""Snapshots whose entries are read before there is a query, as many as opening a folder may read
after a checkpoint: Spark then knows how long all files are. Of more it takes the size for unknown,
which it plans as large, and measures when the query runs."""


def read(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    *,
    at: Time | None = None,
    between: tuple[Time, Time] | None = None,
    manifest: int | None = None,
    known_at: Time | None = None,
) -> DataFrame:
    """The published rows of an output, with the partition column last.

    Args:
        spark: any session of Spark, one of Spark Connect as well: its server must reach the files.
        folder: URI or path of the output's folder.
        at: only the newest snapshot at this time or before it.
        between: only snapshots from one time to another, both inclusive.
        manifest: sequence number to read as of; omitted, the newest. Files of snapshots that were
            deleted since are there until `readerGrace` has passed.
        known_at: snapshots as they were published at this time, whatever was published, replaced
            or deleted since; with `at`, what was known at one time of another.

    Returns:
        A DataFrame with the schema merged over the snapshots chosen; all snapshots by default.
        Every column may be NULL, as in every DataFrame that Spark reads from files.

    Raises:
        NothingPublished: nothing is published, or was at `known_at`, or nothing at `at` or before.
        ObjectNotFound: what was known at `known_at` is removed; the error has the time from which
            on it is kept.
        HistoryIncompatible: the snapshots chosen cannot be read together; both are named.
        FolderNotOurs: this is not the folder of an output.
        ArgumentInvalid: both `at` and `between`, or both `manifest` and `known_at`, a time that
            cannot be read, or a reversed range.
    """
    choice = ReadChoice.parse(at, between, known_at)
    opened, newest = _open(folder, manifest, choice)
    state, settings = _as_known(opened, newest, choice)
    chosen = choice.of(state)
    if choice.known_at is not None:
        refuse_removed(opened.store, newest, choice.known_at, choice.of)
    selection = _Selection(spark, opened, state, settings, chosen or state.timeline, not chosen)
    return selection.frame()


def schema(
    folder: str | os.PathLike[str],
    *,
    at: Time | None = None,
    between: tuple[Time, Time] | None = None,
    manifest: int | None = None,
    known_at: Time | None = None,
) -> spark_types.StructType:
    """The schema that `read` gives for the same arguments, without a session; raises the same."""
    choice = ReadChoice.parse(at, between, known_at)
    opened, newest = _open(folder, manifest, choice)
    state, settings = _as_known(opened, newest, choice)
    documents = history.SchemaDocuments(opened.store)
    merged = history.merged_schema(state, documents, choice.of(state) or state.timeline)
    return struct_from(history.with_partition(merged, settings)).toNullable()


def absences(
    folder: str | os.PathLike[str],
    *,
    at: Time | None = None,
    between: tuple[Time, Time] | None = None,
    manifest: int | None = None,
    known_at: Time | None = None,
) -> tuple[history.Absence, ...]:
    """Return why fields are NULL in whole snapshots: left out, or not declared then.

    The arguments choose snapshots as those of `read`, and raise the same.
    """
    choice = ReadChoice.parse(at, between, known_at)
    state, _ = _as_known(*_open(folder, manifest, choice), choice)
    return history.absences(state, map(state.records.live, choice.of(state)))


def _open(
    folder: str | os.PathLike[str], manifest: int | None, choice: ReadChoice
) -> tuple[Folder, FolderState]:
    remember_environment(os.environ)
    refuse_number(manifest, choice.known_at)
    given = os.fspath(folder)
    uri = given if _SCHEME.match(given) else os.path.abspath(given)
    opened = open_folder(open_store(uri, create=False, others=_by_hadoop))
    with _known_lock:
        known = _known.pop(opened.store.uri, None)
    if known is not None:
        opened.log.follow(known.log)
    state = opened.log.read(manifest)
    with _known_lock:
        _known[opened.store.uri] = opened
        while len(_known) > FOLDERS_KNOWN:
            del _known[next(iter(_known))]
    return opened, state


def _as_known(
    folder: Folder, newest: FolderState, choice: ReadChoice
) -> tuple[FolderState, FolderSettings]:
    """The state that a choice is made from, and the folder's settings."""
    uri, moment = folder.store.uri, choice.known_at
    state = newest if moment is None else known_state(newest, moment, uri)
    return state, history.refuse_empty(state, uri)


def _by_hadoop(uri: str, create: bool) -> ObjectStore:
    """The store of a folder that only Hadoop's client knows; clients of Spark Connect lack it."""
    try:
        stores = ondemand.hadoop_stores
    except ImportError as error:
        raise UnsupportedStore(
            f"only Hadoop's client can open {uri}, and this Spark is a client of Spark Connect",
            expected="file:, s3:, gs: or az:, which are opened without Spark",
            hint="read it where a whole Spark is installed, or publish to one of these stores",
        ) from error
    return stores()(uri, create)


class _Selection:
    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        state: FolderState,
        settings: FolderSettings,
        versions: Sequence[Version],
        is_empty: bool,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._state = state
        self._settings = settings
        self._versions = versions
        self._is_empty = is_empty
        self._format = DataFormat(settings.data_format).of_files
        self._documents = history.SchemaDocuments(folder.store)
        self._hashes = sorted({version.schema_hash for version in versions})

    def frame(self) -> DataFrame:
        merged = struct_from(history.merged_schema(self._state, self._documents, self._versions))
        if self._is_empty:
            return self._without_rows(merged)
        if self._format is not DataFormat.PARQUET and len(self._hashes) > 1:
            return self._by_schema(merged)
        return self._load(self._versions, merged)

    def _by_schema(self, merged: spark_types.StructType) -> DataFrame:
        """Files are read with their own schema, then widened.

        Avro's reader widens no numbers, and JSON's would read a float's text as a double: 0.1
        instead of the 0.10000000149 that the float is.
        """
        frames = []
        for schema_hash in self._hashes:
            versions = [each for each in self._versions if each.schema_hash == schema_hash]
            own = self._load(versions, struct_from(self._documents.get(schema_hash)))
            frames.append(conform_frame(own, self._with_partition(merged)))
        return reduce(DataFrame.unionByName, frames)

    def _load(self, versions: Sequence[Version], schema: spark_types.StructType) -> DataFrame:
        frame = self._load_index(versions, schema)
        return self._load_paths(versions, schema) if frame is None else frame

    def _load_index(
        self, versions: Sequence[Version], schema: spark_types.StructType
    ) -> DataFrame | None:
        """Their rows by an index of files; None where Spark can only be given paths."""
        try:
            frame = ondemand.published_frame
        except ImportError:
            return None  # clients of Spark Connect lack Py4J
        size: int | None = None
        if len(versions) <= READ_AHEAD:
            size = sum(file.bytes for at in versions for file in self._files(at))
        # What was known at two times may differ in nothing but one version in the middle.
        numbers = hash(tuple((each.seq, each.created_at) for each in versions))
        schemas = sorted({version.schema_hash for version in versions})
        return frame(
            self._spark,
            PublishedSnapshots(
                data=f"{self._folder.store.uri}{layout.DATA}",
                folders=[version.partition for version in versions],
                files=lambda at: [
                    (file.path.rpartition("/")[2], file.bytes) for file in self._files(versions[at])
                ],
                identity=f"{self._state.seq} {numbers} {len(versions)} {schemas}",
                size=size,
            ),
            SPARK_FORMATS[self._format],
            READ_OPTIONS[self._format],
            self._with_partition(schema),
        )

    def _files(self, version: Version) -> Sequence[FileRecord]:
        files = self._state.records.live(version).files
        refuse_links(self._folder.store, [file.path for file in files])
        return files

    def _load_paths(self, versions: Sequence[Version], schema: spark_types.StructType) -> DataFrame:
        uri = self._folder.store.uri
        paths = [_literal(f"{uri}{file.path}") for each in versions for file in self._files(each)]
        if not paths:
            return self._without_rows(schema)
        return (
            self._spark.read.format(SPARK_FORMATS[self._format])
            .options(**READ_OPTIONS[self._format])
            .option("basePath", f"{uri}{layout.DATA}")
            .schema(self._with_partition(schema))
            .load(paths)
        )

    def _without_rows(self, schema: spark_types.StructType) -> DataFrame:
        # Spark takes no column of a file for granted, so that this one may be NULL as well.
        return self._spark.createDataFrame([], self._with_partition(schema).toNullable())

    def _with_partition(self, schema: spark_types.StructType) -> spark_types.StructType:
        return struct_from(history.with_partition(schema.json(), self._settings))


def _literal(path: str) -> str:
    """A path in which Hadoop finds no glob."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in path)

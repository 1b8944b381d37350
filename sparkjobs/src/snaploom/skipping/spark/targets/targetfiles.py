"""The files of a target as Spark reads them, as they are now.

Those of a local folder are listed without the JVM, where Spark makes several Java objects of each
file, and asks for its tag once more. That listing is exactly Spark's, or absent: anything odd
(links to folders, files beside folders, folders that are no partitions, names that Hadoop refuses
or treats specially) is left to Spark.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from snaploom.errors import IndexNotPossible
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.policy.fileformats import format_of
from snaploom.policy.formatfaults import spark_format
from snaploom.skipping.core.definition import SkippingDefinition, Target, arrow_type
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileFacts
from snaploom.skipping.spark.relations.expressions import Literal, literal
from snaploom.skipping.spark.relations.fingerprint import (
    REQUESTED,
    Header,
    is_unchanged,
    partition_columns,
    unusable,
)
from snaploom.skipping.spark.relations.hadoop import JavaRule, cause_of, url_encoded
from snaploom.sources.files.globs import is_hidden_name
from snaploom.spark.gate import SqlPlace, check_resolved, checked_expression
from snaploom.spark.jvm import jvm_of, qualified_uri, readable_uri
from snaploom.types.arrow import OF_SQL

_PLACE = re.compile(r"file:(?P<folder>(?:/[^/]+)+)")
_PARTITION = re.compile(r"(?P<column>[^=]+)=.+", re.DOTALL)
_ODD = re.compile("[:\n\ud800-\udfff]")
"""Names that Hadoop refuses, that cannot be passed line by line, or that are not text."""
_SPECIAL = ("_metadata", "_common_metadata", "_spark_metadata")
"""Names that Spark hides otherwise than others, and one that makes a folder that of a stream."""


class _InDoubtError(Exception): ...


@dataclass(frozen=True)
class RelationFolder:
    """A folder with files of a relation; a partition if there are partition columns."""

    uri: str
    """Without a final `/`."""
    files: int
    sample: str
    """URI of one file there, of one that is not empty where there is one."""


def relation_files(uri: str) -> tuple[list[RelationFolder], pa.Table] | None:
    """Folders and identities of the files that Spark reads as one relation from `file:/...`.

    None if unsure, else at least one file. Spark reads no empty one, so that none is among them.
    """
    try:
        return _described(_levels(_folder_of(uri)))
    except (OSError, _InDoubtError):
        return None


def first_files(uri: str) -> tuple[str, ...] | None:
    """URIs of each folder's first file by name; None if unsure, or the first is empty.

    Where Spark looks into the first of all files, it is one of these; it finds the same partitions
    in them as in all files.
    """
    try:
        return tuple(_first_file(folder) for folder in _levels(_folder_of(uri)))
    except (OSError, _InDoubtError):
        return None


def _folder_of(uri: str) -> str:
    place = _PLACE.fullmatch(uri)
    if place is None or _ODD.search(place["folder"]) or os.name != "posix":
        raise _InDoubtError
    return place["folder"]


def _first_file(folder: _Folder) -> str:
    if not folder.is_plain:
        raise _InDoubtError
    # Java compares names by their UTF-16 units.
    name = min(folder.files, key=lambda each: each.encode("utf-16-be"))
    if not os.stat(f"{folder.path}/{name}").st_size:
        raise _InDoubtError
    return f"file:{folder.path}/{name}"


@dataclass(frozen=True)
class _Folder:
    path: str
    files: Sequence[str]
    folders: Sequence[str]
    is_plain: bool


def _levels(root: str) -> list[_Folder]:
    """The folders with files: all of them equally deep, each below folders of the same columns.

    Raises `OSError`, or `_InDoubtError` where the folders are not such a tree.
    """
    level = [root]
    while level:
        found = [_folder(path) for path in level]
        with_files = [each for each in found if each.files]
        below = [(each.path, name) for each in found for name in each.folders]
        if with_files and below:
            raise _InDoubtError
        if with_files:
            return with_files
        partitions = [_PARTITION.fullmatch(name) for _, name in below]
        columns = {match["column"] for match in partitions if match is not None}
        if None in partitions or len(columns) > 1:
            raise _InDoubtError
        level = [f"{path}/{name}" for path, name in below]
    raise _InDoubtError


def _folder(path: str) -> _Folder:
    files: list[str] = []
    folders: list[str] = []
    is_plain = True
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(_SPECIAL):
                raise _InDoubtError
            if is_hidden_name(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                files.append(name)
                is_plain = is_plain and entry.is_file(follow_symlinks=False)
    if _ODD.search("/".join([*files, *folders])):
        raise _InDoubtError
    return _Folder(path, sorted(files), sorted(folders), is_plain)


def _described(folders: Iterable[_Folder]) -> tuple[list[RelationFolder], pa.Table]:
    """The files of some folders, without empty ones.

    Raises `OSError`, or `_InDoubtError` for anything but files or where all files are empty.
    """
    facts, described = FileFacts(), []
    paths: list[str] = []
    for folder in folders:
        before = len(paths)
        empty = _look(folder, paths, facts)
        count = len(paths) - before
        if count or empty:
            sample = paths[before] if count else empty
            described.append(RelationFolder(f"file:{folder.path}", count, sample))
    if not paths:
        raise _InDoubtError
    return described, _identities((paths, facts.lengths, facts.modified, facts.tags))


def _look(folder: _Folder, paths: list[str], facts: FileFacts) -> str:
    empty = ""
    prefix = f"file:{folder.path}/"
    opened = os.open(folder.path, os.O_RDONLY)
    try:
        for name in folder.files:
            try:
                status = os.stat(name, dir_fd=opened)
            except FileNotFoundError:
                continue  # a link to nothing, or gone meanwhile
            if not stat.S_ISREG(status.st_mode):
                raise _InDoubtError
            if not status.st_size:
                empty = prefix + name
                continue
            paths.append(prefix + name)
            facts.add(status)
    finally:
        os.close(opened)
    return empty


# Reader of a target: in the user's session to know it, in one of our own to build.

_STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Content of a file, wholly known or unreadable; never a part of it."""

LITERAL_PATH = {"__globPaths__": "false"}
"""The path is one path, whatever brackets and stars are in it."""

_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Settings of our own session; a batch of 64 Ki rows costs little and is handled quickly."""
_SOURCES = "spark.sql.sources.useV1SourceList"
"""Only Spark's first generation of sources exposes the file of a row for every format."""


def own_session(spark: SparkSession) -> SparkSession:
    """A session with the settings, views and functions of the user's, which it does not change.

    It has none of the user's optimizer rules: ours would skip files that are to be indexed.
    """
    java_session = spark._jsparkSession.cloneSession()
    nothing = java_session.experimental().extraOptimizations().take(0)
    getattr(java_session.experimental(), "extraOptimizations_$eq")(nothing)
    session = SparkSession(spark.sparkContext, java_session)
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    session.conf.unset(_SOURCES)
    return session


def fresh_frame(session: SparkSession, target: Target, schema: Mapping[str, object]) -> DataFrame:
    """The files of a target as they are now, by the schema (JSON) found when it was opened."""
    if target.table:
        _forget_listing(session, target.table)
        return session.read.options(**_STRICT).table(target.table)
    parsed = StructType.fromJson(cast(dict[str, object], json.loads(json.dumps(schema))))
    reader = session.read.format(spark_format(target.format, NO_ALLOWANCES)).schema(parsed)
    options = {**dict(target.options), **_STRICT, **LITERAL_PATH}
    return reader.options(**options).load(target.uri)


def _forget_listing(session: SparkSession, table: str) -> None:
    jvm = jvm_of(session)
    state = session._jsparkSession.sessionState()
    parts = state.sqlParser().parseMultipartIdentifier(table)
    places = [parts.apply(position) for position in range(parts.size())]
    outer = [jvm.scala.Option.apply(place) for place in reversed(places[:-1])]
    missing = [jvm.scala.Option.empty()] * (2 - len(outer))
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(places[-1], *outer, *missing)
    state.catalog().refreshTable(identifier)


# Current files of a relation, and those that an index covers (rule S23).


@dataclass(frozen=True)
class ListedFiles:
    """One listing."""

    files: pa.Table
    """Identity columns of `snaploom.skipping.core.filetable`, and nothing else."""
    runs: Sequence[tuple[int, tuple[Literal, ...]]]
    """Values of the partition columns, with how many files after each other have them."""

    @cached_property
    def partitions(self) -> Mapping[str, tuple[Literal, ...]]:
        """Values of the partition columns by path."""
        values = chain.from_iterable(repeat(row, count) for count, row in self.runs)
        return dict(zip(self.files.column("path").to_pylist(), values, strict=True))


# Files of a folder known from names and session, without opening any.


@dataclass(frozen=True)
class FolderListing:
    """Behind the port `FileListing`."""

    spark: SparkSession
    target: Target
    header: Header
    """Format and options of reading; without columns but those of partitions."""
    listed: ListedFiles

    def reads_alike(self, definition: SkippingDefinition) -> bool:
        return (
            definition.target == self.target
            and definition.partition_columns == partition_columns(self.header)
            and is_unchanged(definition.fingerprint, self.header)
        )

    def list_files(self, where: str) -> pa.Table:
        session = own_session(self.spark)
        return only_chosen(session, where, partition_columns(self.header), self.listed)


def file_listing_of(
    spark: SparkSession, path: str, uri: str, file_format: str, options: Mapping[str, str]
) -> FolderListing | None:
    """Listing of a folder; None where Spark needs no look into files or reports the problem."""
    if not format_of(file_format).is_inferred:
        return None
    try:
        found = _listed(spark, path, uri, file_format, options)
    except (PySparkException, Py4JJavaError):
        return None
    if found is None:
        return None
    header, listed = found
    if unusable(header):
        return None
    target = Target(
        uri=cast(Sequence[str], header["roots"])[0].rstrip("/"),
        format=str(header["format"]),
        options=tuple(sorted(options.items())),
    )
    return FolderListing(spark, target, header, listed)


def _listed(
    spark: SparkSession, path: str, uri: str, file_format: str, options: Mapping[str, str]
) -> tuple[Header, ListedFiles] | None:
    """Folder listed without Spark, or by Spark; None where a path stands for several."""
    if not PATTERN.search(path):
        found = list_folder(spark, uri, file_format, options)
        if found is not None:
            return found
    reader = spark.read.format(file_format).options(**options).schema(StructType([]))
    rule = JavaRule(spark)
    frame = reader.load(readable_uri(spark, path))
    headers = rule.describe(frame._jdf, REQUESTED)
    if len(headers) != 1:
        return None
    header = cast(Header, json.loads(headers[0]))
    if len(cast(Sequence[str], header["roots"])) != 1:
        return None
    return header, list_relation(rule, frame, partition_columns(header))


def list_relation(
    rule: JavaRule, frame: DataFrame, partition_columns: Sequence[tuple[str, str]]
) -> ListedFiles:
    """Files of the one relation that a frame reads, at the time at which the frame was made.

    A path with a line break cannot be passed and is left out: such a file stays unknown.
    """
    header, lengths, modified, *paths = rule.listing(frame._jdf).split("\n")
    facts = cast(Mapping[str, Sequence[object]], json.loads(header))
    etags = facts.get("etags", [None] * len(paths))
    values = _literals(facts["partitions"], partition_columns)
    rows = zip(paths, _numbers(lengths), _numbers(modified), etags, values, strict=True)
    known = [row for row in rows if row[0]]
    columns = list(zip(*known, strict=True)) or [() for _ in (*IDENTITY_FIELDS, values)]
    return ListedFiles(_identities(columns[:-1]), [(1, row) for row in columns[-1]])


def list_folder(
    spark: SparkSession, uri: str, file_format: str, options: Mapping[str, str]
) -> tuple[Header, ListedFiles] | None:
    """Files that Spark reads as one relation from a folder; None where Spark has to list.

    Spark sees one file of each folder below it, from which it takes the partition columns and their
    values as from all files. The header has no other columns.
    """
    if not format_of(file_format).is_inferred or not _is_listed_plainly(spark, options):
        return None
    found = relation_files(uri)
    if found is None:
        return None
    folders, files = found
    frame = _reader(spark, len(folders)).format(file_format).options(
        **{**options, _BASE_PATH: uri, **LITERAL_PATH}
    ).schema(StructType([])).load([folder.sample for folder in folders])  # fmt: skip
    lines = JavaRule(spark).listing(frame._jdf, REQUESTED).split("\n")
    header = {**cast(Header, json.loads(lines[0])), "roots": [uri]}
    values = dict(
        zip(lines[3:], _literals(header["partitions"], partition_columns(header)), strict=True)
    )
    runs = [(folder.files, values[folder.sample]) for folder in folders if folder.files]
    return header, ListedFiles(files, runs)


def columns_frame(
    spark: SparkSession, path: str, file_format: str, options: Mapping[str, str]
) -> tuple[DataFrame, str] | None:
    """A relation with the columns of a folder's, over one file of each folder below it.

    Returns:
        The frame and the folder's URI, as Hadoop spells it; None where Spark may take the columns
        from other files than the first one, or has to list them.
    """
    is_merged = any(name.lower() == _MERGE for name in options)
    # Of Parquet Spark looks into the first file by name only, unless it merges schemas.
    if not format_of(file_format).has_footers or is_merged or PATTERN.search(path):
        return None
    if str(spark.conf.get(_MERGES)).lower() != "false" or not _is_listed_plainly(spark, options):
        return None
    uri = qualified_uri(spark, path)
    found = first_files(uri)
    if found is None:
        return None
    reader = _reader(spark, len(found)).format(file_format)
    given = {**options, _BASE_PATH: uri, **LITERAL_PATH}
    return reader.options(**given).load(list(found)), uri


def _is_listed_plainly(spark: SparkSession, options: Mapping[str, str]) -> bool:
    """Whether neither options nor Hadoop's settings choose among the files of a folder."""
    if any(name.lower() in _CHOOSING or "." in name for name in options):
        return False
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    return hadoop.get(_FILTER) is None and hadoop.get(_LOCAL_SYSTEM) in (None, _PLAIN_SYSTEM)


_BASE_PATH = "basePath"
_MERGE = "mergeschema"
_MERGES = "spark.sql.parquet.mergeSchema"
PATTERN = re.compile(r"[{}\[\]*?\\]")
"""Characters that Hadoop reads as a pattern."""
_CHOOSING = frozenset({
    "basepath", "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter",
    "ignoreinvalidpartitionpaths", "path", "paths",
})  # fmt: skip
"""Options, in lower case, that choose which files are read, or what is a partition."""
_FILTER = "mapreduce.input.pathFilter.class"
_LOCAL_SYSTEM = "fs.file.impl"
_PLAIN_SYSTEM = "org.apache.hadoop.fs.LocalFileSystem"

_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def _reader(spark: SparkSession, paths: int) -> DataFrameReader:
    if paths <= int(spark.conf.get(_THRESHOLD) or 0):
        return spark.read
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    session.conf.set(_THRESHOLD, str(paths))
    return session.read


def _identities(columns: Sequence[Sequence[object] | pa.Array]) -> pa.Table:
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values, kind)
        for values, (_, kind) in zip(columns, IDENTITY_FIELDS, strict=True)
    ]
    return pa.table(arrays, pa.schema(list(IDENTITY_FIELDS)))


def _literals(
    values: object, partition_columns: Sequence[tuple[str, str]]
) -> list[tuple[Literal, ...]]:
    types = [data_type for _, data_type in partition_columns]
    return [
        tuple(literal(value, kind) for value, kind in zip(row, types, strict=True))
        for row in cast(Sequence[Sequence[object]], values)
    ]


def _numbers(joined: str) -> list[int]:
    return [int(number) for number in joined.split(",")] if joined else []


_HINT = "speak of partition columns and of _metadata.file_path only"

_SPARK_TYPES = {name: OF_SQL[name] for name in ("date", "timestamp", "timestamp_ntz")}
"""Arrow types that Spark takes, where they are not those in which values are kept."""


def only_chosen(
    session: SparkSession,
    where: str,
    partition_columns: Sequence[tuple[str, str]],
    listed: ListedFiles,
) -> pa.Table:
    """Identity columns of the listed files that a condition chooses; all of them without one."""
    if not where:
        return listed.files
    chosen = choose_files(session, where, partition_columns, listed.partitions)
    kept = [path in chosen for path in listed.files.column("path").to_pylist()]
    return listed.files.filter(pa.array(kept, pa.bool_()))


def choose_files(
    session: SparkSession,
    where: str,
    partition_columns: Sequence[tuple[str, str]],
    partitions: Mapping[str, tuple[Literal, ...]],
) -> frozenset[str]:
    """Paths of the files for which a condition over partition columns and paths is TRUE."""
    paths = list(partitions)
    columns = {
        f"p{place}": _column(place, kind, partitions)
        for place, (_, kind) in enumerate(partition_columns)
    }
    table = pa.table(
        {
            **columns,
            "path": pa.array(paths, pa.string()),
            "encoded": [url_encoded(p) for p in paths],
        },
        schema=pa.schema(
            [(name, column.type) for name, column in columns.items()]
            + [("path", pa.string()), ("encoded", pa.string())]
        ),
    )
    given = _frame(session, table)
    named = [given[f"p{place}"].alias(name) for place, (name, _) in enumerate(partition_columns)]
    metadata = sql.struct(given["encoded"].alias("file_path")).alias("_metadata")
    path = "`the path`"
    place = SqlPlace(None, None, IndexNotPossible, "a condition on partition columns and the path")
    condition = checked_expression(session, where, place).column
    try:
        listed = given.select(*named, metadata, given["path"].alias("the path"))
        frame = listed.where(condition)
        check_resolved(frame, [listed], place)
        plan = frame._jdf.queryExecution().analyzed()
        if not plan.deterministic() or not plan.subqueriesAll().isEmpty():
            raise IndexNotPossible(
                "WHERE of an index must be decided by only the file",
                found=where,
                expected="no subquery, and nothing random",
                hint=_HINT,
            )
        return frozenset(row[0] for row in frame.select(path).collect())
    except PySparkException as error:
        raise IndexNotPossible(
            "WHERE of an index chooses files",
            found=f"{where}: {cause_of(error)}",
            expected="a condition on "
            + ", ".join([name for name, _ in partition_columns] + ["_metadata.file_path"]),
            hint=_HINT,
        ) from error


def _frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """A frame of a session of our own, which must not become the active one.

    PySpark makes it so; the user's queries would then be planned with our session's settings, and
    read every file, for it has none of the user's optimizer rules.
    """
    jvm = jvm_of(session)
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    in_python, in_java = SparkSession._activeSession, sessions.getActiveSession()
    try:
        return session.createDataFrame(table)
    finally:
        SparkSession._activeSession = in_python
        if in_java.isDefined():
            sessions.setActiveSession(in_java.get())
        else:
            sessions.clearActiveSession()


def _column(place: int, data_type: str, partitions: Mapping[str, tuple[Literal, ...]]) -> pa.Array:
    values = [row[place].value for row in partitions.values()]
    if data_type == "string":
        texts = [
            value.decode("utf-8", "replace") if isinstance(value, bytes) else None
            for value in values
        ]
        return pa.array(texts, pa.string())
    kept = pa.array(values, arrow_type(data_type) or pa.null())
    kind = _SPARK_TYPES.get(data_type)
    return kept if kind is None else kept.view(kind)

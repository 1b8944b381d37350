"""The files of one source as Spark reads them, with the values that their paths give.

A snapshot is one read of exactly its files, so that Spark infers one schema for all of them. What
`sourceUriPrefix` captures becomes columns after those of the data: constants where all files of
the read agree, otherwise looked up by the file that each row comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.engine.datatypes import struct_of
from snaploom.engine.failures import translate
from snaploom.engine.fields import fold_case, quote
from snaploom.engine.formats import SOURCE_OPTIONS
from snaploom.engine.schemadocument import schema_of
from snaploom.engine.sources.files import escape_glob, list_files
from snaploom.engine.sources.instants import instant_of_date_time
from snaploom.engine.sources.publishedfolder import only_live
from snaploom.engine.sources.schemas import check_schema
from snaploom.errors import (
    SnapshotValueInvalid,
    SourceFileUnmatched,
    SourceNotReadable,
    SourceSchemaInvalid,
)
from snaploom.hadoop.files import ListedFile
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import HdfsLike
from snaploom.models.times import NANOS_PER_MICROSECOND
from snaploom.planning.fileformats import require_format, source_place
from snaploom.planning.prefix import (
    Capture,
    CapturedValue,
    CapturedValueInvalid,
    CaptureType,
    UriPrefix,
    normal_uri,
)

SHOWN = 20
"""Files that one message names; with more, the rest is only counted."""
NEVER_EMPTY = frozenset(["parquet", "avro"])
"""Formats of which a file of zero bytes is no file. (Hive writes ORC files of zero bytes.)"""

NAMES_IN_RECORDS = frozenset(["json", "xml"])
"""Formats of which every record names its fields, and which Spark reads with regard to case."""

MERGED_BY_SPARK = frozenset(["parquet", "orc"])
"""Formats of which Spark takes one file's schema for all, unless it is told to look into each."""

_COLUMN_TYPES: Mapping[CaptureType, spark_types.DataType] = {
    CaptureType.STRING: spark_types.StringType(),
    CaptureType.INTEGER: spark_types.IntegerType(),
    CaptureType.LONG: spark_types.LongType(),
    CaptureType.ISO8601_DATE_TIME: spark_types.TimestampType(),
}
_FILE_OF_ROW = "__snaploom_file"
_LOOKUP_KEY = "__snaploom_key"


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file with the values that its path gives."""

    file: ListedFile
    values: Mapping[str, CapturedValue]


@dataclass(frozen=True)
class FileSet:
    """The files of one `hdfsLike` source; listed once, when they are first asked for."""

    spark: SparkSession
    resource: str
    """`Kind/name` of the source."""
    declared: HdfsLike
    allow: Allowances = NO_ALLOWANCES
    """What declarations may use beyond the built-in lists."""

    @cached_property
    def prefix(self) -> UriPrefix | None:
        """The parsed `sourceUriPrefix`; validation has proved that it parses."""
        text = self.declared.source_uri_prefix
        return None if text is None else UriPrefix.parse(text)

    @cached_property
    def files(self) -> tuple[CapturedFile, ...]:
        """Every file that the source has, by URI.

        Raises:
            SourceNotReadable: listing fails, or a file is empty where its format has no such files.
            SourceFileUnmatched: a file does not begin with `sourceUriPrefix`.
            SnapshotValueInvalid: a captured value is NULL or not of its type.
        """
        listed = list_files(self.spark, self.declared.source_uri_globs, self.resource)
        files = only_live(self.spark, listed)
        self._refuse_empty(files)
        if self.prefix is None:
            return tuple(CapturedFile(file, {}) for file in files)
        return self._captured(self.prefix, files)

    def read(
        self, files: Sequence[CapturedFile], schema: spark_types.StructType | None = None
    ) -> DataFrame:
        """One frame over some of the files: the data's columns, then the captured ones.

        Args:
            files: at least one.
            schema: of the data; None to infer it from one of these files, unless it is declared.

        Raises:
            SourceNotReadable: Spark cannot read them.
            SourceSchemaInvalid: columns clash, or have no type.
        """
        return self.with_captures(self.data(files, schema), files)

    def with_captures(self, frame: DataFrame, files: Sequence[CapturedFile]) -> DataFrame:
        """The columns of the data, then the captured ones.

        Args:
            frame: from `data`.
            files: its files.

        Raises:
            SourceSchemaInvalid: columns clash.
        """
        if self.prefix is None:
            return frame
        self._refuse_clashes(frame.schema, self.prefix)
        captures = self.prefix.captures
        return self._with_captures(frame, captures, files) if captures else frame

    def data(
        self, files: Sequence[CapturedFile], schema: spark_types.StructType | None = None
    ) -> DataFrame:
        """One frame over some of the files, with the columns of the data only.

        Args:
            files: at least one.
            schema: of the data; None to infer it from these files, unless it is declared.

        Raises:
            SourceNotReadable: Spark cannot read them.
            SourceSchemaInvalid: columns clash, or have no type.
        """
        frame = self._load([file.file.uri for file in files], schema)
        check_schema(frame.schema, self.resource, "spec.hdfsLike")
        return frame

    def _captured(self, prefix: UriPrefix, files: Sequence[ListedFile]) -> tuple[CapturedFile, ...]:
        captured: list[CapturedFile] = []
        unmatched: list[str] = []
        invalid: list[str] = []
        # A prefix that ends with a folder captures the same of all files in one: it is matched once
        # for them, and a million files do not have a million mappings.
        by_folder: dict[str, Mapping[str, CapturedValue]] = {}
        for file in files:
            folder = file.uri.rpartition("/")[0] if prefix.text.endswith("/") else file.uri
            values = by_folder.get(folder)
            if values is None:
                try:
                    values = prefix.match(file.uri)
                except CapturedValueInvalid as error:
                    invalid.append(f"{file.uri}: {error}")
                    continue
            if values is None:
                unmatched.append(file.uri)
            else:
                by_folder[folder] = values
                captured.append(CapturedFile(file, values))
        if unmatched:
            raise SourceFileUnmatched(
                f"{len(unmatched)} of {len(files)} files do not begin with the prefix",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriPrefix",
                found=shown(unmatched),
                expected=prefix.text,
                hint="make sourceUriGlobs match fewer files, or the prefix more",
            )
        if invalid:
            raise SnapshotValueInvalid(
                f"{len(invalid)} of {len(files)} files have a path with a value that cannot be "
                "read",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriPrefix",
                found=shown(invalid),
                expected=prefix.text,
                hint="rename the folders, or make sourceUriGlobs leave them out",
            )
        return tuple(captured)

    def _refuse_empty(self, files: Sequence[ListedFile]) -> None:
        if self.declared.format.lower() not in NEVER_EMPTY:
            return
        empty = [file.uri for file in files if file.length == 0]
        if empty:
            raise SourceNotReadable(
                f"{len(empty)} of {len(files)} files have zero bytes, which is not "
                f"{self.declared.format}: they were cut short",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriGlobs",
                found=shown(empty),
                expected=f"whole {self.declared.format} files",
                hint="write them again, or remove them",
            )

    def _load(self, uris: Sequence[str], schema: spark_types.StructType | None) -> DataFrame:
        paths = [escape_glob(uri) for uri in uris]
        try:
            schema = schema or self._schema(uris)
            reader = self._reader(self.spark)
            frame = (reader if schema is None else reader.schema(schema)).load(paths)
            names = schema_of(frame, self.resource, "spec.hdfsLike").names
        except (PySparkException, Py4JError) as error:
            raise translate(error, resource=self.resource, path="spec.hdfsLike") from error
        if names == ["_corrupt_record"] and self.declared.schema_fields is None:
            raise SourceNotReadable(
                f"no record of these files is {self.declared.format}",
                resource=self.resource,
                path="spec.hdfsLike.format",
                found=shown(uris),
                hint="correct format or formatOptions, or declare schemaFields",
            )
        return frame

    def merged_by_spark(self, files: Sequence[CapturedFile]) -> spark_types.StructType:
        """One schema of files that need not agree, of a format in `MERGED_BY_SPARK`.

        Raises:
            SourceNotReadable: Spark cannot read them, or the types of a column differ.
        """
        paths = [escape_glob(file.file.uri) for file in files]
        reader = self._reader(self.spark).option("mergeSchema", "true")
        try:
            return schema_of(reader.load(paths), self.resource, "spec.hdfsLike")
        except (PySparkException, Py4JError) as error:
            raise translate(error, resource=self.resource, path="spec.hdfsLike") from error

    def _reader(self, spark: SparkSession) -> DataFrameReader:
        data_format, options = self.declared.format, dict(self.declared.format_options)
        place = source_place(self.resource)
        reader = spark.read.format(require_format(data_format, options, self.allow, place))
        # Spark's reader takes names of options in any case, and the last one holds.
        strict = reader.options(**SOURCE_OPTIONS.get(data_format.lower(), {}))
        return strict.options(**options)

    def _schema(self, uris: Sequence[str]) -> spark_types.StructType | None:
        """The schema to read with; None to leave it to the format.

        Ignoring case, Spark infers one column from `id` in one record and `ID` in another, and then
        reads only one of the two: the rest is NULL. So names are inferred as they are, and refused
        where they clash.
        """
        if self.declared.schema_fields is not None:
            return struct_of(self.declared.schema_fields)
        if self.declared.format.lower() not in NAMES_IN_RECORDS:
            return None
        reader = self._reader(_case_sensitive(self.spark))
        try:
            inferred = reader.load([escape_glob(uri) for uri in uris])
            schema = schema_of(inferred, self.resource, "spec.hdfsLike")
        except (PySparkException, Py4JError) as error:
            failure = translate(error, resource=self.resource, path="spec.hdfsLike")
            told = failure.found or ""
            # While it infers a schema, Spark often does not say which file it could not read.
            if not any(uri.rpartition("/")[2] in told for uri in uris):
                failure.found = f"{told}{', ' * bool(told)}in one of\n            {shown(uris)}"
            raise failure from error
        check_schema(schema, self.resource, "spec.hdfsLike")
        return schema

    def _refuse_clashes(self, schema: spark_types.StructType, prefix: UriPrefix) -> None:
        columns = {fold_case(name): name for name in schema.names}
        clashes = [name for name in prefix.names if fold_case(name) in columns]
        if clashes:
            raise SourceSchemaInvalid(
                "sourceUriPrefix captures a name that the data has as a column",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriPrefix",
                found=", ".join(
                    f"{name} and column {columns[fold_case(name)]}" for name in clashes
                ),
                expected="names that the data does not have, ignoring case",
                hint="rename the capture",
            )

    def _with_captures(
        self, frame: DataFrame, captures: Sequence[Capture], files: Sequence[CapturedFile]
    ) -> DataFrame:
        rows = {file.file.uri: self._row(captures, file) for file in files}
        data = [sf.col(quote(name)) for name in frame.schema.names]
        if len(set(rows.values())) == 1:
            row = next(iter(rows.values()))
            constants = [
                _constant(value, capture) for value, capture in zip(row, captures, strict=True)
            ]
            return frame.select(*data, *constants)
        return self._looked_up(frame, data, captures, rows)

    def _looked_up(
        self,
        frame: DataFrame,
        data: Sequence[Column],
        captures: Sequence[Capture],
        rows: Mapping[str, tuple[CapturedValue, ...]],
    ) -> DataFrame:
        """Join each row with the captures of its file; a file that is not known fails loudly."""
        table = [(url, *rows[uri]) for url, uri in urls_of(frame, rows).items()]
        stored = [spark_types.StructField(_LOOKUP_KEY, spark_types.StringType(), nullable=False)]
        stored += [
            spark_types.StructField(c.name, _stored_type(c), nullable=False) for c in captures
        ]
        lookup = self.spark.createDataFrame(table, spark_types.StructType(stored))
        placed = frame.select(*data, file_of_row(frame).alias(_FILE_OF_ROW)).join(
            sf.broadcast(lookup), sf.col(_FILE_OF_ROW) == sf.col(_LOOKUP_KEY), "left"
        )
        unknown = sf.raise_error(sf.concat(sf.lit("no captures for "), sf.col(_FILE_OF_ROW)))
        columns = [
            sf.when(sf.col(_LOOKUP_KEY).isNull(), unknown.cast(_COLUMN_TYPES[c.type]))
            .otherwise(_typed(sf.col(quote(c.name)), c))
            .alias(c.name)
            for c in captures
        ]
        return placed.select(*data, *columns)

    def _row(self, captures: Sequence[Capture], file: CapturedFile) -> tuple[CapturedValue, ...]:
        return tuple(self._stored(c, file.values[c.name]) for c in captures)

    def _stored(self, capture: Capture, value: CapturedValue) -> CapturedValue:
        """A captured time as microseconds, as Spark's timestamps are; everything else as it is."""
        if capture.type is not CaptureType.ISO8601_DATE_TIME:
            return value
        settings = self.declared.snapshot.from_field_value
        zone = "UTC" if settings is None else settings.default_timezone
        return instant_of_date_time(str(value), zone) // NANOS_PER_MICROSECOND


def file_of_row(frame: DataFrame) -> Column:
    """The file that each row comes from, as `urls_of` names it."""
    path = frame.metadataColumn("_metadata").getField("file_path")
    return sf.regexp_replace(path, "^file:/+", "file:/")


def urls_of(frame: DataFrame, uris: Iterable[str]) -> Mapping[str, str]:
    """The URI of each file that a frame reads, by the name that Spark has for it.

    Args:
        frame: as it was loaded.
        uris: of its files.
    """
    by_uri = {normal_uri(uri): uri for uri in uris}
    return {_comparable(url): by_uri[normal_uri(unquote(url))] for url in frame.inputFiles()}


def _case_sensitive(session: SparkSession) -> SparkSession:
    """A session like another one that tells `id` from `ID`; the other is left as it is."""
    strict = session.newSession()
    for key, value in session.conf.getAll.items():
        if strict.conf.isModifiable(key):
            strict.conf.set(key, value)
    strict.conf.set("spark.sql.caseSensitive", "true")
    return strict


def shown(items: Sequence[str]) -> str:
    """The first items, one a line, and how many more there are."""
    more = [f"… and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return "\n            ".join([*items[:SHOWN], *more])


def _constant(value: CapturedValue, capture: Capture) -> Column:
    return _typed(sf.lit(value).cast(_stored_type(capture)), capture).alias(capture.name)


def _typed(stored: Column, capture: Capture) -> Column:
    if capture.type is CaptureType.ISO8601_DATE_TIME:
        return sf.timestamp_micros(stored)
    return stored


def _stored_type(capture: Capture) -> spark_types.DataType:
    if capture.type is CaptureType.ISO8601_DATE_TIME:
        return spark_types.LongType()
    return _COLUMN_TYPES[capture.type]


def _comparable(url: str) -> str:
    """A file's URL with local ones in one form; Spark prints `file:/` here and `file:///` there."""
    return re.sub("^file:/+", "file:/", url)

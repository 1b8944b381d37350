"""The files of one source as Spark reads them, with the values that their paths give."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from urllib.parse import unquote
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.errors import SnaploomError, SourceNotReadable, SourceSchemaInvalid
from snaploom.files.listed import ListedFile
from snaploom.files.typedfiles import CONTENT, PATH
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import NANOS_PER_MICROSECOND
from snaploom.models.datasource import HdfsLike
from snaploom.policy.fileformats import FileFormat, format_of
from snaploom.policy.formatfaults import require_format, source_place
from snaploom.sources.files.checks import (
    FileChecks,
    TimesInNanoseconds,
    TypedFiles,
    choose_scan,
)
from snaploom.sources.files.csv import default_options
from snaploom.sources.files.csvfiles import CsvFiles, column_remarks
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.hadoop import opened_file
from snaploom.sources.files.records import first_keys
from snaploom.sources.files.snapshots import CapturedFile, FileListing, columns_of, shown
from snaploom.sources.files.values import Records, ValueChecks, cut
from snaploom.sources.prefix import (
    Capture,
    CapturedValue,
    CaptureType,
    UriPrefix,
    instant_of_date_time,
    normal_uri,
)
from snaploom.sources.transformers import check_schema
from snaploom.spark.failures import translate
from snaploom.spark.jvm import chosen_python, session_with
from snaploom.spark.types import as_nullable, fold_case, schema_of, struct_of, typed_nulls
from snaploom.types.schemas import quote

# Columns captured by `sourceUriPrefix`.

Captured = Mapping[str, CapturedValue]
"""Values from the path of one file, by name of the capture."""

_TYPES: Mapping[CaptureType, spark_types.DataType] = {
    CaptureType.STRING: spark_types.StringType(),
    CaptureType.INTEGER: spark_types.IntegerType(),
    CaptureType.LONG: spark_types.LongType(),
    CaptureType.ISO8601_DATE_TIME: spark_types.TimestampType(),
}
_FILE_OF_ROW = "__snaploom_file"
_LOOKUP_KEY = "__snaploom_key"
_RECORD = "__snaploom_record"
_TEXT = spark_types.StringType()


@dataclass(frozen=True)
class CapturedColumns:
    """The columns of one prefix."""

    spark: SparkSession
    captures: Sequence[Capture]
    """At least one."""
    zone: str
    """Of captured times that name none."""

    def constant(self, frame: DataFrame, files: Iterable[Captured]) -> DataFrame | None:
        """The columns of a frame, then the captured ones; None where files do not agree."""
        rows = {self._row(values) for values in files}
        if len(rows) > 1:
            return None
        pairs = zip(next(iter(rows)), self.captures, strict=True)
        return frame.select(
            *_data(frame),
            *(
                _typed(sf.lit(value).cast(_stored_type(one)), one).alias(one.name)
                for value, one in pairs
            ),
        )

    def looked_up(
        self, frame: DataFrame, file_of_row: Column, by_url: Mapping[str, Captured]
    ) -> DataFrame:
        """The columns of a frame, then the captured ones of the file that each row is from.

        A row of a file that is not known fails the read. `file_of_row` is the URL of the file of
        each row.
        """
        data = _data(frame)
        table = [(url, *self._row(values)) for url, values in by_url.items()]
        stored = [spark_types.StructField(_LOOKUP_KEY, spark_types.StringType(), nullable=False)]
        stored += [
            spark_types.StructField(c.name, _stored_type(c), nullable=False) for c in self.captures
        ]
        lookup = self.spark.createDataFrame(table, spark_types.StructType(stored))
        placed = frame.select(*data, file_of_row.alias(_FILE_OF_ROW)).join(
            sf.broadcast(lookup), sf.col(_FILE_OF_ROW) == sf.col(_LOOKUP_KEY), "left"
        )
        unknown = sf.raise_error(sf.concat(sf.lit("no captures for "), sf.col(_FILE_OF_ROW)))
        columns = [
            sf.when(sf.col(_LOOKUP_KEY).isNull(), unknown.cast(_TYPES[c.type]))
            .otherwise(_typed(sf.col(quote(c.name)), c))
            .alias(c.name)
            for c in self.captures
        ]
        return placed.select(*data, *columns)

    def _row(self, values: Captured) -> tuple[CapturedValue, ...]:
        return tuple(self._stored(capture, values[capture.name]) for capture in self.captures)

    def _stored(self, capture: Capture, value: CapturedValue) -> CapturedValue:
        """A captured time as microseconds, as Spark's timestamps are; everything else as it is."""
        if capture.type is not CaptureType.ISO8601_DATE_TIME:
            return value
        return instant_of_date_time(str(value), self.zone) // NANOS_PER_MICROSECOND


def _data(frame: DataFrame) -> list[Column]:
    return [sf.col(quote(name)) for name in frame.schema.names if name != _FILE_OF_ROW]


def _typed(stored: Column, capture: Capture) -> Column:
    if capture.type is CaptureType.ISO8601_DATE_TIME:
        return sf.timestamp_micros(stored)
    return stored


def _stored_type(capture: Capture) -> spark_types.DataType:
    if capture.type is CaptureType.ISO8601_DATE_TIME:
        return spark_types.LongType()
    return _TYPES[capture.type]


# The files of one source as Spark reads them, with the values that their paths give.

MARK = "fs.snaploom.listing"
"""An option that no format reads. Spark takes two frames over the same paths for one, and gives the
rows that it keeps of the first even after the files have changed."""

_SCHEMA_OPTIONS = frozenset(["avroschema", "mergeschema"])
"""Options by which a reader takes another schema than that of each file."""


@dataclass(frozen=True)
class FileSet:
    """The files of one `hdfsLike` source, and how Spark reads them."""

    spark: SparkSession
    listing: FileListing
    allow: Allowances = NO_ALLOWANCES
    """Entries that declarations may use beyond the built-in lists."""
    mark: str = field(default_factory=lambda: uuid4().hex)
    """Distinguishes its frames from those of an earlier listing."""
    _remarked: set[str] = field(default_factory=set, compare=False)

    @property
    def resource(self) -> str:
        return self.listing.resource

    @property
    def declared(self) -> HdfsLike:
        return self.listing.declared

    @property
    def prefix(self) -> UriPrefix | None:
        return self.listing.prefix

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        """Every file that the source has, by URI; listed once."""
        return self.listing.files

    def read(
        self, files: Sequence[CapturedFile], schema: spark_types.StructType | None = None
    ) -> DataFrame:
        """One frame over some of the files: the data's columns, then the captured ones.

        Without a schema it is inferred from one of these files, unless it is declared.

        Raises:
            SourceSchemaInvalid: columns clash, or have no type.
        """
        is_placed = self.prefix is not None and bool(self.prefix.captures) and len(files) > 1
        return self.with_captures(self.data(files, schema, is_placed=is_placed), files)

    def with_captures(self, frame: DataFrame, files: Sequence[CapturedFile]) -> DataFrame:
        """The columns of the data, then the captured ones.

        The frame comes from `data`.

        Raises:
            SourceSchemaInvalid: columns clash.
        """
        if self.prefix is None:
            return _without_file(frame)
        self._refuse_clashes(frame.schema, self.prefix)
        if not self.prefix.captures:
            return _without_file(frame)
        settings = self.declared.snapshot.from_field_value
        zone = "UTC" if settings is None else settings.default_timezone
        captured = CapturedColumns(self.spark, self.prefix.captures, zone)
        values = {file.file.uri: file.values for file in files}
        constant = captured.constant(frame, values.values())
        if constant is not None:
            return constant
        by_url = {url: values[uri] for url, uri in urls_of(frame, values).items()}
        return captured.looked_up(frame, self.file_of_row(frame, values), by_url)

    def data(
        self,
        files: Sequence[CapturedFile],
        schema: spark_types.StructType | None = None,
        *,
        is_placed: bool = False,
    ) -> DataFrame:
        """One frame over some of the files, with the columns of the data only.

        Without a schema it is inferred from these files, unless it is declared. `is_placed` keeps
        the file of each row for `file_of_row` and `with_captures`.

        Raises:
            SourceSchemaInvalid: columns clash, or have no type.
        """
        # Before anything is read: what looks at files gives some of the options to Spark, too.
        self._allowed_format()
        try:
            self._file_checks.check([file.file for file in files])
        except (PySparkException, Py4JError) as error:
            raise translate(error, resource=self.resource, path="spec.hdfsLike") from error
        if self.format.reader:
            if schema is None and self.declared.schema_fields is None:
                schema = self.typed.schema(files[0].file)
            schema = schema or struct_of(self.declared.schema_fields or ())
            return self._typed_rows(files, schema, is_placed=is_placed)
        frame = self._load([file.file for file in files], schema)
        check_schema(frame.schema, self.resource, "spec.hdfsLike")
        choose_scan(self.spark, self.declared, [file.file for file in files], frame.schema)
        return frame

    def remarks(
        self, files: Sequence[CapturedFile], schema: spark_types.StructType
    ) -> Iterator[str]:
        """Remarks about columns that files lack or have too much, each once, for people.

        `schema` is that of the files as they are read, captured columns included.
        """
        captured = () if self.prefix is None else self.prefix.names
        names = [each for each in schema.names if each not in (*captured, self._csv.corrupt)]
        listed, columns = [each.file for each in files], self._file_checks.columns(files)
        are_keys = self.format.has_named_values and not self.format.has_elements
        if self.format.has_headers:
            columns = self._csv.headers([each.uri for each in listed])
        elif self.format.reader:
            columns = self.typed.columns(listed, names)
        elif are_keys and self.declared.schema_fields is not None:
            columns = columns_of(listed, partial(first_keys, partial(opened_file, self.spark)))
        for key, remark in column_remarks(columns, names, len(files), are_keys=are_keys):
            if key not in self._remarked:
                self._remarked.add(key)
                yield remark

    def file_of_row(self, frame: DataFrame, uris: Iterable[str]) -> Column:
        """The file that each row comes from, as `urls_of` names it.

        The frame comes from `data`.
        """
        if _FILE_OF_ROW in frame.schema.names:
            path = sf.col(_FILE_OF_ROW)
        elif self._is_union(list(uris)):
            path = sf.input_file_name()  # Spark knows no metadata column of a union.
        else:
            path = frame.metadataColumn("_metadata").getField("file_path")
        return sf.regexp_replace(path, "^file:/+", "file:/")

    def _is_union(self, uris: Sequence[str]) -> bool:
        by_name = self.format.has_headers
        forms = self._csv.forms(uris) if by_name else self._times.forms(self._files_at(uris))
        return len(forms) > 1

    def _files_at(self, uris: Sequence[str]) -> Sequence[ListedFile]:
        return [self._by_uri[uri] for uri in uris]

    @cached_property
    def _by_uri(self) -> Mapping[str, ListedFile]:
        return {each.file.uri: each.file for each in self.files}

    def _load(
        self, files: Sequence[ListedFile], schema: spark_types.StructType | None
    ) -> DataFrame:
        uris = [file.uri for file in files]
        try:
            if self.format.has_headers:
                declared = self.declared.schema_fields
                wanted = schema or (None if declared is None else struct_of(declared))
                self._csv.look_at(files, wanted, self._checks.harmless)
            schema = schema or self._schema(uris)
            frame = self._frame(uris, schema)
            found = schema_of(frame, self.resource, "spec.hdfsLike")
        except (PySparkException, Py4JError) as error:
            raise self._failure(error, files) from error
        if found.names == ["_corrupt_record"] and self.declared.schema_fields is None:
            raise SourceNotReadable(
                f"no record of these files is {self.declared.format}",
                resource=self.resource,
                path="spec.hdfsLike.format",
                found=shown(uris),
                hint="correct format or formatOptions, or declare schemaFields",
            )
        self._refuse_no_columns(found, uris)
        try:
            self._check_values(uris, found)
        except (PySparkException, Py4JError) as error:
            raise translate(error, resource=self.resource, path="spec.hdfsLike") from error
        return frame

    def _refuse_no_columns(self, found: spark_types.StructType, uris: Sequence[str]) -> None:
        if not found.names and self.declared.schema_fields is None:
            raise SourceSchemaInvalid(
                "these files have no columns: they are empty",
                resource=self.resource,
                path="spec.hdfsLike.schemaFields",
                found=shown(uris),
                expected="columns in a header or in records, or schemaFields",
                hint="declare schemaFields, so that empty files are no rows of these columns; "
                "or write the files again, or remove them",
            )

    def _typed_rows(
        self, files: Sequence[CapturedFile], schema: spark_types.StructType, *, is_placed: bool
    ) -> DataFrame:
        """Rows of files that a reader of ours opens in Spark's workers."""
        uris = [each.file.uri for each in files]
        known = typed_nulls([f for f in schema.fields if f.name != _FILE_OF_ROW])
        check_schema(known, self.resource, "spec.hdfsLike")
        self._refuse_no_columns(known, uris)
        rows = self.typed.rows([each.file for each in files], known, _FILE_OF_ROW * is_placed)
        frame = self._reader(self.spark).load([escape_glob(uri) for uri in uris])
        columns = [frame.metadataColumn("_metadata").getField("file_path").alias(PATH)]
        if not all(uri.startswith("file:") for uri in uris):
            columns.append(sf.col(CONTENT))
        read = as_nullable(known)
        if is_placed:
            read = read.add(_FILE_OF_ROW, spark_types.StringType())
        with chosen_python(self.spark):
            return frame.select(*columns).mapInArrow(rows, read)

    @cached_property
    def typed(self) -> TypedFiles:
        """The files as a reader of ours opens them."""
        return TypedFiles(self.spark, self.resource, self.format, self.declared.format_options)

    def _check_values(self, uris: Sequence[str], schema: spark_types.StructType) -> None:
        """Refuse values of text that reading would change, of each file once."""
        unknown = [uri for uri in uris if uri not in self._valued]
        texts = self._checks.texts(schema) if unknown else None
        if texts is not None and self.format.has_headers:
            unknown = self._csv.unproved(unknown, schema, self._checks.harmless)
        if texts is not None and unknown:
            frame, records = self._frame(unknown, texts), self._records(unknown)
            self._checks.check(frame, self.file_of_row(frame, unknown), schema, records)
        self._valued.update(uris)

    @cached_property
    def _file_checks(self) -> FileChecks:
        return FileChecks(self.spark, self.resource, self.declared, self._own_schema)

    @cached_property
    def _checks(self) -> ValueChecks:
        return ValueChecks(self.spark, self.resource, self.declared)

    @cached_property
    def _valued(self) -> set[str]:
        return set()

    def unreadable(self, files: Sequence[CapturedFile]) -> SourceNotReadable | None:
        """The error of the first record that does not fit, with its line, column and value.

        None where there is none, or where the format has no records of text.
        """
        if not self.format.has_corrupt_records:
            return None
        uris = [each.file.uri for each in files]
        strict = self.data(files).schema
        frame = self._lax.data(files, strict.add(_RECORD, "string"), is_placed=True)
        path = self._lax.file_of_row(frame, uris).alias(_FILE_OF_ROW)
        row = frame.select(path, "*").where(sf.col(_RECORD).isNotNull()).head()
        if row is None:
            return None
        url, record = row[_FILE_OF_ROW], str(row[_RECORD])
        texts = spark_types.StructType([spark_types.StructField(n, _TEXT) for n in strict.names])
        uri, texts = self._records(uris)(url, texts)
        of_text = self._checks.parsed(sf.lit(record), texts).alias("of")
        parsed = self.spark.range(1).select(of_text).head()
        found = parsed["of"].asDict() if parsed is not None and parsed["of"] is not None else {}
        line = self._checks.line_of(uri, record)
        place = f"{f'line {line} of ' if line else ''}{unquote(url)}"
        bad = (f for f in strict.fields if row[f.name] is None and found.get(f.name) is not None)
        for column in bad:
            text, quoted = str(found[column.name]), json.dumps(str(found[column.name]))
            is_text = not self.format.has_headers and quoted in record  # "1" is no number of JSON
            return self._unfit(place, column, quoted if is_text else text)
        return SourceNotReadable(
            "a record cannot be read",
            resource=self.resource,
            path="spec.hdfsLike.schemaFields",
            found=f"{cut(record)} in {place}",
            expected=f"a record of {len(texts)} columns" * self.format.has_headers or "one record",
            hint="correct the file, or format or formatOptions; formatOptions mode: PERMISSIVE "
            "gives NULL for what does not fit",
        )

    def _unfit(self, place: str, column: spark_types.StructField, text: str) -> SourceNotReadable:
        wanted = str(column.dataType.jsonValue())  # as declarations write it
        null = f"; or, where {cut(text)} is no value in any column, set formatOptions nullValue"
        return SourceNotReadable(
            f"a value of {column.name} is no {wanted}",
            resource=self.resource,
            path="spec.hdfsLike.schemaFields",
            found=f"{cut(text)} in {place}",
            expected=f"values of type {wanted}",
            hint="correct the file; or declare the column as string, and cast it by a "
            f"fieldTransformer, where try_cast gives NULL{null * self.format.has_headers}; "
            "formatOptions mode: PERMISSIVE gives NULL for every value that does not fit",
        )

    @cached_property
    def _lax(self) -> FileSet:
        """The same files, with records that do not fit in a column of their own."""
        own = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD}
        given = {
            name: value
            for name, value in self.declared.format_options.items()
            if name.casefold() not in {each.casefold() for each in own}
        }
        declared = self.declared.model_copy(update={"format_options": {**given, **own}})
        return FileSet(self.spark, replace(self.listing, declared=declared), self.allow)

    def _records(self, uris: Sequence[str]) -> Records:
        """The columns of a file's records, by its URL."""
        by_place = {normal_uri(uri): uri for uri in uris}

        def records(url: str, wanted: spark_types.StructType) -> tuple[str, spark_types.StructType]:
            uri = by_place[normal_uri(unquote(url))]
            return uri, self._csv.record_schema(uri, wanted) if self.format.has_headers else wanted

        return records

    def _frame(self, uris: Sequence[str], schema: spark_types.StructType | None) -> DataFrame:
        if self.format.has_headers:
            return self._csv.frame(uris, schema)
        return self._times.frame(self._files_at(uris), schema, self._reader)

    @cached_property
    def _times(self) -> TimesInNanoseconds:
        return TimesInNanoseconds(self.spark, self.format.has_footers)

    @cached_property
    def _csv(self) -> CsvFiles:
        return CsvFiles(
            self.spark,
            self.resource,
            self.declared.format_options,
            lambda options: self._reader(self.spark, options),
            partial(opened_file, self.spark),
        )

    def _own_schema(self, files: Sequence[ListedFile]) -> spark_types.StructType:
        """Types of the declared columns in files; of several only where Spark merges schemas."""
        declared = struct_of(self.declared.schema_fields or ())
        if self.format.reader:
            return self.typed.schema(files[0], declared.names)
        options = {
            name: value
            for name, value in self.declared.format_options.items()
            if name.casefold() not in _SCHEMA_OPTIONS
        }
        spark = self._times.session if self.format.has_footers else self.spark
        reader = spark.read.format(self._allowed_format()).options(**options)
        reader = reader.option("mergeSchema", str(len(files) > 1).lower())
        try:
            frame = reader.load([escape_glob(file.uri) for file in files])
            own = schema_of(frame, self.resource, "spec.hdfsLike", declared.names)
        except (PySparkException, Py4JError) as error:
            raise translate(error, resource=self.resource, path="spec.hdfsLike") from error
        return self._times.named(own, files, declared)

    def merged_by_spark(self, files: Sequence[CapturedFile]) -> spark_types.StructType:
        """One schema of files that need not agree, of a format that Spark merges."""
        listed = [file.file for file in files]
        reader = self._reader(self._times.inferring(listed)).option("mergeSchema", "true")
        try:
            frame = reader.load([escape_glob(file.uri) for file in listed])
            merged = schema_of(frame, self.resource, "spec.hdfsLike")
        except (PySparkException, Py4JError) as error:
            raise self._failure(error, listed) from error
        return self._times.named(merged, listed)

    def _failure(self, error: Exception, files: Sequence[ListedFile]) -> SnaploomError:
        failure = translate(error, resource=self.resource, path="spec.hdfsLike")
        if "NANOS" in (failure.found or ""):  # of which Spark names neither column nor file
            forms = self._times.forms(files).items()
            named = [f"column {name} of {ones[0].uri}" for form, ones in forms for name, _ in form]
            failure.found = f"{failure.found}: {shown(named)}"
        return failure

    @property
    def format(self) -> FileFormat:
        return format_of(self.declared.format)

    def _allowed_format(self) -> str:
        """The format by Spark's name; an error unless it and its options are on the lists."""
        options = self.declared.format_options
        place = source_place(self.resource)
        return require_format(self.declared.format, options, self.allow, place)

    def _reader(
        self, spark: SparkSession, own: Mapping[str, str] = MappingProxyType({})
    ) -> DataFrameReader:
        options = dict(self.declared.format_options)
        reader = spark.read.format(self._allowed_format()).option(MARK, self.mark)
        # Spark's reader takes names of options in any case, and the last one holds.
        if self.format.has_headers:
            reader = reader.options(**default_options(options))
        return reader.options(**self.format.read_options).options(**own).options(**options)

    def _schema(self, uris: Sequence[str]) -> spark_types.StructType | None:
        """The schema to read with; None to leave it to the format.

        Ignoring case, Spark infers one column from `id` in one record and `ID` in another, and then
        reads only one of the two: the rest is NULL. So names are inferred as they are, and refused
        where they clash.
        """
        if self.declared.schema_fields is not None:
            return struct_of(self.declared.schema_fields)
        if self.format.has_headers:
            return self._csv.schema(uris)
        if not self.format.has_named_values:
            return None
        reader = self._reader(session_with(self.spark, "spark.sql.caseSensitive"))
        try:
            inferred = reader.load([escape_glob(uri) for uri in uris])
            schema = schema_of(inferred, self.resource, "spec.hdfsLike")
        except (PySparkException, Py4JError) as error:
            failure = translate(error, resource=self.resource, path="spec.hdfsLike")
            named = failure.found or ""
            # While it infers a schema, Spark often does not name the file it could not read.
            if not any(uri.rpartition("/")[2] in named for uri in uris):
                failure.found = f"{named}{', ' * bool(named)}in one of\n            {shown(uris)}"
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


def _without_file(frame: DataFrame) -> DataFrame:
    return frame.select(*_data(frame)) if _FILE_OF_ROW in frame.schema.names else frame


def urls_of(frame: DataFrame, uris: Iterable[str]) -> Mapping[str, str]:
    """The URI of each file that a frame reads, by the name that Spark has for it."""
    by_uri = {normal_uri(uri): uri for uri in uris}
    return {_comparable(url): by_uri[normal_uri(unquote(url))] for url in frame.inputFiles()}


def _comparable(url: str) -> str:
    """A file's URL with local ones in one form; Spark prints `file:/` here and `file:///` there."""
    return re.sub("^file:/+", "file:/", url)

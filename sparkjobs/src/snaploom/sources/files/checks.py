"""Types that files have, and the same against declared ones, checked once a run."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pkgutil import resolve_name
from typing import cast
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark
from pyspark.sql import types as spark_types

from snaploom.errors import SourceError, SourceNotReadable, SourceSchemaInvalid
from snaploom.files.listed import ListedFile
from snaploom.files.measured import TableMissing
from snaploom.files.typedfiles import FAULTS, LARGEST, RowsOfFiles, reader_at
from snaploom.models.datasource import HdfsLike
from snaploom.policy.acceleration import BATCH, OFF_HEAP
from snaploom.policy.fileformats import FileFormat, format_of
from snaploom.sources.files.footers import (
    StoredTimes,
    columns_without_nulls,
    have_one_calendar,
    read_footers,
    row_bytes,
)
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.hadoop import opened_file
from snaploom.sources.files.snapshots import (
    READ_AT_ONCE,
    CapturedFile,
    columns_of,
    none_of_columns,
)
from snaploom.spark import jvm
from snaploom.spark.failures import translate
from snaploom.spark.types import HIVE_PLACE, SIMPLE, fold_case, struct_from, struct_of
from snaploom.types.arrow import arrow_schema, schema_of_arrow
from snaploom.types.schemas import SIMPLE_TYPES, parse_schema, quote, schema_json

# Files that an accelerator would read otherwise than Spark.

_CALENDARS = ("datetimeRebaseMode", "int96RebaseMode")
"""Options, and with a prefix settings, by which Spark takes old days for Julian ones."""


def choose_scan(
    session: SparkSession,
    declared: HdfsLike,
    files: Sequence[ListedFile],
    schema: spark.StructType,
) -> None:
    """Have Spark scan Parquet itself, where an accelerator's scan may give other days and times.

    Comet takes the calendar of every file for today's (apache/datafusion-comet#5010).
    """
    has_times = any(name in schema.simpleString() for name in ("date", "timestamp"))
    if declared.format != "parquet" or not has_times or not jvm.scans_natively(session):
        return
    options = {name.lower(): value for name, value in declared.format_options.items()}
    settings = {
        n: session.conf.get(f"spark.sql.parquet.{n}InRead", "CORRECTED") for n in _CALENDARS
    }
    modes = {options.get(n.lower()) or settings[n] or "" for n in _CALENDARS}
    is_corrected = {mode.upper() for mode in modes} == {"CORRECTED"}
    if not (is_corrected and have_one_calendar(files, jvm.FileEnds(jvm.client_of(session)).read)):
        jvm.scan_by_spark(session)


# Rows that an accelerator handles at a time.

_LEAST_ROWS, _MOST_ROWS = 8192, 65536
"""Comet's own number, and one beyond which a weave gains no more: with it the nested rows of scale
factor 1 are joined and written in 9.3 s instead of 13.2."""
_BATCHES = 20
"""Batches of one task that fit into the native memory: some five are under way, one an operator,
which may take a quarter of it beside what is sorted."""


def choose_batch(session: SparkSession, joined: Iterable[DataFrame] | None) -> None:
    """Let an accelerator handle as many rows of joined frames at a time as memory allows.

    They are Comet's own number where the width of a row is not known: without frames, and where
    one is not of Parquet files. A number that was set for the session stands.
    """
    context = session.sparkContext
    settings = context.getConf()
    if settings.contains(BATCH):
        return
    is_local = (context.master or "").startswith("local")
    cores = settings.get("spark.executor.cores", "1") or "1"
    tasks = context.defaultParallelism if is_local else int(cores)
    memory = context._jsc.sc().conf().getSizeAsBytes(OFF_HEAP, "0") / _BATCHES / tasks
    width, rows = None if joined is None else _width(session, joined), _MOST_ROWS
    while rows > _LEAST_ROWS and (width is None or rows * width > memory):
        rows //= 2
    session.conf.set(BATCH, str(rows))


def _width(session: SparkSession, frames: Iterable[DataFrame]) -> int | None:
    """Bytes of a row of all frames, each by one of its files; None where one does not show them."""
    client = jvm.client_of(session)
    total = 0
    for frame in frames:
        try:
            file = _first_file(client, frame._jdf.inputFiles())
        except (StopIteration, Py4JError):  # without files, or with one that is gone
            return None
        width = row_bytes(file, jvm.FileEnds(client).read)
        if width is None:
            return None
        total += width
    return total


def _first_file(client: jvm.HadoopClient, uris: Iterable[str]) -> ListedFile:
    path, store = jvm.open_path(client, unquote(next(iter(uris))))
    return ListedFile(path.toString(), store.getFileStatus(path).getLen(), 0)


# Rows whose key is NULL.

SPREADING = "spark.sql.shuffle.spreadNullJoinKeys.enabled"
"""Setting by which Spark spreads rows with NULL keys, which match nothing, over its tasks, and not
all to one (Spark 4.3; older versions ignore it)."""


def choose_spreading(
    session: SparkSession, left: Iterable[tuple[DataFrame, Collection[str] | None]]
) -> None:
    """Let Spark spread left rows with NULL keys over its tasks, where there may be any.

    It sorts all rows before a shuffle for that: 9 of 24 processor seconds of the shuffles of scale
    factor 1. One file of a frame stands for the others; what is very uneven nevertheless Spark
    splits, as it does for any key.

    Args:
        session: whose next query joins.
        left: frames, and the columns that are keys; None where keys are computed.
    """
    client = jvm.client_of(session)
    is_wanted = not all(
        names is not None and _has_no_nulls(client, frame, names) for frame, names in left
    )
    session.conf.set(SPREADING, str(is_wanted).lower())


def _has_no_nulls(client: jvm.HadoopClient, frame: DataFrame, names: Collection[str]) -> bool:
    plan = frame._jdf.queryExecution().analyzed()
    leaf = plan.collectLeaves().head()
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return False
    relation, output, read = leaf.relation(), plan.output(), leaf.output()
    is_of_files = relation.getClass().getSimpleName() == "HadoopFsRelation"
    if not is_of_files or str(relation.fileFormat()) != "Parquet":
        return False
    numbers = {output.apply(frame.columns.index(name)).exprId().id() for name in names}
    attributes = map(read.apply, range(read.size()))
    files = {one.name() for one in attributes if one.exprId().id() in numbers}
    try:
        file = _first_file(client, relation.location().inputFiles())
    except (StopIteration, Py4JError):
        return False
    found = columns_without_nulls(file, files, jvm.FileEnds(client).read)
    return len(found) == len(numbers)


# Types that files have, against those that are declared for them (decision 0043).

_DIGITS = {type(SIMPLE[each.sql]): each.digits for each in SIMPLE_TYPES if each.digits}
"""Whole numbers, each wider than those before it, and the most digits of one."""
_EXACT_IN: Mapping[type[spark.DataType], tuple[type[spark.DataType], ...]] = {
    spark.FloatType: (spark.ByteType, spark.ShortType),
    spark.DoubleType: (spark.ByteType, spark.ShortType, spark.IntegerType, spark.FloatType),
}
"""Types of which a binary fraction holds every value: it has 24 or 53 bits for digits."""


@dataclass(frozen=True, slots=True)
class TypeMismatch:
    """A column of a file whose declared type does not hold all values of its own."""

    place: int
    """Place of the declared column, from 0."""
    path: str
    found: str
    """The file's type, by Spark's name."""
    expected: str


def type_mismatches(
    own: spark.StructType, declared: spark.StructType, file_format: FileFormat
) -> Iterator[TypeMismatch]:
    """The columns whose values reading would change or lose; pure.

    `own` has at least the declared columns; a column that files lack is no mismatch. The format is
    `parquet`, `orc` or `avro`.
    """
    are_places = bool(own.names) and all(name.startswith(HIVE_PLACE) for name in own.names)
    by_place = file_format.may_be_by_place and are_places
    stored = {fold_case(each.name): each for each in own.fields}
    for place, wanted in enumerate(declared.fields):
        found = stored.get(fold_case(wanted.name))
        if by_place:
            found = own.fields[place] if place < len(own.fields) else None
        if found is None:
            continue
        inner = _mismatches(found.dataType, wanted.dataType, file_format, wanted.name)
        for path, one, other in inner:
            yield TypeMismatch(place, path, one.simpleString(), other.simpleString())


def _mismatches(
    own: spark.DataType, declared: spark.DataType, file_format: FileFormat, path: str
) -> Iterator[tuple[str, spark.DataType, spark.DataType]]:
    match own, declared:
        case spark.StructType(), spark.StructType():
            fields = {fold_case(field.name): field.dataType for field in own.fields}
            for field in declared.fields:
                found = fields.get(fold_case(field.name))
                if found is not None:
                    inner = f"{path}.{field.name}"
                    yield from _mismatches(found, field.dataType, file_format, inner)
        case spark.ArrayType(), spark.ArrayType():
            elements = own.elementType, declared.elementType
            yield from _mismatches(*elements, file_format, f"{path}[]")
        case spark.MapType(), spark.MapType():
            keys, values = (own.keyType, declared.keyType), (own.valueType, declared.valueType)
            yield from _mismatches(*keys, file_format, f"{path}{{key}}")
            yield from _mismatches(*values, file_format, f"{path}{{value}}")
        case _:
            if not _holds(own, declared, file_format):
                yield path, own, declared


def _holds(own: spark.DataType, declared: spark.DataType, file_format: FileFormat) -> bool:
    """Whether a type without parts holds all values of another, as the format is read."""
    if own == declared or isinstance(own, spark.NullType):
        return True
    one, other = type(own), type(declared)
    if (own.typeName(), declared.typeName()) in file_format.same_bytes:
        return True
    if one in _DIGITS and other in _DIGITS:
        return _DIGITS[one] <= _DIGITS[other]
    if isinstance(declared, spark.DecimalType):
        scale = own.scale if isinstance(own, spark.DecimalType) else 0
        digits = own.precision if isinstance(own, spark.DecimalType) else _DIGITS.get(one, 99)
        whole = declared.precision - declared.scale
        return declared.scale >= scale and whole >= digits - scale
    return one in _EXACT_IN.get(other, ())


# Times of Parquet in nanoseconds, as pandas writes them: Spark has only whole numbers of them.

_OF_NANOSECONDS: Mapping[str, Callable[[Column], Column]] = {
    "timestamp": sf.timestamp_micros,
    "timestamp_ntz": lambda micros: sf.timestamp_add(
        "MICROSECOND", micros, sf.lit("1970-01-01").cast("timestamp_ntz")
    ),
}
"""Times of microseconds, by their type; none depends on the session's time zone."""

Reader = Callable[[SparkSession], DataFrameReader]


@dataclass(frozen=True)
class TimesInNanoseconds:
    """Reader of Parquet's times to the microsecond, as Spark reads those of INT96."""

    spark: SparkSession
    is_parquet: bool
    _stored: dict[str, StoredTimes] = field(default_factory=dict)
    """Of files that were asked, by URI."""

    @cached_property
    def session(self) -> SparkSession:
        """A session that takes such times for whole numbers."""
        return jvm.session_with(self.spark, "spark.sql.legacy.parquet.nanosAsLong")

    def forms(self, files: Sequence[ListedFile]) -> Mapping[StoredTimes, Sequence[ListedFile]]:
        """Files by their columns of such times.

        Where neither the first nor the last one has any, the others are not asked: Spark refuses
        one that has.
        """
        if not self.is_parquet or not files:
            return {(): files}
        end_of = jvm.FileEnds(jvm.client_of(self.spark)).read
        for some in ([files[0], files[-1]], files):
            unknown = [file for file in some if file.uri not in self._stored]
            for file, footer in zip(unknown, read_footers(unknown, None, end_of), strict=True):
                self._stored[file.uri] = () if footer is None else footer.nanoseconds
            if not any(self._stored[file.uri] for file in some):
                return {(): files}
        forms = defaultdict[StoredTimes, list[ListedFile]](list)
        for file in files:
            forms[self._stored[file.uri]].append(file)
        return forms

    def inferring(self, files: Sequence[ListedFile]) -> SparkSession:
        """The session in which Spark infers a schema that `named` completes."""
        types = [data_type for form in self.forms(files) for _, data_type in form]
        return self.session if types and all(types) else self.spark

    def named(
        self,
        schema: spark_types.StructType,
        files: Sequence[ListedFile],
        declared: Iterable[spark_types.StructField] = (),
    ) -> spark_types.StructType:
        """A schema with times for nanoseconds, unless these are declared as whole numbers."""
        whole = {
            fold_case(each.name) for each in declared
            if each.dataType.typeName() not in _OF_NANOSECONDS
        }  # fmt: skip
        types = {
            fold_case(name): SIMPLE[data_type]
            for form in self.forms(files)
            for name, data_type in form
            if data_type and fold_case(name) not in whole
        }
        return spark_types.StructType(
            [
                spark_types.StructField(one.name, types[fold_case(one.name)])
                if fold_case(one.name) in types and isinstance(one.dataType, spark_types.LongType)
                else one
                for one in schema.fields
            ]
        )

    def frame(
        self, files: Sequence[ListedFile], schema: spark_types.StructType | None, reader: Reader
    ) -> DataFrame:
        """Rows of files, under a schema or the one that Spark infers."""
        forms = self.forms(files)
        if schema is None and any(forms):
            paths = [escape_glob(file.uri) for file in files]
            schema = self.named(reader(self.inferring(files)).load(paths).schema, files)
        frames = [self._rows(some, schema, form, reader) for form, some in forms.items()]
        return reduce(DataFrame.unionAll, frames)

    def _rows(
        self,
        files: Sequence[ListedFile],
        schema: spark_types.StructType | None,
        form: StoredTimes,
        reader: Reader,
    ) -> DataFrame:
        own, paths = reader(self.spark), [escape_glob(file.uri) for file in files]
        if schema is None:
            return own.load(paths)
        names = {fold_case(name) for name, data_type in form if data_type}
        times = {
            one.name: _OF_NANOSECONDS[one.dataType.typeName()]
            for one in schema.fields
            if fold_case(one.name) in names and one.dataType.typeName() in _OF_NANOSECONDS
        }
        if not times:
            return own.schema(schema).load(paths)
        if jvm.scans_natively(self.spark):
            jvm.scan_by_spark(self.spark)
        stored = [
            spark_types.StructField(one.name, spark_types.LongType()) if one.name in times else one
            for one in schema.fields
        ]
        frame = own.schema(spark_types.StructType(stored)).load(paths)
        columns = {name: sf.col(quote(name)) for name in frame.columns}
        for name, time_of in times.items():
            columns[name] = time_of(sf.call_function("div", columns[name], sf.lit(1000)))
        return frame.select(*(column.alias(name) for name, column in columns.items()))


# Files that a reader of ours opens: their schemas on the driver, their rows in Spark's workers.

_LOCAL = "file:"


@dataclass(frozen=True)
class TypedFiles:
    """Files of one source whose format has a reader of ours."""

    spark: SparkSession
    resource: str
    format: FileFormat
    options: Mapping[str, str]
    """As declared."""
    _schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """Schemas of files that were read, by URI."""

    def schema(
        self, file: ListedFile, columns: Collection[str] | None = None
    ) -> spark_types.StructType:
        """The schema of a file, all of it or of some columns, whose case does not count."""
        wanted = None if columns is None else {name.lower() for name in columns}
        own = self._arrow(file)
        some = [one for one in own if wanted is None or one.name.lower() in wanted]
        try:
            document = schema_json(schema_of_arrow(pa.schema(some), file.uri))
        except ValueError as error:
            raise SourceSchemaInvalid(
                str(error),
                resource=self.resource,
                path="spec.hdfsLike.sourceUriGlobs",
                found=file.uri,
                expected="columns of types that Spark has",
                hint="write the column as another type, or declare schemaFields without it",
            ) from None
        return struct_from(document, self.resource, "spec.hdfsLike")

    def columns(
        self, files: Sequence[ListedFile], wanted: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """The names of columns of files, as `columns_of` has them.

        Raises:
            SourceSchemaInvalid: a file has none of the wanted ones.
        """
        read = reader_at(self.format.reader, self.format.arguments(self.options, most=1))

        def names(file: ListedFile) -> Sequence[str]:
            with suppress(*FAULTS), opened_file(self.spark, file) as opened:
                return list(read(opened).schema.names)
            return ()  # reading it names the fault

        columns = columns_of(files, names)
        for uri, own in columns.items():
            if {name.lower() for name in own}.isdisjoint(map(str.lower, wanted)):
                raise none_of_columns(self.resource, uri, own, wanted)
        return columns

    def schemas(self, files: Sequence[ListedFile]) -> tuple[str, ...]:
        """The schema of each file, as `StructType.json()` gives it; raises as `schema`."""
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            return tuple(pool.map(lambda file: self.schema(file).json(), files))

    def rows(
        self, files: Sequence[ListedFile], schema: spark_types.StructType, file_column: str
    ) -> RowsOfFiles:
        """The function that reads files in workers, with the columns of a schema."""
        for file in files:
            if file.length > LARGEST and not file.uri.startswith(_LOCAL):
                raise self._not_readable(
                    file, f"it has {file.length:,} bytes", f"files of up to {LARGEST:,} bytes"
                )
        try:
            read = arrow_schema(parse_schema(schema.json(), ""))
        except ValueError as error:
            raise SourceSchemaInvalid(
                str(error),
                resource=self.resource,
                path="spec.hdfsLike.schemaFields",
                found=schema.simpleString()[:1000],
                expected="types that Arrow has",
                hint="declare the type that the files have",
            ) from None
        arguments = self.format.arguments(self.options, schema=read)
        return RowsOfFiles(self.format.reader, arguments, read, file_column)

    def _arrow(self, file: ListedFile) -> pa.Schema:
        if file.uri not in self._schemas:
            try:
                read = reader_at(self.format.reader, self.format.arguments(self.options))
                with opened_file(self.spark, file) as opened:
                    self._schemas[file.uri] = read(opened).schema
            except TableMissing as error:
                fault = OSError(f"Could not read file: {file.uri}. {error}")
                raise translate(fault, resource=self.resource) from None
            except FAULTS as error:
                whole = f"whole {self.format.name} files"
                raise self._not_readable(file, str(error)[:1000], whole) from None
        return self._schemas[file.uri]

    def _not_readable(self, file: ListedFile, fault: str, expected: str) -> SourceNotReadable:
        return SourceNotReadable(
            f"a file cannot be read as {self.format.name}: {fault}",
            resource=self.resource,
            path="spec.hdfsLike.sourceUriGlobs",
            found=file.uri,
            expected=expected,
            hint="write the file again (a large one as several), or take it out of sourceUriGlobs",
        )


# Facts about files that are found out before they are read, each file once in a run.

ASKED_AT_ONCE = 8
"""Headers of Avro that are read at the same time: on stores most of the time is waiting."""
_FIELDS = "spec.hdfsLike.schemaFields"

Check = Callable[[SparkSession, Sequence[str], Mapping[str, str], str], None]
"""Refuses files by a session, their paths as globs, options, and the name of the source."""
OwnSchema = Callable[[Sequence[ListedFile]], spark_types.StructType]
"""The schema that files have by themselves, of the declared columns: of Parquet and Avro of one
file, of ORC of as many as agree; raises a `SourceError` where they do not."""


@dataclass(frozen=True)
class FileChecks:
    """The checks of one source's files."""

    spark: SparkSession
    resource: str
    declared: HdfsLike
    own_schema: OwnSchema
    _passed: set[str] = field(default_factory=set)
    """URIs of files that need not be looked at again."""
    _columns: dict[str, Sequence[str]] = field(default_factory=dict)
    """The declared columns that files have, by URI."""

    def check(self, files: Sequence[ListedFile]) -> None:
        """Refuse files that Spark would read other than they are written."""
        unknown = [file for file in files if file.uri not in self._passed]
        if not unknown:
            return
        file_format = format_of(self.declared.format)
        if file_format.check:
            paths = [escape_glob(file.uri) for file in unknown]
            check = cast(Check, resolve_name(file_format.check))
            check(self.spark, paths, self.declared.format_options, self.resource)
        if file_format.is_self_describing and self.declared.schema_fields is not None:
            # Hive writes ORC files of zero bytes, which hold nothing.
            self._check_types([file for file in unknown if file.length], file_format)
        self._passed.update(file.uri for file in unknown)

    def columns(self, files: Iterable[CapturedFile]) -> Mapping[str, Sequence[str]]:
        """The declared columns that files have, by URI, where their types were compared."""
        uris = (each.file.uri for each in files)
        return {uri: self._columns[uri] for uri in uris if uri in self._columns}

    def _check_types(self, files: Sequence[ListedFile], file_format: FileFormat) -> None:
        declared = struct_of(self.declared.schema_fields or ())
        for some, own in self._schemas(files, declared, file_format):
            mismatches = tuple(type_mismatches(own, declared, file_format))
            if mismatches:
                raise self._refused(some[0], mismatches)
            if not any(name.startswith(HIVE_PLACE) for name in own.names):
                self._columns.update((file.uri, own.names) for file in some)

    def _schemas(
        self, files: Sequence[ListedFile], declared: spark_types.StructType, file_format: FileFormat
    ) -> Iterator[tuple[Sequence[ListedFile], spark_types.StructType]]:
        """Types of files, each with the files that have them."""
        if file_format.has_footers:
            footers = read_footers(files, None, jvm.FileEnds(jvm.client_of(self.spark)).read)
            alike = defaultdict[str, list[ListedFile]](list)
            for file, one in zip(files, footers, strict=True):
                # A file whose footer cannot be read here is like no other, and Spark's to judge.
                alike[one.schema_hash if one else file.uri].append(file)
            yield from ((some, self.own_schema(some[:1])) for some in alike.values())
            return
        if file_format.is_merged and len(files) > 1:
            # By one job over the ends of all files; what is merged holds the types of each.
            try:
                merged = self.own_schema(files)
            except SourceError:
                merged = None
            if merged is not None and _all_fit(merged, declared, file_format):
                yield files, merged
                return
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            own = pool.map(lambda file: self.own_schema([file]), files)
            yield from zip(([file] for file in files), own, strict=True)

    def _refused(self, file: ListedFile, mismatches: Sequence[TypeMismatch]) -> SourceSchemaInvalid:
        found = ", ".join(f"{one.path} is {one.found}" for one in mismatches)
        expected = ", ".join(f"{one.path} {one.expected}" for one in mismatches)
        return SourceSchemaInvalid(
            "a file has columns whose values the declared types do not hold",
            resource=self.resource,
            path=f"{_FIELDS}[{mismatches[0].place}].dataType",
            found=f"{found} in {file.uri}",
            expected=f"{expected}, or a narrower type",
            hint="declare the type that the file has, and convert it by an expression of a "
            "FieldTransformer; or write "
            "the file with the declared type; or leave the column out of schemaFields",
        )


def _all_fit(
    merged: spark_types.StructType, declared: spark_types.StructType, file_format: FileFormat
) -> bool:
    """Whether all files of a merged schema fit; it no longer shows which file has which type."""
    is_by_name = not any(name.startswith(HIVE_PLACE) for name in merged.names)
    return is_by_name and not any(type_mismatches(merged, declared, file_format))

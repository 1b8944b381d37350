"""CSV files of one source as one frame: columns by the names of headers, each file by its form."""

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.errors import SourceSchemaInvalid
from snaploom.files.listed import ListedFile
from snaploom.policy.fileformats import NULL_TEXT
from snaploom.sources.files.csv import CsvDialect, CsvLayout, dialect_of, layouts_of
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.snapshots import shown
from snaploom.sources.prefix import normal_uri
from snaploom.spark.types import fold_case
from snaploom.types.schemas import quote

# Headers: the names by which columns are matched, whatever their places (decision 0034).

_HEAD = 64 << 10
"""Bytes of a file in which its header is looked for; one beyond that is Spark's to find."""
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Codecs by ending, as Hadoop's client knows them."""


def is_by_name(options: Mapping[str, str]) -> bool:
    """Whether columns are matched by the names of headers; `enforceSchema` opts out."""
    given = {name.casefold(): value for name, value in options.items()}
    others = given.keys() & {"enforceschema", "singlevariantcolumn"}
    return given.get("header", "").lower() == "true" and not others


def first_line(uri: str, opened: pa.NativeFile, dialect: CsvDialect | None) -> str:
    """The line that is a file's header; empty where only Spark can determine it."""
    if dialect is None or dialect.is_wide:
        return ""
    try:
        codec = _CODECS.get(posixpath.splitext(uri)[1])
        stream = pa.CompressedInputStream(opened, codec) if codec else opened
        head = stream.read(_HEAD)
        line, end, _ = head.partition(b"\n")
        text = line.decode(dialect.encoding).removeprefix("\ufeff").removesuffix("\r")
    except (OSError, ValueError, LookupError):
        return ""
    is_whole = bool(end) or len(head) < _HEAD
    is_open = bool(dialect.quote) and text.count(dialect.quote) % 2 == 1
    return text if is_whole and text.strip() and not is_open else ""


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    """Names of columns as Spark makes them of a header, where one is empty or stands twice."""
    times = Counter(fold_case(name) for name in header)
    return tuple(
        f"_c{place}" if not name else f"{name}{place}" if times[fold_case(name)] > 1 else name
        for place, name in enumerate(header)
    )


def fields_of(
    header: Sequence[str], wanted: spark_types.StructType
) -> tuple[spark_types.StructField | None, ...]:
    """The wanted column that each column of a file is, by its name without regard to case.

    Blanks around names do not count where nothing else has the name.
    """
    by_name, by_text = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for place, (name, text) in enumerate(zip(column_names(header), header, strict=True)):
        by_name[fold_case(name)].append(place)
        by_text[fold_case(text).strip()].append(place)
    exact = {place for each in wanted.fields for place in by_name.get(fold_case(each.name), ())}
    found: list[spark_types.StructField | None] = [None] * len(header)
    for each in wanted.fields:
        name = fold_case(each.name)
        places = by_name.get(name, [])
        if not places and (bare := name.strip()):
            places = [place for place in by_text.get(bare, ()) if place not in exact]
        if len(places) > 1 or any(found[place] for place in places):
            raise ValueError(each.name)
        for place in places:
            found[place] = each
    return tuple(found)


# The CSV files of one source as one frame, each read as it is laid out.

_READ_AT_ONCE = 16
"""Headers that are read at the same time: on stores all of the time is waiting."""
_AS_TEXT = {
    "header": "false", "inferSchema": "false", "mode": "PERMISSIVE", "nullValue": NULL_TEXT,
    "emptyValue": "",
}  # fmt: skip
"""Options by which Spark reads a header as a record."""
_CORRUPT = "_corrupt_record"
_WIDENINGS: tuple[tuple[spark_types.DataType, ...], ...] = (
    (spark_types.IntegerType(), spark_types.LongType(), spark_types.DoubleType()),
    (spark_types.DateType(), spark_types.TimestampType()),
)
"""Types that Spark infers of CSV, each of which holds those before it."""


@dataclass(frozen=True)
class CsvForm:
    """The form of one file."""

    layout: CsvLayout = CsvLayout.LINES
    header: tuple[str, ...] | None = None
    """Names of its columns as they are written; None where columns go by place, or it has none."""


Forms = Mapping[CsvForm, Sequence[str]]
"""URIs of files by their form."""


@dataclass(frozen=True)
class CsvFiles:
    """The CSV files of one source."""

    spark: SparkSession
    resource: str
    """`Kind/name` of the source."""
    options: Mapping[str, str]
    """Those that are declared."""
    reader: Callable[[Mapping[str, str]], DataFrameReader]
    """Spark's reader with these options, and with others where these do not have them."""
    opened: Callable[[ListedFile], pa.NativeFile]
    """Opens a file; raises an `OSError` where it cannot."""
    _forms: dict[str, CsvForm] = field(default_factory=dict)
    """Forms of files that were looked at, by URI."""
    _headers: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Headers by their line, or by the URI of a file whose line is not known."""

    def look_at(self, files: Sequence[ListedFile]) -> None:
        """Find out the forms of files, each once."""
        unknown = [file for file in files if file.uri not in self._forms]
        dialect = dialect_of(self.options)
        layouts: Mapping[str, CsvLayout] = {}
        if dialect is not None and unknown:
            paths = [escape_glob(file.uri) for file in unknown]
            found = layouts_of(self.spark, paths, dialect, self.options, self.resource)
            layouts = {normal_uri(unquote(url)): layout for url, layout in found.items()}
        lines = [""] * len(unknown)
        if is_by_name(self.options):
            with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
                lines = list(pool.map(partial(self._first_line, dialect), unknown))
        for file, line in zip(unknown, lines, strict=True):
            layout = layouts.get(normal_uri(file.uri), CsvLayout.LINES)
            self._forms[file.uri] = CsvForm(layout, self._header(file, line, layout))

    def forms(self, uris: Sequence[str]) -> Forms:
        """The forms of files; a header in other case is the same, and that of the first one."""
        found: dict[tuple[CsvLayout, tuple[str, ...] | None], tuple[CsvForm, list[str]]] = {}
        known = [(uri, self._forms[uri]) for uri in uris]
        for uri, form in sorted(known, key=lambda each: each[1].header is None):
            folded = None if form.header is None else tuple(map(fold_case, form.header))
            if folded is None:  # without rows, or by place
                like = [key for key in found if key[0] is form.layout]
                folded = like[0][1] if like else None
            found.setdefault((form.layout, folded), (form, []))[1].append(uri)
        return dict(found.values())

    def schema(self, uris: Sequence[str]) -> spark_types.StructType | None:
        """The columns of all headers, first ones first; None where columns go by place.

        Raises:
            SourceSchemaInvalid: the headers leave open which columns are the same.
        """
        forms = {form: some for form, some in self.forms(uris).items() if form.header is not None}
        if not forms:
            return None
        own = {form: self._own_schema(form, some) for form, some in forms.items()}
        fields: dict[str, spark_types.StructField] = {}
        for form, schema in own.items():
            known = spark_types.StructType(list(fields.values()))
            for one, each in zip(
                self._fields(form, known, forms[form]), schema.fields, strict=True
            ):
                name = each.name if one is None else one.name
                found = each.dataType
                if one is not None and one.dataType != found:
                    found = self._common(name, own, forms)
                fields[name] = spark_types.StructField(name, found)
        return spark_types.StructType(list(fields.values()))

    def frame(self, uris: Sequence[str], schema: spark_types.StructType | None) -> DataFrame:
        """One frame over files that were looked at.

        Raises:
            SourceSchemaInvalid: the headers leave open which columns are the wanted ones.
        """
        forms = self.forms(uris)
        frames = [self._read(form, forms[form], schema) for form in forms]
        if schema is None and len(frames) > 1:
            common = common_schema([frame.schema for frame in frames])
            frames = [self._read(form, forms[form], common) for form in forms]
        return reduce(DataFrame.unionAll, frames)

    def record_schema(self, uri: str, wanted: spark_types.StructType) -> spark_types.StructType:
        """The columns of a file's records in their order, with the names of the wanted ones."""
        form = self._forms[uri]
        if form.header is None:
            return wanted
        return spark_types.StructType(
            [
                one or spark_types.StructField(f"__snaploom_{place}", spark_types.StringType())
                for place, one in enumerate(self._fields(form, wanted, [uri]))
            ]
        )

    def remarks(
        self, uris: Sequence[str], wanted: spark_types.StructType
    ) -> Iterator[tuple[str, str]]:
        """Columns that some files lack, or have beside the wanted ones: a key, and a sentence."""
        missing, further = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for form, some in self.forms(uris).items():
            if form.header is None:
                continue
            found = self._fields(form, wanted, some)
            names = {one.name for one in found if one is not None}
            for each in wanted.fields:
                if each.name not in names and each.name != self._corrupt:
                    missing[each.name] += some
            for name, one in zip(column_names(form.header), found, strict=True):
                if one is None:
                    further[name] += some
        for name, some in missing.items():
            yield (
                f"-{fold_case(name)}",
                f"{len(some)} of {len(uris)} files have no column `{name}`, which is NULL in their "
                f"rows: {shown(some)}",
            )
        for name, some in further.items():
            yield (
                f"+{fold_case(name)}",
                f"{len(some)} of {len(uris)} files have a column `{name}`, which is not read "
                f"since schemaFields does not declare it: {shown(some)}",
            )

    def _first_line(self, dialect: CsvDialect | None, file: ListedFile) -> str:
        try:
            with self.opened(file) as opened:
                return first_line(file.uri, opened, dialect)
        except OSError:
            return ""  # which Spark reports, if it cannot read it either

    def _header(self, file: ListedFile, line: str, layout: CsvLayout) -> tuple[str, ...] | None:
        if not is_by_name(self.options) or not file.length:
            return None
        key = line or file.uri
        if key not in self._headers:
            reader = self.reader(layout.options).options(**_AS_TEXT)
            row = reader.load([escape_glob(file.uri)]).head()
            self._headers[key] = None if row is None else tuple(text or "" for text in row)
        return self._headers[key]

    def _read(
        self, form: CsvForm, uris: Sequence[str], wanted: spark_types.StructType | None
    ) -> DataFrame:
        paths = [escape_glob(uri) for uri in uris]
        if form.header is None or wanted is None:
            reader = self.reader(form.layout.options)
            return (reader if wanted is None else reader.schema(wanted)).load(paths)
        found = self._fields(form, wanted, uris)
        names = column_names(form.header)
        options = dict(form.layout.options)
        if names != form.header:  # of which Spark knows no name to compare
            options["enforceSchema"] = "true"
        if None in found:  # else records of other lengths would go unnoticed
            options["columnPruning"] = "false"
        by_name = {
            one.name: one.name if fold_case(one.name) == fold_case(name) else name
            for one, name in zip(found, names, strict=True)
            if one is not None
        }
        own = [
            spark_types.StructField(name, spark_types.StringType())
            if one is None
            else spark_types.StructField(by_name[one.name], one.dataType, True, one.metadata)
            for one, name in zip(found, names, strict=True)
        ]
        corrupt = {self._corrupt} - by_name.keys()  # which Spark fills, and no file has
        rest = [one for one in wanted.fields if one.name in corrupt]
        frame = self.reader(options).schema(spark_types.StructType([*own, *rest])).load(paths)
        if [each.name for each in (*own, *rest)] == wanted.names:
            return frame
        by_name |= {one.name: one.name for one in rest}
        return frame.select(
            *(
                (
                    sf.col(quote(by_name[one.name]))
                    if one.name in by_name
                    else sf.lit(None).cast(one.dataType)
                ).alias(one.name, metadata=one.metadata)
                for one in wanted.fields
            )
        )

    def _own_schema(self, form: CsvForm, uris: Sequence[str]) -> spark_types.StructType:
        assert form.header is not None
        names = column_names(form.header)
        types: list[spark_types.DataType] = [spark_types.StringType()] * len(names)
        given = {name.casefold(): value.lower() for name, value in self.options.items()}
        if given.get("inferschema") == "true":
            inferred = self.reader(form.layout.options).load([escape_glob(uri) for uri in uris])
            types = [each.dataType for each in inferred.schema.fields]
        return spark_types.StructType(list(map(spark_types.StructField, names, types)))

    def _common(
        self, name: str, own: Mapping[CsvForm, spark_types.StructType], forms: Forms
    ) -> spark_types.DataType:
        """The type of a column that files of several forms have, without those where it is empty.

        Spark infers text of a column without a value.
        """
        text = spark_types.StructType([spark_types.StructField(name, spark_types.StringType())])
        types = []
        for form, schema in own.items():
            for one, each in zip(self._fields(form, text, forms[form]), schema.fields, strict=True):
                is_text = isinstance(each.dataType, spark_types.StringType)
                if one is not None and not (is_text and self._is_empty(form, forms[form], text)):
                    types.append(each.dataType)
        return reduce(_common_type, types) if types else spark_types.StringType()

    def _is_empty(self, form: CsvForm, uris: Sequence[str], column: spark_types.StructType) -> bool:
        frame = self._read(form, uris, column)
        return frame.where(sf.col(quote(column.names[0])).isNotNull()).head() is None

    def _fields(
        self, form: CsvForm, wanted: spark_types.StructType, uris: Sequence[str]
    ) -> tuple[spark_types.StructField | None, ...]:
        assert form.header is not None
        try:
            return fields_of(form.header, wanted)
        except ValueError as error:
            raise SourceSchemaInvalid(
                "a header has several columns that a name could mean",
                resource=self.resource,
                path="spec.hdfsLike.schemaFields",
                found=f"{error} in {', '.join(form.header)} of {uris[0]}",
                expected="every name once, with regard to neither case nor blanks around it",
                hint="declare schemaFields with the names by which they differ: "
                f"{', '.join(column_names(form.header))}; or write the file with others; "
                'formatOptions enforceSchema: "true" takes columns by their place',
            ) from None

    @property
    def _corrupt(self) -> str:
        given = {name.casefold(): value for name, value in self.options.items()}
        return given.get("columnnameofcorruptrecord", _CORRUPT)


def common_schema(schemas: Sequence[spark_types.StructType]) -> spark_types.StructType:
    """One schema for files that were inferred apart, as Spark would infer it of all of them."""
    return spark_types.StructType(
        [
            spark_types.StructField(
                columns[0].name, reduce(_common_type, [column.dataType for column in columns])
            )
            for columns in zip(*schemas, strict=False)
        ]
    )


def _common_type(one: spark_types.DataType, other: spark_types.DataType) -> spark_types.DataType:
    if one == other:
        return one
    for widening in _WIDENINGS:
        if one in widening and other in widening:
            return max(one, other, key=widening.index)
    return spark_types.StringType()

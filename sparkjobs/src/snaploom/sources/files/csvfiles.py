"""CSV files of one source as one frame: columns by the names of headers, each file by its form."""

import csv
import re
from collections import defaultdict
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
from snaploom.files.measured import names_of
from snaploom.policy.fileformats import NULL_TEXT
from snaploom.sources.files.csv import (
    CsvDialect,
    CsvLayout,
    LinesOf,
    dialect_of,
    is_wide,
    layouts_of,
    plain_record,
    unproved_files,
)
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.records import head_of
from snaploom.sources.files.snapshots import none_of_columns, shown
from snaploom.sources.prefix import normal_uri
from snaploom.spark.types import fold_case
from snaploom.types.schemas import quote

# Headers: the names by which columns are matched, whatever their places (decision 0034).

_HEAD = 64 << 10
"""Bytes of a file in which its header is looked for; one beyond that is Spark's to find."""


def is_by_name(options: Mapping[str, str]) -> bool:
    """Whether columns are matched by the names of headers; `enforceSchema` opts out."""
    others = {name.casefold() for name in options} & {"enforceschema", "singlevariantcolumn"}
    return has_headers(options) and not others


def has_headers(options: Mapping[str, str]) -> bool:
    """Whether the first line of each file has names."""
    given = {name.casefold(): value for name, value in options.items()}
    return given.get("header", "").lower() == "true"


def first_line(uri: str, opened: pa.NativeFile, dialect: CsvDialect | None) -> str:
    """The line that is a file's header; empty where only Spark can determine it."""
    if dialect is None or dialect.is_wide:
        return ""
    try:
        head = head_of(uri, opened, _HEAD)
        line, end, _ = head.partition(b"\n")
        text = line.decode(dialect.encoding).removeprefix("\ufeff").removesuffix("\r")
    except (OSError, ValueError, LookupError):
        return ""
    is_whole = bool(end) or len(head) < _HEAD
    is_open = bool(dialect.quote) and text.count(dialect.quote) % 2 == 1
    return text if is_whole and text.strip() and not is_open else ""


def values_of(line: str, dialect: CsvDialect | None) -> tuple[str, ...] | None:
    """The values of a line that is a plain record; None where only Spark can determine them."""
    if dialect is None or dialect.ignores_blanks or len(dialect.separator) != 1:
        return None
    if max(line, default="") <= " " or re.fullmatch(plain_record(dialect), line) is None:
        return None
    if not dialect.quote:
        return tuple(line.split(dialect.separator))
    reader = csv.reader([line], delimiter=dialect.separator, quotechar=dialect.quote, strict=True)
    return tuple(next(reader))


def fields_of(
    header: Sequence[str], wanted: spark_types.StructType
) -> tuple[spark_types.StructField | None, ...]:
    """The wanted column that each column of a file is, by its name without regard to case.

    Blanks around names do not count where nothing else has the name.
    """
    by_name, by_text = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for place, (name, text) in enumerate(zip(names_of(header), header, strict=True)):
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

Harmless = Callable[[spark_types.DataType], str | None]
"""From a type to a regular expression of texts that keep their value as it, of characters of
`_OF_HARMLESS`; None where all texts do."""
_OF_HARMLESS = frozenset("0123456789+-.: TZeE")
_MOST_HEADERS = 20
"""Headers of which each is looked for in its files: every one is a part of the query."""
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
    _lines: dict[str, str] = field(default_factory=dict)
    """The line that each file has as its header, by URI; empty where that is not known."""
    _harmless: dict[str, bool] = field(default_factory=dict)
    """Whether it is proved that no value changes, by URI; of files about which that was asked."""

    def look_at(
        self,
        files: Sequence[ListedFile],
        wanted: spark_types.StructType | None,
        harmless: Harmless,
    ) -> None:
        """Find out the forms of files, each once; and of their values, if columns are wanted."""
        unknown = [file for file in files if file.uri not in self._forms]
        dialect = dialect_of(self.options)
        lines = [""] * len(unknown)
        given = {name.casefold(): value for name, value in self.options.items()}
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            if has_headers(self.options):
                lines = list(pool.map(partial(self._first_line, dialect), unknown))
            if (declared := given.get("linesep")) and not declared.strip("\r\n"):
                list(pool.map(partial(self._refuse_other_ends, declared), unknown))
        self._lines.update((file.uri, line) for file, line in zip(unknown, lines, strict=True))
        layouts: Mapping[str, CsvLayout] = {}
        if dialect is not None and unknown:
            layouts = self._layouts([file.uri for file in unknown], dialect, wanted, harmless)
        encoding = given.get("encoding", given.get("charset", ""))
        usual = CsvLayout.WHOLE if dialect is None and is_wide(encoding) else CsvLayout.LINES
        for file, line in zip(unknown, lines, strict=True):
            layout = layouts.get(file.uri, usual)
            self._forms[file.uri] = CsvForm(layout, self._header(file, line, layout, dialect))

    def unproved(
        self, uris: Sequence[str], wanted: spark_types.StructType, harmless: Harmless
    ) -> list[str]:
        """Those of files that were looked at of whose values any may change."""
        dialect = dialect_of(self.options)
        lines = [uri for uri in uris if self._forms[uri].layout is CsvLayout.LINES]
        unknown = [uri for uri in lines if uri not in self._harmless]
        if dialect is not None and unknown:
            groups = self._groups(unknown, dialect, wanted, harmless)
            self._proved(dialect, [group for group in groups if group.columns is not None])
        return [uri for uri in uris if not self._harmless.get(uri)]

    def _layouts(
        self,
        uris: Sequence[str],
        dialect: CsvDialect,
        wanted: spark_types.StructType | None,
        harmless: Harmless,
    ) -> Mapping[str, CsvLayout]:
        """The line separators of files with others than plain lines."""
        proved = self._proved(dialect, self._groups(uris, dialect, wanted, harmless))
        others = [uri for uri in uris if uri not in proved]
        if not others:
            return {}
        paths = [escape_glob(uri) for uri in others]
        found = layouts_of(self.spark, paths, dialect, self.options, self.resource)
        by_path = {normal_uri(unquote(url)): layout for url, layout in found.items()}
        return {uri: by_path[path] for uri in others if (path := normal_uri(uri)) in by_path}

    def _proved(self, dialect: CsvDialect, files: Sequence[LinesOf]) -> set[str]:
        """Files whose lines are plain records with harmless values, which is remembered."""
        if not files or dialect.is_wide:
            return set()
        unproved = unproved_files(self.spark, files, dialect, self.options)
        bad = {normal_uri(unquote(url)) for url in unproved}
        proved = {uri for one in files for uri in one.uris if normal_uri(uri) not in bad}
        for one in files:
            if one.columns is not None:
                self._harmless.update((uri, uri in proved) for uri in one.uris)
        return proved

    def _groups(
        self,
        uris: Sequence[str],
        dialect: CsvDialect,
        wanted: spark_types.StructType | None,
        harmless: Harmless,
    ) -> list[LinesOf]:
        """Files by the line of their header."""
        by_line = defaultdict[str, list[str]](list)
        for uri in uris:
            by_line[self._lines[uri]].append(uri)
        if len(by_line) > _MOST_HEADERS:
            return [LinesOf(uris)]
        return [
            LinesOf(
                some,
                line if values_of(line, dialect) else "",
                self._columns(line, dialect, wanted, harmless),
            )
            for line, some in by_line.items()
        ]

    def _columns(
        self,
        line: str,
        dialect: CsvDialect,
        wanted: spark_types.StructType | None,
        harmless: Harmless,
    ) -> list[str | None] | None:
        if wanted is None or not _OF_HARMLESS.isdisjoint(dialect.separator + dialect.quote):
            return None
        fields: Sequence[spark_types.StructField | None] = wanted.fields
        if is_by_name(self.options):
            names = values_of(line, dialect)
            if names is None:
                return None
            try:
                fields = fields_of(names, wanted)
            except ValueError:  # which is an error of reading
                return None
        return [None if one is None else harmless(one.dataType) for one in fields]

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
        for form, some in forms.items():
            self._refuse_other_columns(form, schema, some)
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

    def headers(self, uris: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The names of columns in files whose columns are matched by names."""
        return {
            uri: names_of(form.header)
            for form, some in self.forms(uris).items()
            if form.header is not None
            for uri in some
        }

    def _first_line(self, dialect: CsvDialect | None, file: ListedFile) -> str:
        try:
            with self.opened(file) as opened:
                return first_line(file.uri, opened, dialect)
        except OSError:
            return ""  # which Spark reports, if it cannot read it either

    def _header(
        self, file: ListedFile, line: str, layout: CsvLayout, dialect: CsvDialect | None
    ) -> tuple[str, ...] | None:
        if not is_by_name(self.options) or not file.length:
            return None
        key = line or file.uri
        if key not in self._headers and (names := values_of(line, dialect)) is not None:
            self._headers[key] = names
        if key not in self._headers:
            reader = self.reader(layout.options).options(**_AS_TEXT)
            row = reader.load([escape_glob(file.uri)]).head()
            self._headers[key] = None if row is None else tuple(text or "" for text in row)
        return self._headers[key]

    def _refuse_other_ends(self, declared: str, file: ListedFile) -> None:
        """Refuse a file that has other line ends only: all of it would be one record."""
        try:
            with self.opened(file) as opened:
                head = head_of(file.uri, opened, _HEAD).replace(b"\0", b"").decode("latin-1")
        except (OSError, ValueError):
            return  # which Spark reports
        line, other, _ = re.split("([\r\n])", f"{head}\n", maxsplit=1)
        if declared in head or len(line) == len(head) or line.count('"') % 2:
            return
        raise SourceSchemaInvalid(
            "records of a file do not end with lineSep",
            resource=self.resource,
            path="spec.hdfsLike.formatOptions.lineSep",
            found=f"{other!r} and no {declared!r} in the beginning of {file.uri}",
            expected="one line end in all files of a source",
            hint="write this file so, or move it to a source of its own",
        )

    def _read(
        self, form: CsvForm, uris: Sequence[str], wanted: spark_types.StructType | None
    ) -> DataFrame:
        paths = [escape_glob(uri) for uri in uris]
        if form.header is None or wanted is None:
            reader = self.reader(form.layout.options)
            return (reader if wanted is None else reader.schema(wanted)).load(paths)
        found = self._fields(form, wanted, uris)
        names = names_of(form.header)
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
        corrupt = {self.corrupt} - by_name.keys()
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
        names = names_of(form.header)
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
                f"{', '.join(names_of(form.header))}; or write the file with others; "
                'formatOptions enforceSchema: "true" takes columns by their place',
            ) from None

    def _refuse_other_columns(
        self, form: CsvForm, wanted: spark_types.StructType | None, uris: Sequence[str]
    ) -> None:
        """Refuse a header without any declared column: all values of its rows would be NULL."""
        if form.header is None or not wanted or any(self._fields(form, wanted, uris)):
            return
        place, by_place = f"line 1 of {uris[0]}", '; enforceSchema: "true" takes columns by place'
        raise none_of_columns(self.resource, place, form.header, wanted.names, by_place)

    @property
    def corrupt(self) -> str:
        """The column that Spark fills with records that do not fit, and no file has."""
        given = {name.casefold(): value for name, value in self.options.items()}
        return given.get("columnnameofcorruptrecord", _CORRUPT)


def column_remarks(
    columns: Mapping[str, Sequence[str]], wanted: Sequence[str], number: int, *, are_keys: bool
) -> Iterator[tuple[str, str]]:
    """Columns that some files lack, or have beside the wanted ones: a key, and a sentence.

    `columns` are those of files, by their URIs, and `number` is that of all files. `are_keys` is
    whether these are of their first records only, and as they are written.
    """
    found = defaultdict[tuple[str, str], list[str]](list)
    known = {name if are_keys else fold_case(name.strip()): name for name in wanted}
    for uri, names in columns.items():
        own = {name if are_keys else fold_case(name.strip()): name for name in names}
        # Records of JSON may lack keys, unless others stand in their place.
        is_looked_for = not are_keys or not known.keys() >= own.keys()
        for folded, name in known.items():
            found["-", name] += [uri] * (is_looked_for and folded not in own)
        for folded, name in own.items():
            found["+", name] += [uri] * (folded not in known)
    for (mark, name), uris in found.items():
        if uris:
            differs = f"have a column `{name}`, which is not read since schemaFields does not "
            differs += "declare it"
            if mark == "-":
                differs = f"have no column `{name}`, which is NULL in their rows"
            if mark == "-" and are_keys:
                differs = f"have no key `{name}` in their first records, which is NULL there"
            about = f"{len(uris)} of {number} files {differs}: {shown(uris)}"
            yield f"{mark}{name if are_keys else fold_case(name)}", about


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

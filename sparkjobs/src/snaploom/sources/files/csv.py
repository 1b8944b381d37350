"""Records of CSV files: the dialect, the lines and their facts, and where records end."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, reduce
from operator import or_
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.errors import SourceNotReadable, SourceSchemaInvalid
from snaploom.files.listed import ListedFile
from snaploom.policy.fileformats import NULL_TEXT
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.records import options_of_files, text_lines, with_numbers
from snaploom.sources.files.snapshots import shown
from snaploom.sources.prefix import normal_uri
from snaploom.spark.types import fold_case
from snaploom.types.schemas import quote

# The dialect of CSV unless a source has options: RFC 4180, from which Spark's own defaults differ.

CSV_OPTIONS: Mapping[str, str] = {
    "mode": "FAILFAST",
    "enforceSchema": "false",
    "nullValue": NULL_TEXT,
}
"""Options of Spark's reader that are the same for all sources."""

_UTF_8 = frozenset(["utf-8", "utf8"])
_RECORD_OPTIONS = frozenset(["multiline", "linesep", "comment", "singlevariantcolumn"])
_WIDE = ("utf-16", "utf-32", "utf16", "utf32", "ucs-2", "x-utf", "unicode")


@dataclass(frozen=True)
class CsvDialect:
    """The options of a source that decide how records are separated."""

    separator: str
    """Between the values of a record."""
    quote: str
    """Around values; empty for none."""
    encoding: str
    ignores_blanks: bool
    """Whether blanks around values do not count."""
    is_strict: bool
    """Whether an ambiguous text is an error."""

    @property
    def is_utf_8(self) -> bool:
        """Whether the bytes of a line are its text."""
        return self.encoding.lower() in _UTF_8

    @property
    def is_wide(self) -> bool:
        """Whether a line end is more than one byte, so that files cannot be split by bytes."""
        return self.encoding.lower().startswith(_WIDE)


def dialect_of(options: Mapping[str, str]) -> CsvDialect | None:
    """The dialect of files whose lines are looked at before they are read; None for none.

    A source that declares how records end (`multiLine`, `lineSep`), or that has comments or
    another escape than doubled quotes, is read as declared.
    """
    given = {name.casefold(): value for name, value in options.items()}
    quote = given.get("quote", '"')
    if _RECORD_OPTIONS & given.keys() or len(quote) > 1 or given.get("escape", quote) != quote:
        return None
    blanks = [given.get(f"ignore{side}whitespace", "") for side in ("leading", "trailing")]
    # A separator as Spark takes it, which has names for some.
    text = given.get("sep", given.get("delimiter", ","))
    return CsvDialect(
        separator={"\\t": "\t", "\\\\": "\\"}.get(text, text),
        quote=quote,
        encoding=given.get("encoding", given.get("charset", "UTF-8")),
        ignores_blanks="true" in [text.lower() for text in blanks],
        is_strict=_is_strict(given),
    )


def default_options(options: Mapping[str, str]) -> Mapping[str, str]:
    """Options of Spark's reader for a source, which options of its own overrule."""
    given = {name.casefold(): value for name, value in options.items()}
    doubled = {"escape": given.get("quote") or '"'}
    strict = {"unescapedQuoteHandling": "RAISE_ERROR"} if _is_strict(given) else {}
    return {**CSV_OPTIONS, **doubled, **strict}


def _is_strict(given: Mapping[str, str]) -> bool:
    return given.get("mode", "FAILFAST").upper() == "FAILFAST"


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
    """The line that is a file's header; empty where only Spark can tell which it is."""
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

    Raises:
        ValueError: a wanted name could be that of several columns.
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


# Lines of CSV files, and the facts that each has about its file, as expressions of Spark.

_SPECIAL = (
    "is_odd", "is_wrong", "has_cr", "has_inner_cr", "is_blank", "is_of_blanks", "has_nul",
)  # fmt: skip
"""Columns of which any makes a line one that is looked at again."""


def lines_of(
    spark: SparkSession, paths: Sequence[str], dialect: CsvDialect, options: Mapping[str, str]
) -> DataFrame:
    """Every line with its file and its place in the file; a line ends before its LF.

    `paths` are globs, as Spark's reader takes them. Only options that choose files and unpack them
    matter.
    """
    if dialect.is_wide:
        reader = spark.read.format("binaryFile").options(**options_of_files(options))
        whole = reader.load(list(paths))
        meta = whole.metadataColumn("_metadata")
        text = sf.decode(sf.col("content"), dialect.encoding)
        text = sf.when(text.startswith("\ufeff"), sf.substring(text, 2, 1 << 30)).otherwise(text)
        pieces = sf.split(sf.regexp_replace(text, "\n\\z", ""), "\n")
        return whole.where(sf.length("content") > 0).select(
            meta.getField("file_path").alias("file"),
            sf.lit(0).alias("block"),
            sf.posexplode(pieces).alias("place", "line"),
        )
    lines = text_lines(spark, paths, options, "\n")
    if dialect.is_utf_8:
        return lines
    # Lines are bytes here. Beyond ASCII UTF-8 does not separate them.
    return lines.withColumn("line", sf.decode(sf.col("line").cast("binary"), dialect.encoding))


def with_facts(lines: DataFrame, dialect: CsvDialect) -> DataFrame:
    """Lines with the facts that each has about its file.

    The column `inside` of `lines` is whether each begins inside quotes.
    """
    quote, sep = sf.lit(dialect.quote), dialect.separator
    line, inside = sf.col("line"), sf.col("inside")
    quotes = (
        sf.length(line) - sf.length(sf.replace(line, quote, sf.lit("")))
        if dialect.quote
        else sf.lit(0)
    )
    # A doubled quote counts twice, and so leaves inside what is inside.
    facts = lines.withColumn("is_odd", quotes % 2 == 1)
    facts = facts.withColumn("ends_inside", inside != sf.col("is_odd"))
    without_cr = sf.substring(line, sf.lit(1), sf.length(line) - 1)
    ends_as_crlf = ~sf.col("ends_inside") & line.endswith("\r")
    facts = facts.withColumn("record", sf.when(ends_as_crlf, without_cr).otherwise(line))
    record = sf.col("record")
    whole = sf.concat(
        sf.when(inside, quote).otherwise(""),
        record,
        sf.when(sf.col("ends_inside"), quote).otherwise(""),
    )
    # Between quotes: what is outside, inside, outside ... and nothing where a quote is doubled.
    parts = sf.split(whole, f"\\Q{dialect.quote}\\E") if dialect.quote else sf.array(whole)
    last = sf.size(parts) - 1

    def is_wrong(part: Column, place: Column) -> Column:
        trimmed = sf.trim(part) if dialect.ignores_blanks else part
        after = (place == 0) | trimmed.startswith(sep)
        before = (place == last) | trimmed.endswith(sep)
        return (place % 2 == 0) & (part != "") & ~(after & before)

    outside = sf.filter(parts, lambda part, place: place % 2 == 0)
    # What Spark's reader takes for an empty line, where every line is a record.
    stripped = sf.regexp_replace(record, "^[\\x00- ]+$", "")
    quoted = quotes > 0
    has_separator = sf.exists(outside, lambda part: part.contains(sep))
    garbled = ~sf.is_valid_utf8(line)
    return facts.select(
        *lines.columns,
        "is_odd",
        "ends_inside",
        garbled.alias("is_garbled"),
        (quoted & sf.exists(sf.filter(parts, is_wrong), lambda _: sf.lit(True))).alias("is_wrong"),
        (record.contains("\r") & sf.exists(outside, lambda p: p.contains("\r"))).alias("has_cr"),
        (record.contains("\r") & ~sf.col("ends_inside")).alias("has_inner_cr"),
        (~inside & (record == "")).alias("is_blank"),
        (~inside & (stripped == "") & (record != "")).alias("is_of_blanks"),
        record.contains("\x00").alias("has_nul"),
        has_separator.alias("has_separator"),
        line.endswith("\r").alias("ends_with_cr"),
    ).withColumn(
        "is_special",
        reduce(or_, map(sf.col, _SPECIAL)),
    )


def numbered(lines: DataFrame, dialect: CsvDialect) -> DataFrame:
    """Lines with their number, and whether they begin inside quotes."""
    if not dialect.quote:
        return with_numbers(lines).withColumn("inside", sf.lit(False))
    text = sf.replace(sf.col("line"), sf.lit(dialect.quote), sf.lit(""))
    is_odd = ((sf.length("line") - sf.length(text)) % 2).alias("odd")
    in_order = Window.partitionBy("file").orderBy("block", "place")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    return (
        with_numbers(lines.select("*", is_odd))
        .withColumn("inside", sf.coalesce(sf.sum("odd").over(before), sf.lit(0)) % 2 == 1)
        .drop("odd")
    )


# Ends of records of CSV files, found by one pass over their lines before they are read.

_WIDENINGS: tuple[tuple[spark_types.DataType, ...], ...] = (
    (spark_types.IntegerType(), spark_types.LongType(), spark_types.DoubleType()),
    (spark_types.DateType(), spark_types.TimestampType()),
)
"""Types that Spark infers of CSV, each of which holds those before it."""


class CsvLayout(Enum):
    """Line separators of one file, with the options by which Spark reads them."""

    LINES = "every line is a record"
    LF = "values go over several lines, records end with LF"
    CRLF = "values go over several lines, records end with CRLF"

    @property
    def options(self) -> Mapping[str, str]:
        """Of Spark's reader."""
        if self is CsvLayout.LINES:
            return {"multiLine": "false"}
        return {"multiLine": "true", "lineSep": "\n" if self is CsvLayout.LF else "\r\n"}


@dataclass(frozen=True)
class _File:
    """Findings of the second pass in a file; numbers are those of lines, from 1, None for none."""

    file: str
    bad: int | None
    lone_cr: int | None
    blank: int | None
    has_nul: bool
    ends_inside: bool
    opened: int | None
    lf: int
    crlf: int
    is_one_column: bool
    needs_whole: bool


def layouts_of(
    spark: SparkSession,
    paths: Sequence[str],
    dialect: CsvDialect,
    options: Mapping[str, str],
    resource: str,
) -> Mapping[str, CsvLayout]:
    """Return the line separators of files with others than plain lines, by Spark's URL.

    `paths` are globs, as Spark's reader takes them.

    Raises:
        SourceNotReadable: a file is not of its character set, or could mean several things.
    """
    lines = lines_of(spark, paths, dialect, options)
    seen = with_facts(lines.withColumn("inside", sf.lit(False)), dialect)
    found = seen.groupBy("file").agg(sf.max("is_garbled"), sf.max("is_special")).collect()
    for row in found:
        if dialect.is_strict and row[1]:
            raise _not_of_charset(row[0], dialect, resource)
    # Spark finds line ends of more than one byte only in files that it reads as a whole.
    special = [row[0] for row in found if row[2] or dialect.is_wide]
    if not special:
        return {}
    once_more = numbered(lines.where(sf.col("file").isin(special)), dialect)
    layouts = {}
    for file in _second_look(once_more, dialect):
        for fault in _faults(file, dialect, resource) if dialect.is_strict else ():
            raise fault
        layouts[file.file] = _layout(file)
    return layouts


def _second_look(lines: DataFrame, dialect: CsvDialect) -> Iterator[_File]:
    seen = with_facts(lines, dialect)
    number = sf.col("number")

    def first(flag: str) -> Column:
        return sf.min(sf.when(sf.col(flag), number))

    ends = sf.col("ends_inside")
    rows = seen.groupBy("file").agg(
        first("is_wrong").alias("bad"),
        first("has_cr").alias("lone_cr"),
        first("is_blank").alias("blank"),
        sf.max("has_nul").alias("has_nul"),
        sf.max_by("ends_inside", "number").alias("ends_inside"),
        sf.max(sf.when(ends & ~sf.col("inside"), number)).alias("opened"),
        sf.max(number).alias("last"),
        sf.count_if(~ends & ~sf.col("ends_with_cr")).alias("lf"),
        sf.count_if(~ends & sf.col("ends_with_cr")).alias("crlf"),
        sf.max_by(~ends & ~sf.col("ends_with_cr"), "number").alias("last_is_lf"),
        sf.max("has_separator").alias("has_separator"),
        sf.max(
            sf.col("is_odd")
            | sf.col("has_inner_cr")
            | (sf.col("is_of_blanks") & sf.col("has_separator"))
        ).alias("whole"),
        sf.max(sf.col("is_of_blanks")).alias("blanks"),
    )
    for row in rows.collect():
        yield _File(
            file=row["file"],
            bad=row["bad"],
            lone_cr=row["lone_cr"],
            blank=row["blank"],
            has_nul=row["has_nul"],
            ends_inside=row["ends_inside"],
            opened=row["opened"],
            # The last record of a file may end with the file.
            lf=row["lf"] - bool(row["last_is_lf"] and row["crlf"]),
            crlf=row["crlf"],
            is_one_column=not row["has_separator"],
            needs_whole=dialect.is_wide
            or row["whole"]
            or (row["blanks"] and not row["has_separator"]),
        )


def _layout(file: _File) -> CsvLayout:
    if not file.needs_whole:
        return CsvLayout.LINES
    return CsvLayout.CRLF if file.crlf else CsvLayout.LF


def _faults(file: _File, dialect: CsvDialect, resource: str) -> Iterator[SourceNotReadable]:
    quote = dialect.quote

    def fault(message: str, line: int | None, expected: str, hint: str) -> SourceNotReadable:
        place = f"line {line} of {unquote(file.file)}" if line else unquote(file.file)
        return SourceNotReadable(
            message,
            resource=resource,
            path="spec.hdfsLike.formatOptions",
            found=place,
            expected=expected,
            hint=f"{hint}, or set formatOptions by which Spark reads such files",
        )

    if file.bad is not None:
        yield fault(
            f"a CSV record is ambiguous: a quote ({quote}) stands inside a value that is not "
            "quoted, or text stands between a quote and the separator",
            file.bad,
            f"values with a quote, a separator ({dialect.separator!r}) or a line end in quotes, "
            "and quotes in them doubled (RFC 4180)",
            'write it so; escape: "\\\\" reads quotes that a backslash escapes, '
            'quote: "" takes quotes as text',
        )
    if file.ends_inside:
        yield fault(
            "a quoted value of a CSV file does not end",
            file.opened,
            "a closing quote for every opening one",
            "the file was cut short, or a quote inside a value is not doubled: write it again",
        )
    if file.lone_cr is not None:
        yield fault(
            "a CSV record is ambiguous: a lone carriage return (CR) is outside quotes",
            file.lone_cr,
            "records that end with LF or CRLF, and other line ends inside quotes",
            'write it so; lineSep: "\\r" reads records that end with CR',
        )
    if file.blank is not None and file.is_one_column:
        yield fault(
            "a CSV file of one column has an empty line, which is NULL for some programs and "
            "nothing for others",
            file.blank,
            'NULL or an empty text written as ""',
            'write "" for it, or remove the line; multiLine: "false" leaves empty lines out',
        )
    if not file.needs_whole:
        return
    if file.lf and file.crlf:
        yield fault(
            "records of a CSV file end with LF and with CRLF, and values go over several lines",
            None,
            "one line end for all records of a file",
            "write the file with one of the two",
        )
    if file.has_nul and file.crlf:
        yield fault(
            "a CSV file whose values go over several lines, and whose records end with CRLF, has a "
            "character NUL",
            None,
            "text without U+0000",
            "remove it, or end records with LF",
        )


def _not_of_charset(file: str, dialect: CsvDialect, resource: str) -> SourceNotReadable:
    return SourceNotReadable(
        f"a CSV file is not {dialect.encoding}",
        resource=resource,
        path="spec.hdfsLike.formatOptions.encoding",
        found=unquote(file),
        expected=f"text in {dialect.encoding}" + ", the default" * dialect.is_utf_8,
        hint="give formatOptions encoding, such as ISO-8859-1 or UTF-16, or write "
        "the file in UTF-8",
    )


# The CSV files of one source as one frame, each read as it is laid out.

_READ_AT_ONCE = 16
"""Headers that are read at the same time: on stores all of the time is waiting."""
_AS_TEXT = {
    "header": "false", "inferSchema": "false", "mode": "PERMISSIVE", "nullValue": NULL_TEXT,
    "emptyValue": "",
}  # fmt: skip
"""Options by which Spark reads a header as a record."""
_CORRUPT = "_corrupt_record"


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
    """Headers by their line, or by the URI of a file whose line says nothing."""

    def look_at(self, files: Sequence[ListedFile]) -> None:
        """Find out the forms of files, each once.

        Raises:
            SourceNotReadable: as `layouts_of`.
        """
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

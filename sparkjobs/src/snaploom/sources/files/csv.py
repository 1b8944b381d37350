"""Records of CSV files: the dialect, the lines and their facts, and where records end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import or_
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from snaploom.errors import SourceNotReadable
from snaploom.policy.fileformats import NULL_TEXT
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.records import options_of_files, text_lines, with_numbers

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
        return is_wide(self.encoding)


def is_wide(encoding: str) -> bool:
    """Whether characters of a set are of several bytes, of which a line end is one."""
    return encoding.lower().startswith(_WIDE)


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


# Lines that are whole records, and whose values no type changes: one expression for each line.


@dataclass(frozen=True)
class LinesOf:
    """Files that have one header, and the values that their columns may have."""

    uris: Sequence[str]
    header: str = ""
    """The line that each begins with, a plain record; empty where there is none."""
    columns: Sequence[str | None] | None = None
    """Of each column a regular expression of harmless values, None where any is; None where it is
    not known which columns there are."""


def plain_record(dialect: CsvDialect, columns: Sequence[str | None] | None = None) -> str:
    """A regular expression, of Java and of Python, of records on one line that have no line end.

    No step goes back into a value that it has left. Of bytes that are no text Java makes U+FFFD,
    which no plain record has. `columns` are those of `LinesOf`: with them a record has so many
    values, and each that has an expression matches it, in quotes or without them, or is nothing.
    """
    quote, sep = map(_literal, (dialect.quote, dialect.separator))
    inner = f"[^{quote}\\r\\n\\x00\ufffd]"
    bare = f"[^{quote}{_literal(dialect.separator[:1])}\\r\\n\\x00\ufffd]++"
    quoted = f"{quote}{inner}*+(?:{quote}{quote}{inner}*+)*+{quote}"
    value = f"(?:{bare}|{quoted})?+" if quote else f"(?:{bare})?+"
    if columns is None:
        return f"{value}(?:{sep}{value})*+"
    return sep.join(
        value if one is None else f"(?:{one}|{quote}(?:{one}){quote})?" for one in columns
    )


def _literal(text: str) -> str:
    """A text as an expression, inside brackets or outside."""
    return "".join(sign if sign.isalnum() or ord(sign) > 127 else f"\\{sign}" for sign in text)


def _is_plain(dialect: CsvDialect, columns: Sequence[str | None] | None = None) -> Column:
    """Whether a line is a plain record and not of blanks only, so that no fact about it matters."""
    pattern = f"\\A(?![\\x00- ]*+\\z){plain_record(dialect, columns)}\\r?\\z"
    return sf.col("line").rlike(pattern)


def unproved_files(
    spark: SparkSession, files: Sequence[LinesOf], dialect: CsvDialect, options: Mapping[str, str]
) -> frozenset[str]:
    """Files with lines that are no plain records of harmless values, by Spark's URL.

    A header may stand once in its file.
    """

    def others(one: LinesOf) -> DataFrame:
        header = [one.header, f"{one.header}\r"] if one.header else []
        lines = lines_of(spark, list(map(escape_glob, one.uris)), dialect, options)
        is_header = sf.col("line").isin(*header) if header else sf.lit(False)
        # Of a line that is filtered, the name of its file costs nothing.
        return lines.where(~_is_plain(dialect, one.columns)).select(
            sf.input_file_name().alias("file"), is_header.cast("int").alias("is_header")
        )

    found = reduce(DataFrame.unionAll, map(others, files)).groupBy("file")
    rows = found.agg(sf.min("is_header"), sf.sum("is_header")).collect()
    return frozenset(file for file, least, headers in rows if not least or headers > 1)


# Ends of records of CSV files, found by one pass over their lines before they are read.


class CsvLayout(Enum):
    """Line separators of one file, with the options by which Spark reads them."""

    LINES = "every line is a record"
    LF = "values go over several lines, records end with LF"
    CRLF = "values go over several lines, records end with CRLF"
    WHOLE = "a file cannot be split by bytes, records end as declared"

    @property
    def options(self) -> Mapping[str, str]:
        """Of Spark's reader."""
        if self is CsvLayout.LINES:
            return {"multiLine": "false"}
        if self is CsvLayout.WHOLE:
            return {"multiLine": "true"}
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
    """
    lines = lines_of(spark, paths, dialect, options)
    suspects = lines if dialect.is_wide else lines.where(~_is_plain(dialect))
    seen = with_facts(suspects.withColumn("inside", sf.lit(False)), dialect)
    found = seen.groupBy("file").agg(sf.max("is_garbled"), sf.max("is_special")).collect()
    for row in found:
        if dialect.is_strict and row[1]:
            raise SourceNotReadable(
                f"a CSV file is not {dialect.encoding}",
                resource=resource,
                path="spec.hdfsLike.formatOptions.encoding",
                found=unquote(row[0]),
                expected=f"text in {dialect.encoding}" + ", the default" * dialect.is_utf_8,
                hint="give formatOptions encoding, such as ISO-8859-1 or UTF-16, or write "
                "the file in UTF-8",
            )
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

"""Where the records of CSV files end, found by one pass over their lines before they are read.

Spark reads a CSV file in pieces only if no value goes over several lines, and takes one line end
for all files otherwise; it takes what RFC 4180 leaves open for whatever comes first. So the lines
are looked at: a line has its values outside quotes where the quotes before it are even. Files whose
every line is a record are read in pieces; of the others it is known how records end. What could
mean several things is an error that names file and line.

The pass is Spark's, over lines of text in pieces. Only files that have anything beyond plain lines
are looked at a second time, line after line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.engine.sources.files.text.csvdialect import CsvDialect
from snaploom.engine.sources.files.text.csvlines import lines_of, numbered, with_facts
from snaploom.errors import SourceNotReadable

_WIDENINGS: tuple[tuple[spark_types.DataType, ...], ...] = (
    (spark_types.IntegerType(), spark_types.LongType(), spark_types.DoubleType()),
    (spark_types.DateType(), spark_types.TimestampType()),
)
"""Types that Spark infers of CSV, each of which holds those before it."""


class CsvLayout(Enum):
    """How the records of one file end, with the options by which Spark reads them."""

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
    """How records end in each file that has anything but plain lines, by URL as Spark has it.

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

"""Lines of CSV files, and the facts that each has about its file, as expressions of Spark.

A line is split at its quotes: what is between them is outside, inside, outside ... of values, and
nothing where a quote is doubled. So no value has to be parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from snaploom.engine.sources.files.text.csvdialect import CsvDialect
from snaploom.engine.sources.files.text.lines import options_of_files, text_lines, with_numbers

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

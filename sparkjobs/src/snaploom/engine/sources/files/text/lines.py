"""Files of text as their lines, each with its file and its place, for any purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from snaploom.planning.fileformats import OF_FILES

_OF_FILES = frozenset(name.casefold() for name in (*OF_FILES, "compression", "codec"))
"""Options that decide which files are read, and how they are unpacked."""


def options_of_files(options: Mapping[str, str]) -> dict[str, str]:
    """Options that hold for any way to read the same files."""
    return {name: value for name, value in options.items() if name.casefold() in _OF_FILES}


def text_lines(
    spark: SparkSession,
    paths: Sequence[str],
    options: Mapping[str, str],
    line_end: str | None = None,
    charset: str | None = None,
) -> DataFrame:
    """Every line with its `file` (a URL), the `block` of the file, and its `place` in there.

    `paths` are globs, as Spark's reader takes them. Only options that choose files and unpack them
    matter. Without `line_end` any usual one divides lines; without `charset` the text is UTF-8.
    """
    reader = spark.read.format("text").options(**options_of_files(options))
    if charset is not None:
        reader = reader.option("encoding", charset)  # of what separates lines, and no more
    frame = (reader if line_end is None else reader.option("lineSep", line_end)).load(list(paths))
    meta = frame.metadataColumn("_metadata")
    return frame.select(
        meta.getField("file_path").alias("file"),
        meta.getField("file_block_start").alias("block"),
        sf.monotonically_increasing_id().alias("place"),
        decoded(charset).alias("line"),
    )


def decoded(charset: str | None) -> Column:
    """The text of `value`, which has the bytes of a file as they are."""
    value = sf.col("value")
    return value if charset is None else sf.decode(value.cast("binary"), charset)


def with_numbers(lines: DataFrame) -> DataFrame:
    """Lines with their `number` in the file, from 1."""
    in_order = Window.partitionBy("file").orderBy("block", "place")
    return lines.withColumn("number", sf.row_number().over(in_order))

"""What the files of a proof's table hold, value by value, asked of Spark with skipping off.

Tests that write metadata about the files by hand, or need conditions at their edges, start here and
not from anything that the product keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from support.skipping.onequalsoff import path_of
from support.skipping.prooftables import ProofTable

from snaploom.skipping.spark.interfaces.enable import without_skipping

Plain = bool | int | float | Decimal | bytes
"""A value: days and microseconds since 1970 for dates and moments, bytes for text."""

_PLAIN_FORMS = {
    "string": "CAST({} AS binary)",
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(CAST({} AS timestamp))",
}
"""How Spark is asked for values; moments without zone are read in UTC, the session's zone."""


@dataclass(frozen=True)
class FileFacts:
    """One file."""

    path: str
    """Its path, without scheme and authority."""
    modified: int
    """Milliseconds since 1970."""
    values: Mapping[str, Sequence[Plain]]
    """Distinct values that are not NULL, in Spark's order, by column or expression."""


@dataclass(frozen=True)
class Facts:
    """All files of a table."""

    types: Mapping[str, str]
    """Spark types, by column or expression."""
    files: tuple[FileFacts, ...]


def facts_of(spark: SparkSession, table: ProofTable, expressions: Sequence[str] = ()) -> Facts:
    """Read a table once, with skipping off.

    Args:
        spark: a session in UTC.
        table: its columns are read.
        expressions: what else is asked of each row.
    """
    texts = [*table.columns, *expressions]
    with without_skipping(spark):
        frame = table.frame(spark)
        schema = frame.select(*map(sql.expr, texts)).schema
        types = {
            text: field.dataType.simpleString()
            for text, field in zip(texts, schema.fields, strict=True)
        }
        asked = [sql.expr(_PLAIN_FORMS.get(types[text], "{}").format(text)) for text in texts]
        rows = frame.select(sql.col("_metadata.file_path").alias("file"), *asked).collect()
        paths = sorted(path_of(uri) for uri in frame.inputFiles())
    found: dict[str, list[tuple[object, ...]]] = {path: [] for path in paths}
    for row in rows:
        found[path_of(row[0])].append(tuple(row)[1:])
    files = tuple(_file(path, texts, types, held) for path, held in found.items())
    return Facts(types, files)


def order_of(value: Plain, data_type: str) -> tuple[int, object]:
    """The rank of a value in Spark's order: NaN is the greatest, text is compared by bytes."""
    if data_type in ("float", "double"):
        number = float(str(value))
        return (1, 0.0) if math.isnan(number) else (0, number)
    return 0, value


def _file(
    path: str, texts: Sequence[str], types: Mapping[str, str], rows: list[tuple[object, ...]]
) -> FileFacts:
    values: dict[str, Sequence[Plain]] = {}
    for place, text in enumerate(texts):
        column = [row[place] for row in rows]
        kept = [bytes(each) if isinstance(each, bytearray) else each for each in column]
        # By their looks, since NaN equals nothing and -0.0 equals 0.0.
        distinct = {repr(each): each for each in kept if each is not None}
        data_type = types[text]
        values[text] = sorted(distinct.values(), key=lambda each: order_of(each, data_type))
    return FileFacts(path, Path(path).stat().st_mtime_ns // 10**6, values)

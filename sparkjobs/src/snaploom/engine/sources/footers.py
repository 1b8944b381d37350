"""Snapshot values out of footers: Parquet files that say themselves what a column holds.

Where the statistics of every row group give one value as the least and the greatest, and no NULL,
that value is all that there is, and no data is read. Any doubt, about any file, and the answer is
None: then the column is read. Only files of a local disk are asked; on other stores a footer takes
a round trip or two from this process, and Spark's own tasks are quicker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as spark

from snaploom.engine.fields import Found
from snaploom.engine.sources.files import LISTED_AT_ONCE, ListedFile

Value = str | int

_LOCAL = "file:"
_FIRST_DAY = date(1970, 1, 1)
_GREGORIAN = date(1582, 10, 15)
"""Earlier days mean others in files of another calendar, which Spark takes into account."""
_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)


def constant_values(files: Sequence[ListedFile], field: Found) -> frozenset[Value] | None:
    """The values of a column in all files, as far as footers tell; None where one does not.

    Args:
        files: Parquet files.
        field: a column of all of them.

    Returns:
        Text, whole numbers, or for dates the days since 1970.
    """
    if len(field.parts) != 1 or not all(file.uri.startswith(_LOCAL) for file in files):
        return None
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        told = pool.map(lambda file: _values(file, field), files)
        return _united(told)


def _united(told: Iterable[frozenset[Value] | None]) -> frozenset[Value] | None:
    found: set[Value] = set()
    for values in told:
        if values is None:
            return None
        found |= values
    return frozenset(found)


def _values(file: ListedFile, field: Found) -> frozenset[Value] | None:
    try:
        metadata = pq.read_metadata(file.uri.removeprefix(_LOCAL))
        index = _index(metadata, field)
        if index is None:
            return None
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        return _united(_value(group.column(index)) for group in groups if group.num_rows)
    except (OSError, pa.ArrowException):
        return None


def _index(metadata: pq.FileMetaData, field: Found) -> int | None:
    """Where the column is among the file's, if it is of the type that Spark takes it for."""
    (name,) = field.parts
    schema = metadata.schema
    found = [i for i in range(len(schema)) if schema.column(i).path.lower() == name.lower()]
    if len(found) != 1:
        return None
    column = schema.column(found[0])
    kind = column.physical_type, column.logical_type.type
    is_plain = column.path == name and column.max_repetition_level == 0
    return found[0] if is_plain and kind in _stored_as(field.data_type) else None


def _stored_as(data_type: spark.DataType) -> tuple[tuple[str, str], ...]:
    """Physical and logical types in which the statistics are the column's own values."""
    if isinstance(data_type, spark.StringType):
        return (("BYTE_ARRAY", "STRING"),)
    if isinstance(data_type, spark.DateType):
        return (("INT32", "DATE"),)
    if isinstance(data_type, _WHOLE):
        return (("INT32", "NONE"), ("INT64", "NONE"), ("INT32", "INT"), ("INT64", "INT"))
    return ()


def _value(column: pq.ColumnChunkMetaData) -> frozenset[Value] | None:
    """The one value of a row group, or None."""
    statistics = column.statistics
    if statistics is None or not (statistics.has_min_max and statistics.has_null_count):
        return None
    least, greatest = statistics.min, statistics.max
    if statistics.null_count or least != greatest:
        return None
    if isinstance(least, date):
        is_gregorian = least >= _GREGORIAN
        return frozenset([(least - _FIRST_DAY).days]) if is_gregorian else None
    return frozenset([least]) if isinstance(least, str | int) else None

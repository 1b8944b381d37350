"""What Parquet files say about themselves: their schema, and what one column holds at most.

Where the statistics of every row group give one value as the least and the greatest, and no NULL,
that value is all that there is, and no data is read. Any doubt about a file, and its column is
read. Footers are read from this process, several at a time: of local files by Arrow alone, of all
others by Hadoop's client, which asks for the end of the file only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as spark

from snaploom.engine.fields import Found, fold_case
from snaploom.hadoop.files import ListedFile
from snaploom.storage.layout import content_hash

Value = str | int

EndOf = Callable[[ListedFile, int], bytes]
"""Reads so many bytes at the end of a file, or raises an `OSError`; from several threads."""

READ_AT_ONCE = 16
"""Footers that are read at the same time. On stores that answer in 20 ms and more all of the time
is waiting; each takes one or two requests."""

_LOCAL = "file:"
_TAIL = 8
"""Bytes at the end of a Parquet file: the length of its footer, and the format's mark."""
_FIRST_BYTES = 64 << 10
"""Bytes that are asked for at once, which holds the footer of most files; S3's client takes no
less in one request."""
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Key under which Spark writes its own schema, which decides what it reads."""
_FIRST_DAY = date(1970, 1, 1)
_GREGORIAN = date(1582, 10, 15)
"""Earlier days mean others in files of another calendar, which Spark takes into account."""
_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)


@dataclass(frozen=True, slots=True)
class Footer:
    """What is wanted of one footer."""

    schema_hash: str
    """Equal for files of which Spark infers one schema."""
    column: ColumnStatistics | None
    """The column, where there is one of its name and all row groups tell one value each."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """A column without structs around it, whose statistics tell all that it holds."""

    name: str
    """As the file spells it."""
    kind: tuple[str, str]
    """Physical and logical type."""
    values: frozenset[Value]
    """Text, whole numbers, or for dates the days since 1970."""

    def of(self, field: Found) -> frozenset[Value] | None:
        """The values, if the file's column is the one that Spark reads, and means what it says."""
        is_same = field.parts == (self.name,) and self.kind in _stored_as(field.data_type)
        return self.values if is_same else None


def read_footers(
    files: Sequence[ListedFile], name: str | None, end_of: EndOf
) -> Iterator[Footer | None]:
    """The footers of Parquet files, in their order; None where one cannot be read.

    Args:
        files: the files.
        name: of the column that is wanted, in any case; None for none.
        end_of: reads what is not local.
    """

    def read(file: ListedFile) -> Footer | None:
        try:
            if file.uri.startswith(_LOCAL):
                metadata = pq.read_metadata(file.uri.removeprefix(_LOCAL))
            else:
                metadata = pq.read_metadata(pa.BufferReader(_from_footer(file, end_of)))
            return _footer(metadata, name)
        except (OSError, ValueError, pa.ArrowException):
            return None

    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        yield from pool.map(read, files)


def _from_footer(file: ListedFile, end_of: EndOf) -> bytes:
    """The file from where its footer begins, or from before."""
    end = end_of(file, min(file.length, _FIRST_BYTES))
    length = int.from_bytes(end[-_TAIL:-4], "little") + _TAIL
    return end if length <= len(end) else end_of(file, min(file.length, length))


def _footer(metadata: pq.FileMetaData, name: str | None) -> Footer:
    stored: Mapping[bytes, bytes] = metadata.metadata or {}
    told = str(metadata.schema).partition("\n")[2].encode()  # the first line has an address
    schema_hash = content_hash(told + b"\0" + stored.get(_SPARK_SCHEMA, b""))
    return Footer(schema_hash, None if name is None else _column(metadata, fold_case(name)))


def _column(metadata: pq.FileMetaData, name: str) -> ColumnStatistics | None:
    schema = metadata.schema
    found = [i for i in range(len(schema)) if fold_case(schema.column(i).path) == name]
    if len(found) != 1:
        return None
    column = schema.column(found[0])
    if column.max_repetition_level:
        return None
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    values = _united(_value(group.column(found[0])) for group in groups if group.num_rows)
    if values is None:
        return None
    return ColumnStatistics(column.path, (column.physical_type, column.logical_type.type), values)


def _united(told: Iterable[frozenset[Value] | None]) -> frozenset[Value] | None:
    found: set[Value] = set()
    for values in told:
        if values is None:
            return None
        found |= values
    return frozenset(found)


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
    if type(least) is date:
        is_gregorian = least >= _GREGORIAN
        return frozenset([(least - _FIRST_DAY).days]) if is_gregorian else None
    return frozenset([least]) if isinstance(least, str | int) else None

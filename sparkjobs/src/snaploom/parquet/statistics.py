"""Statistics in Parquet footers as proofs about columns, without reading a data page.

Sources and indexes trust statistics by this one rule. Its answers must equal what Spark would read:
a wrong bound loses rows. So it lists what is known to hold, and everything else is left to a scan:

- the writer is one whose statistics are known to be right (`_WRITERS`); others are scanned;
- the Parquet type is exactly what Spark reads as the term's type (`_reads_as`); widened integers,
  unsigned integers, milliseconds, nanoseconds, INT96 and other decimals are scanned;
- statistics of float and double may hide NaN (rule S2): only counts are taken from them;
- dates before 1582-10-15 and timestamps before 1900 may be rebased by the reader, unless Spark 3 or
  newer wrote them in the proleptic calendar, by its own note;
- bounds of text of 64 bytes or more may have been cut (rule S3): taken only from Arrow, which omits
  bounds rather than cutting them. A shorter cut bound, which Parquet's Java library writes when
  asked to, is still a bound: it was rounded downwards or upwards;
- a column that is not in the file is NULL in every row, unless it was added with a default (rule
  S19).

Source of the footer's fields: the Parquet format's `parquet.thrift` and `LogicalTypes.md`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.types.schemas import INTEGER_BITS

_WRITERS = {"parquet-mr": (1, 10), "parquet-cpp-arrow": (8, 0), "DuckDB": (1, 1)}
"""Writers whose statistics are trusted, from which version on. Parquet's Java library ordered text
by signed bytes before 1.10, Arrow ordered decimals so before 4; each of these is tested."""
_WRITER = re.compile(r"(parquet-mr|parquet-cpp-arrow|DuckDB) version v?(\d+)\.(\d+)")

_NEVER_CUTS = "parquet-cpp-arrow"
_CUT_LENGTH = 64
"""Shortest length at which writers cut text unasked, in bytes."""

_GREGORIAN_DAY = -141_427
"""1582-10-15 in days: from here on the calendars agree about dates."""
_GREGORIAN_MICROS = -2_208_902_400_000_000
"""1900-01-02T00:00:00Z in microseconds: from here on Spark rebases no timestamp in any zone."""

_SPARK_VERSION = b"org.apache.spark.version"
_SPARK_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
_SPARK_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_SPARK_TIME_ZONE = b"org.apache.spark.timeZone"

_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


Value = bool | int | Decimal | bytes
"""A value in Catalyst's internal form: text is UTF-8, a date its days since 1970."""


@dataclass(frozen=True)
class ColumnStatistics:
    """Exact facts about a column that a footer proves."""

    values: int
    """Rows in which it is not NULL."""
    nulls: int
    """Rows in which it is NULL."""
    bounds: tuple[tuple[Value, Value], ...] | None
    """Least and greatest value of each row group that has values; None where they are not sure."""


def depends_on_zone(metadata: pq.FileMetaData) -> bool:
    """Whether Spark wrote in the old calendar, which was a local one, and does not state where.

    Timestamps of such a file are other ones when the reader's time zone is another.
    """
    notes = metadata.metadata or {}
    version = notes.get(_SPARK_VERSION)
    is_old = version is not None and version < b"3."
    is_legacy = _SPARK_LEGACY_CALENDAR in notes or _SPARK_LEGACY_INT96 in notes
    return (is_old or is_legacy) and _SPARK_TIME_ZONE not in notes


def column_statistics(
    metadata: pq.FileMetaData, names: Sequence[str], data_type: str, *, is_case_sensitive: bool
) -> ColumnStatistics | None:
    """Facts that a footer proves about a column or field; None if nothing or it is absent."""
    leaf = _trusted_leaf(metadata, names, data_type, is_case_sensitive)
    if leaf is None:
        return None
    row_groups = range(metadata.num_row_groups)
    return leaf_statistics(metadata, leaf, data_type, metadata.num_rows, row_groups)


def leaf_statistics(
    metadata: pq.FileMetaData, leaf: int, data_type: str, rows: int, row_groups: range
) -> ColumnStatistics | None:
    """Facts that a footer, perhaps of several files, proves about a leaf from `trusted_leaf`."""
    groups = _groups(metadata, leaf, row_groups)
    counts = _counts(metadata, leaf, groups, rows)
    if counts is None:
        return None
    values, nulls = counts
    bounds = _bounds(metadata, groups, data_type) if values else ()
    return ColumnStatistics(values, nulls, bounds)


ABSENT = -1
"""In the place of a leaf: the file has none."""


def trusted_leaf(
    metadata: pq.FileMetaData, names: Sequence[str], data_type: str, *, is_case_sensitive: bool
) -> int | None:
    """Position of a trusted leaf; `ABSENT` if the file surely lacks it, None if unsure.

    It depends on only the schema, the writer and the notes of the footer.
    """
    if _leaf(metadata, names, is_case_sensitive) is ABSENT:
        return ABSENT
    return _trusted_leaf(metadata, names, data_type, is_case_sensitive)


def readable_leaf(
    metadata: pq.FileMetaData, names: Sequence[str], data_type: str, *, is_case_sensitive: bool
) -> int | None:
    """Position of the leaf with exactly the values Spark reads; None if unsure or absent."""
    leaf = _trusted_leaf(metadata, names, data_type, is_case_sensitive)
    if leaf is None or _is_never_rebased(None, data_type, metadata):
        return leaf
    # The file does not name its calendar, but its bounds may show that it does not matter.
    groups = _groups(metadata, leaf, range(metadata.num_row_groups))
    counts = _counts(metadata, leaf, groups, metadata.num_rows)
    if counts is None:
        return None
    is_sure = counts[0] == 0 or _bounds(metadata, groups, data_type) is not None
    return leaf if is_sure else None


def stored_column(
    metadata: pq.FileMetaData, name: str, among: Sequence[str]
) -> tuple[str, str] | None:
    """Name in the file and type (the first suitable of `among`) of a column; None if not one."""
    leaf = _leaf(metadata, (name,), is_case_sensitive=False)
    if leaf is None or leaf is ABSENT:
        return None
    column = metadata.schema.column(leaf)
    return next(((column.path, each) for each in among if _reads_as(column, each)), None)


def _trusted_leaf(
    metadata: pq.FileMetaData, names: Sequence[str], data_type: str, is_case_sensitive: bool
) -> int | None:
    """Position of a leaf of the type, by a writer whose statistics are trusted."""
    leaf = _leaf(metadata, names, is_case_sensitive)
    if leaf is None or leaf is ABSENT or _trusted_writer(metadata) is None:
        return None
    column = metadata.schema.column(leaf)
    return None if column.max_repetition_level > 0 or not _reads_as(column, data_type) else leaf


def same_name(one: str, other: str, is_case_sensitive: bool) -> bool:
    """Whether Spark takes two names of columns for the same."""
    return one == other if is_case_sensitive else one.lower() == other.lower()


def _leaf(metadata: pq.FileMetaData, names: Sequence[str], is_case_sensitive: bool) -> int | None:
    """Position of a term's leaf; `ABSENT` when the file lacks it, None when that is not sure."""

    def folded(name: str) -> str:
        return name if is_case_sensitive else name.lower()

    try:
        fields = list(metadata.schema.to_arrow_schema())
    except (NotImplementedError, pa.ArrowException):
        return None
    for depth, name in enumerate(names):
        found = [one for one in fields if folded(one.name) == folded(name)]
        if not found:
            return ABSENT
        is_last = depth == len(names) - 1
        if len(found) > 1 or (not is_last and not pa.types.is_struct(found[0].type)):
            return None
        if not is_last:
            fields = list(found[0].type)
    # Paths are joined with dots, so a name with a dot may look like a nested field.
    path = folded(".".join(names))
    leaves = [
        position
        for position in range(metadata.num_columns)
        if folded(metadata.schema.column(position).path) == path
    ]
    return leaves[0] if len(leaves) == 1 else None


def _trusted_writer(metadata: pq.FileMetaData) -> str | None:
    try:
        match = _WRITER.match(metadata.created_by or "")
    except UnicodeDecodeError:
        return None
    if match is None or (int(match[2]), int(match[3])) < _WRITERS[match[1]]:
        return None
    return match[1]


def _reads_as(column: pq.ColumnSchema, data_type: str) -> bool:
    physical, kind = column.physical_type, column.logical_type.type
    if data_type in INTEGER_BITS:
        bits = INTEGER_BITS[data_type]
        if physical != ("INT64" if bits == 64 else "INT32"):
            return False
        if kind == "NONE":
            return bits >= 32
        return kind == "INT" and str(column.logical_type) == f"Int(bitWidth={bits}, isSigned=true)"
    decimal = _DECIMAL.fullmatch(data_type)
    if decimal is not None:
        same = (column.precision, column.scale) == (int(decimal[1]), int(decimal[2]))
        return kind == "DECIMAL" and same
    if data_type in ("timestamp", "timestamp_ntz"):
        text = str(column.logical_type)
        utc = "true" if data_type == "timestamp" else "false"
        is_same = f"isAdjustedToUTC={utc}," in text and "timeUnit=microseconds" in text
        return physical == "INT64" and kind == "TIMESTAMP" and is_same
    return (data_type, physical, kind) in _PLAIN


_PLAIN = {
    ("boolean", "BOOLEAN", "NONE"),
    ("float", "FLOAT", "NONE"),
    ("double", "DOUBLE", "NONE"),
    ("date", "INT32", "DATE"),
    ("string", "BYTE_ARRAY", "STRING"),
    ("binary", "BYTE_ARRAY", "NONE"),
}
"""Spark's type, Parquet's physical type, Parquet's logical type."""


class _Group(NamedTuple):
    rows: int
    values: int
    """Rows as the leaf counts them, those in which it is NULL included."""
    statistics: pq.Statistics | None


def _groups(metadata: pq.FileMetaData, leaf: int, row_groups: range) -> list[_Group]:
    found = []
    for position in row_groups:
        group = metadata.row_group(position)
        column = group.column(leaf)
        statistics = column.statistics if group.num_rows else None
        found.append(_Group(group.num_rows, column.num_values, statistics))
    return found


def _counts(
    metadata: pq.FileMetaData, leaf: int, groups: Iterable[_Group], rows_of_the_file: int
) -> tuple[int, int] | None:
    """Rows in which the leaf is not NULL, and in which it is; None unless every group states it."""
    is_required = metadata.schema.column(leaf).max_definition_level == 0
    rows = nulls = 0
    for group in groups:
        rows += group.rows
        if group.rows == 0 or is_required:
            continue
        statistics = group.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        null_count = statistics.null_count
        if group.values != group.rows or not 0 <= null_count <= group.rows:
            return None
        nulls += null_count
    return (rows - nulls, nulls) if rows == rows_of_the_file else None


def _bounds(
    metadata: pq.FileMetaData, groups: Iterable[_Group], data_type: str
) -> tuple[tuple[Value, Value], ...] | None:
    if data_type in ("float", "double"):
        return None
    found: list[tuple[Value, Value]] = []
    for group in groups:
        statistics = group.statistics
        nulls = statistics.null_count if statistics is not None else None
        if group.rows == 0 or nulls == group.rows:
            continue
        if statistics is None or not statistics.has_min_max:
            return None
        low, high = (_value(raw, data_type) for raw in (statistics.min_raw, statistics.max_raw))
        if low is None or high is None or low > high:  # type: ignore[operator]
            return None
        found.append((low, high))
    if not found or (isinstance(found[0][0], bytes) and not _is_uncut(found, metadata)):
        return None
    least = min(low for low, _ in found)
    return tuple(found) if _is_never_rebased(least, data_type, metadata) else None


def _value(raw: object, data_type: str) -> Value | None:
    """A statistic in Catalyst's internal form; None when it is not a value of the type."""
    if data_type in INTEGER_BITS:
        half = 1 << (INTEGER_BITS[data_type] - 1)
        return raw if isinstance(raw, int) and -half <= raw < half else None
    decimal = _DECIMAL.fullmatch(data_type)
    if decimal is not None:
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        if not isinstance(unscaled, int) or abs(unscaled) >= 10 ** int(decimal[1]):
            return None
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return Decimal((int(unscaled < 0), digits, -int(decimal[2])))
    return raw if isinstance(raw, bool | int | bytes) else None


def _is_uncut(bounds: Iterable[tuple[Value, Value]], metadata: pq.FileMetaData) -> bool:
    each = (bound for pair in bounds for bound in pair)
    longest = max((len(bound) for bound in each if isinstance(bound, bytes)), default=0)
    return longest < _CUT_LENGTH or _trusted_writer(metadata) == _NEVER_CUTS


def _is_never_rebased(minimum: object, data_type: str, metadata: pq.FileMetaData) -> bool:
    """Whether Spark reads the values as they are, not shifted from the Julian calendar."""
    limits = {"date": _GREGORIAN_DAY, "timestamp": _GREGORIAN_MICROS}
    if data_type not in limits or (isinstance(minimum, int) and minimum >= limits[data_type]):
        return True
    notes = metadata.metadata or {}
    version = notes.get(_SPARK_VERSION)
    return version is not None and version >= b"3." and _SPARK_LEGACY_CALENDAR not in notes


# The width of rows, as an estimate.

_WIDEST_NUMBER = 16
"""Bytes of a decimal in memory."""


def width_of_rows(metadata: pq.FileMetaData) -> int | None:
    """Bytes of a row in memory, rather too many; None where the footer does not show them.

    Pages with a dictionary hold a text once, so that the average is less than its length. Where
    the least and the greatest are not cut off, one of them stands for the others.
    """
    lengths = [metadata.schema.column(place).length for place in range(metadata.num_columns)]
    total = 0.0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for place, length in enumerate(lengths):
            column = group.column(place)
            is_text = column.physical_type == "BYTE_ARRAY"
            width = _width_of_texts(column) if is_text else max(length or 0, _WIDEST_NUMBER)
            if width is None:
                return None
            total += width * column.num_values
    return ceil(total / metadata.num_rows) if metadata.num_rows else None


def _width_of_texts(column: pq.ColumnChunkMetaData) -> float | None:
    average = float(column.total_uncompressed_size / max(1, column.num_values))
    found = column.statistics
    if found is not None and found.null_count == column.num_values:
        return average
    if found is not None and found.has_min_max:
        longest = max(len(str(found.min)), len(str(found.max)))
        if longest < _CUT_LENGTH:
            return max(longest, average)
    return 4 * average if average >= _CUT_LENGTH / 2 else None

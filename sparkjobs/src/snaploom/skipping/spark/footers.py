"""What Parquet footers prove about terms, file by file, without reading a data page.

Whatever is answered here must equal what Spark would read: a wrong bound loses rows. So the rules
are lists of what is known to hold, and everything else is left to the scan:

- the writer is one whose statistics are known to be right (`_WRITERS`); others are scanned;
- the Parquet type is exactly what Spark reads as the term's type (`_reads_as`); widened integers,
  unsigned integers, milliseconds, nanoseconds, INT96 and other decimals are scanned;
- statistics of float and double may hide NaN (trap 2): only counts are taken from them;
- dates before 1582-10-15 and timestamps before 1900 may be rebased by the reader, unless Spark 3 or
  newer wrote them in the proleptic calendar and says so;
- bounds of text of 64 bytes or more may have been cut (trap 3): taken only from Arrow, which omits
  bounds rather than cutting them. A shorter cut bound, which Parquet's Java library writes when
  told to, is still a bound: it was rounded downwards or upwards;
- a column that is not in the file is NULL in every row, unless it was added with a default (19).

Source of the footer's fields: the Parquet format's `parquet.thrift` and `LogicalTypes.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.skipping.core.terms import Term
from snaploom.skipping.indexes.base import FooterColumn

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

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True)
class FooterTerm:
    """A column or nested field that is looked for in footers."""

    names: tuple[str, ...]
    """From the top-level column to the field, as in Spark's schema."""
    data_type: str
    """Spark's type, as its `catalogString`."""
    has_default: bool = False
    """Whether it, or a struct around it, was added with a default value."""

    @classmethod
    def of(cls, term: Term, *, has_default: bool = False) -> FooterTerm | None:
        """The same as a term says it; None for an expression."""
        names = term.names
        return None if names is None else cls(names, term.data_type, has_default)


@dataclass(frozen=True)
class Footer:
    """What one footer says."""

    rows: int | None = None
    """Rows in the file; None when the footer cannot be read."""
    columns: tuple[FooterColumn | None, ...] = ()
    """One for each term, in order; None where nothing is proved."""
    length: int = 0
    """Bytes that were read."""
    depends_on_zone: bool = False
    """Whether timestamps in the file are other ones when the reader's time zone is another."""
    failure: str = field(default="", compare=False)
    """Why it cannot be read."""


def footer_of(content: bytes, terms: Sequence[FooterTerm], *, is_case_sensitive: bool) -> Footer:
    """What a footer says.

    Args:
        content: the end of a file, from where its footer begins.
        terms: what is looked for.
        is_case_sensitive: whether Spark tells names apart by case (`spark.sql.caseSensitive`).
    """
    try:
        metadata = pq.read_metadata(pa.BufferReader(content))
    except (OSError, ValueError, pa.ArrowException) as error:
        return Footer(failure=f"{type(error).__name__}: {error}")
    return Footer(
        rows=metadata.num_rows,
        columns=tuple(column_of(metadata, term, is_case_sensitive) for term in terms),
        length=len(content),
        depends_on_zone=_depends_on_zone(metadata.metadata or {}),
    )


def _depends_on_zone(notes: Mapping[bytes, bytes]) -> bool:
    """Whether Spark wrote in the old calendar, which was a local one, and does not say where."""
    version = notes.get(_SPARK_VERSION)
    is_old = version is not None and version < b"3."
    is_legacy = _SPARK_LEGACY_CALENDAR in notes or _SPARK_LEGACY_INT96 in notes
    return (is_old or is_legacy) and _SPARK_TIME_ZONE not in notes


def column_of(
    metadata: pq.FileMetaData, term: FooterTerm, is_case_sensitive: bool
) -> FooterColumn | None:
    """What a footer proves about a term, or None."""
    leaf = _leaf(metadata, term.names, is_case_sensitive)
    if leaf is _ABSENT:
        missing = FooterColumn(values=0, nulls=metadata.num_rows, minimum=None, maximum=None)
        return None if term.has_default else missing
    if leaf is None:
        return None
    column = metadata.schema.column(leaf)
    writer = _trusted_writer(metadata.created_by)
    if writer is None or column.max_repetition_level > 0 or not _reads_as(column, term.data_type):
        return None
    counts = _counts(metadata, leaf)
    if counts is None:
        return None
    values, nulls = counts
    bounds = _bounds(metadata, leaf, term.data_type, writer) if values else None
    minimum, maximum = bounds or (None, None)
    return FooterColumn(values=values, nulls=nulls, minimum=minimum, maximum=maximum)


def readable_leaf(
    metadata: pq.FileMetaData, term: FooterTerm, is_case_sensitive: bool
) -> int | None:
    """Position of the leaf that holds exactly the values that Spark reads as a term.

    Returns:
        None when that is not sure, or when the file lacks the term.
    """
    leaf = _leaf(metadata, term.names, is_case_sensitive)
    if leaf is None or leaf is _ABSENT:
        return None
    column = metadata.schema.column(leaf)
    writer = _trusted_writer(metadata.created_by)
    if writer is None or column.max_repetition_level > 0 or not _reads_as(column, term.data_type):
        return None
    if _is_never_rebased(None, term.data_type, metadata):
        return leaf
    # The file does not tell its calendar, but its bounds may tell that it is no matter.
    counts = _counts(metadata, leaf)
    if counts is None:
        return None
    is_sure = counts[0] == 0 or _bounds(metadata, leaf, term.data_type, writer) is not None
    return leaf if is_sure else None


def same_name(one: str, other: str, is_case_sensitive: bool) -> bool:
    """Whether Spark takes two names of columns for the same."""
    return one == other if is_case_sensitive else one.lower() == other.lower()


_ABSENT = -1


def _leaf(metadata: pq.FileMetaData, names: tuple[str, ...], is_case_sensitive: bool) -> int | None:
    """Position of a term's leaf; `_ABSENT` when the file lacks it, None when that is not sure."""

    def folded(name: str) -> str:
        return name if is_case_sensitive else name.lower()

    try:
        fields = list(metadata.schema.to_arrow_schema())
    except (NotImplementedError, pa.ArrowException):
        return None
    for depth, name in enumerate(names):
        found = [one for one in fields if folded(one.name) == folded(name)]
        if not found:
            return _ABSENT
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


def _trusted_writer(created_by: str | None) -> str | None:
    match = _WRITER.match(created_by or "")
    if match is None or (int(match[2]), int(match[3])) < _WRITERS[match[1]]:
        return None
    return match[1]


def _reads_as(column: pq.ColumnSchema, data_type: str) -> bool:
    """Whether a Parquet column holds exactly the values that Spark reads as the type."""
    physical, kind = column.physical_type, column.logical_type.type
    if data_type in _INTEGER_BITS:
        bits = _INTEGER_BITS[data_type]
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


def _counts(metadata: pq.FileMetaData, leaf: int) -> tuple[int, int] | None:
    """Rows in which the leaf is not NULL, and in which it is; None unless every group says so."""
    is_required = metadata.schema.column(leaf).max_definition_level == 0
    rows = nulls = 0
    for position in range(metadata.num_row_groups):
        group = metadata.row_group(position)
        column = group.column(leaf)
        rows += group.num_rows
        if group.num_rows == 0 or is_required:
            continue
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        if column.num_values != group.num_rows or not 0 <= statistics.null_count <= group.num_rows:
            return None
        nulls += statistics.null_count
    return (rows - nulls, nulls) if rows == metadata.num_rows else None


def _bounds(
    metadata: pq.FileMetaData, leaf: int, data_type: str, writer: str
) -> tuple[object, object] | None:
    """Least and greatest value; None unless every group with values proves its own."""
    if data_type in ("float", "double"):
        return None
    lows: list[bool | int | Decimal | bytes] = []
    highs: list[bool | int | Decimal | bytes] = []
    for position in range(metadata.num_row_groups):
        group = metadata.row_group(position)
        statistics = group.column(leaf).statistics
        nulls = statistics.null_count if statistics is not None else None
        if group.num_rows == 0 or nulls == group.num_rows:
            continue
        if statistics is None or not statistics.has_min_max:
            return None
        low, high = (_value(raw, data_type) for raw in (statistics.min_raw, statistics.max_raw))
        if low is None or high is None or low > high:  # type: ignore[operator]
            return None
        lows.append(low)
        highs.append(high)
    minimum, maximum = min(lows), max(highs)
    is_sure = _is_uncut(lows + highs, writer) and _is_never_rebased(minimum, data_type, metadata)
    return (minimum, maximum) if is_sure else None


def _value(raw: object, data_type: str) -> bool | int | Decimal | bytes | None:
    """A statistic in Catalyst's internal form; None when it is not a value of the type."""
    decimal = _DECIMAL.fullmatch(data_type)
    if decimal is not None:
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        if not isinstance(unscaled, int) or abs(unscaled) >= 10 ** int(decimal[1]):
            return None
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return Decimal((int(unscaled < 0), digits, -int(decimal[2])))
    if data_type in _INTEGER_BITS:
        half = 1 << (_INTEGER_BITS[data_type] - 1)
        return raw if isinstance(raw, int) and -half <= raw < half else None
    return raw if isinstance(raw, bool | int | bytes) else None


def _is_uncut(bounds: Sequence[object], writer: str) -> bool:
    longest = max((len(bound) for bound in bounds if isinstance(bound, bytes)), default=0)
    return longest < _CUT_LENGTH or writer == _NEVER_CUTS


def _is_never_rebased(minimum: object, data_type: str, metadata: pq.FileMetaData) -> bool:
    """Whether Spark reads the values as they are, not shifted from the Julian calendar."""
    limits = {"date": _GREGORIAN_DAY, "timestamp": _GREGORIAN_MICROS}
    if data_type not in limits or (isinstance(minimum, int) and minimum >= limits[data_type]):
        return True
    notes = metadata.metadata or {}
    version = notes.get(_SPARK_VERSION)
    return version is not None and version >= b"3." and _SPARK_LEGACY_CALENDAR not in notes

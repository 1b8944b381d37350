"""Footers of a source's Parquet files, and snapshots that a column of them holds."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.files.listed import ListedFile
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.output.layout import content_hash
from snaploom.parquet.footers import SPARK_SCHEMA, footer_bytes, local_footer_bytes, parse_footer
from snaploom.parquet.statistics import column_statistics, stored_column, width_of_rows
from snaploom.plan.intervals import SourceSnapshots
from snaploom.policy.fileformats import format_of
from snaploom.sources.files.snapshots import FileListing
from snaploom.sources.prefix import NotAnInstant, instant_of, instant_of_days
from snaploom.types import schemas

# Footers of a source's Parquet files: their schema, and the values of a column that has few.

Value = str | int

EndOf = Callable[[ListedFile, int], bytes]
"""Reads so many bytes at the end of a file, or raises an `OSError`; from several threads."""

READ_AT_ONCE = 16
"""Footers that are read at the same time. On stores that answer in 20 ms and more all of the time
is waiting; each takes one or two requests."""

_SPARK_VERSION = b"org.apache.spark.version"
_JULIAN = frozenset({b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"})
"""Notes in footers."""
_LOCAL = "file:"
_FIRST_BYTES = 64 << 10
"""Bytes that are asked for at once, which holds the footer of most files; S3's client takes no
less in one request."""
_WHOLE = tuple(schemas.INTEGER_BITS)
_HELD_BY = {
    "string": ("string",),
    "date": ("date",),
    **{name: _WHOLE[position:] for position, name in enumerate(_WHOLE)},
}
"""Types of columns whose single values are taken from footers, and as which Spark reads them
without changing a value."""
_PLAIN_ARROW = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_string,
    pa.types.is_binary,
)
"""Types, as Arrow has them, that every Spark reads from Parquet."""
_PLAIN_SPARK = frozenset(
    ["boolean", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "binary"]
) | set(schemas.SQL_NAMES)


@dataclass(frozen=True, slots=True)
class SingleValues:
    """Values of a column without structs around it, one for each row group."""

    name: str
    """As the file spells it."""
    data_type: str
    """Spark's type as which the file has it."""
    values: frozenset[Value]
    """Text, whole numbers, or for dates the days since 1970."""

    def of(self, parts: tuple[str, ...], data_type: str) -> frozenset[Value] | None:
        """Values, if Spark reads the column unchanged as a field of a `simpleString` type."""
        is_unchanged = data_type in _HELD_BY[self.data_type]
        return self.values if is_unchanged and parts == (self.name,) else None


StoredTimes = tuple[tuple[str, str], ...]
"""Columns of times in nanoseconds, each with the type of Spark that it is read as; with an empty
one if it is inside another column."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Requested facts of one footer."""

    schema_hash: str
    """Equal for files of which Spark infers one schema."""
    column: SingleValues | None
    """Of the column, where there is one of its name, and each row group has a single value."""
    nanoseconds: StoredTimes


def read_footers(
    files: Sequence[ListedFile], name: str | None, end_of: EndOf
) -> Iterator[Footer | None]:
    """Footers of Parquet files, in their order, with the values of a column; None if unreadable."""

    def read(file: ListedFile) -> Footer | None:
        try:
            return _footer(_metadata(file, end_of), name)
        except (OSError, ValueError):
            return None

    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        yield from pool.map(read, files)


def have_one_calendar(files: Sequence[ListedFile], end_of: EndOf) -> bool:
    """Whether Spark reads days and times of all these files as they are stored.

    In others, of Spark before 3.1 or of its legacy modes, it takes those before 1582 for days of
    the Julian calendar, as their footers note; nothing is known of what cannot be read.
    """

    def read(file: ListedFile) -> bool:
        try:
            noted: Mapping[bytes, bytes] = _metadata(file, end_of).metadata or {}
            major, minor = noted.get(_SPARK_VERSION, b"3.1").split(b".")[:2]
            return (int(major), int(minor)) >= (3, 1) and not _JULIAN & noted.keys()
        except (OSError, ValueError):
            return False

    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        return all(pool.map(read, files))


def row_bytes(file: ListedFile, end_of: EndOf) -> int | None:
    """Bytes of a file's row in memory, by `width_of_rows`; None where no footer is readable."""
    try:
        return width_of_rows(_metadata(file, end_of))
    except (OSError, ValueError):
        return None


def columns_without_nulls(
    file: ListedFile, names: Collection[str], end_of: EndOf
) -> frozenset[str]:
    """Those of some columns of a file that have no NULL, as its footer shows."""
    try:
        metadata = _metadata(file, end_of)
    except (OSError, ValueError):
        return frozenset()
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    places = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}

    def has_none(name: str) -> bool:
        chunks = (group.column(places[name]).statistics for group in groups)
        return all(each is not None and each.null_count == 0 for each in chunks)

    return frozenset(filter(has_none, places.keys() & set(names)))


def plain_columns(file: ListedFile, column: SingleValues, end_of: EndOf) -> frozenset[str] | None:
    """Names of a file's columns in lower case if Spark reads all unchanged; else None.

    That is so where each is of a simple type, and no two names differ in case only.
    """
    try:
        metadata = _metadata(file, end_of)
        fields = list(metadata.schema.to_arrow_schema())
    except (OSError, ValueError, pa.ArrowException):
        return None
    if not all(_is_plain(field.type) for field in fields):
        return None
    noted = (metadata.metadata or {}).get(SPARK_SCHEMA)
    if noted is not None and not _notes_plain(noted, [field.name for field in fields], column):
        return None
    names = frozenset(field.name.lower() for field in fields)
    return names if len(names) == len(fields) else None


def _metadata(file: ListedFile, end_of: EndOf) -> pq.FileMetaData:
    if file.uri.startswith(_LOCAL):
        content = local_footer_bytes(file.uri.removeprefix(_LOCAL))
    else:
        content = footer_bytes(partial(end_of, file), file.length, _FIRST_BYTES)
    return parse_footer(content)


def _footer(metadata: pq.FileMetaData, name: str | None) -> Footer:
    stored: Mapping[bytes, bytes] = metadata.metadata or {}
    schema = str(metadata.schema).partition("\n")[2].encode()  # the first line has an address
    schema_hash = content_hash(schema + b"\0" + stored.get(SPARK_SCHEMA, b""))
    column = None if name is None else _single_values(metadata, name)
    return Footer(schema_hash, column, tuple(sorted(times_in_nanoseconds(metadata.schema))))


def times_in_nanoseconds(schema: pq.ParquetSchema) -> Iterator[tuple[str, str]]:
    """Paths of columns in nanoseconds and Spark's types of them, as `StoredTimes` has them."""
    for leaf in map(schema.column, range(len(schema))):
        if leaf.logical_type.type == "TIMESTAMP":
            stored = json.loads(leaf.logical_type.to_json())
            if stored["timeUnit"] == "nanoseconds":
                is_own = leaf.path == leaf.name and not leaf.max_repetition_level
                data_type = "timestamp" if stored["isAdjustedToUTC"] else "timestamp_ntz"
                yield leaf.path, data_type * is_own


def _single_values(metadata: pq.FileMetaData, name: str) -> SingleValues | None:
    stored = stored_column(metadata, name, tuple(_HELD_BY))
    if stored is None:
        return None
    spelled, data_type = stored
    found = column_statistics(metadata, (name,), data_type, is_case_sensitive=False)
    if found is None or found.nulls or found.bounds is None:
        return None
    if any(least != greatest for least, greatest in found.bounds):
        return None
    values = (least for least, _ in found.bounds)
    return SingleValues(
        spelled,
        data_type,
        frozenset(v.decode() if isinstance(v, bytes) else int(v) for v in values),
    )


def _is_plain(data_type: pa.DataType) -> bool:
    if pa.types.is_timestamp(data_type):
        return data_type.unit in ("ms", "us")
    return pa.types.is_decimal128(data_type) or any(holds(data_type) for holds in _PLAIN_ARROW)


def _notes_plain(noted: bytes, names: Sequence[str], column: SingleValues) -> bool:
    """Whether the schema in Spark's note, which Spark uses, has these columns and simple types."""
    try:
        fields = schemas.parse_schema(noted.decode(), "").fields
    except (ValueError, KeyError, TypeError):
        return False
    types = {
        one.name: "decimal" if isinstance(one.type, schemas.Decimal) else one.type.name
        for one in fields
        if isinstance(one.type, schemas.Decimal)
        or (isinstance(one.type, schemas.Simple) and one.type.name in _PLAIN_SPARK)
    }
    found = types.get(column.name, "")
    is_column = schemas.SQL_NAMES.get(found, found) == column.data_type
    return is_column and len(types) == len(fields) and list(types) == list(names)


# Snapshots in a column of Parquet files whose footers prove all its values.

MOST_FOOTERS = 1000
"""Files whose footers are read before there is a session, which remembers what it has read of them
in earlier runs: a thousand local ones of 21 columns took 0.8 s of processor time on a machine with
other work, a tenth of what the start of a session takes."""

_TEXTS = (TimeFormat.ISO8601_DATE, TimeFormat.ISO8601_DATE_TIME, TimeFormat.PATTERN)
_DATES = (TimeFormat.ISO8601_DATE, TimeFormat.TIMESTAMP)
_NUMBERS = (TimeFormat.UNIX_MILLISECONDS, TimeFormat.UNIX_SECONDS, TimeFormat.PATTERN)


def column_snapshots(listing: FileListing) -> SourceSnapshots | None:
    """Snapshots of a source whose rows hold them; None where Spark has to find them.

    Raises:
        SparkNeeded: only Spark can list them, or read their ends.
    """
    declared, settings = listing.declared, listing.declared.snapshot.from_field_value
    if settings is None or declared.schema_fields is not None or declared.format_options:
        return None
    parts = schemas.split_path(settings.field_name) or ()
    if not format_of(declared.format).has_footers or len(parts) != 1 or "." in parts[0]:
        return None
    files = [captured.file for captured in listing.files]
    if not files:
        return SourceSnapshots()
    if len(files) > MOST_FOOTERS:
        return None
    end_of: EndOf = listing.others.end
    columns = _columns(tuple(read_footers(files, parts[0], end_of)))
    if columns is None:
        return None
    names = plain_columns(files[0], columns[0], end_of)
    captures = () if listing.prefix is None else listing.prefix.names
    if names is None or any(name.lower() in names for name in captures):
        return None
    instant = _reading(columns[0].data_type, settings)
    if instant is None:
        return None
    try:
        return SourceSnapshots.of({instant(value) for each in columns for value in each.values})
    except NotAnInstant:
        return None


def _columns(footers: Sequence[Footer | None]) -> tuple[SingleValues, ...] | None:
    known = [footer for footer in footers if footer is not None]
    columns = tuple(footer.column for footer in known if footer.column is not None)
    is_one = len({footer.schema_hash for footer in known}) == 1
    return columns if is_one and len(columns) == len(footers) else None


def _reading(data_type: str, settings: FromFieldValue) -> Callable[[Value], EpochNanos] | None:
    """Converter from values of a type to instants; None where the format does not suit the type."""
    time_format = settings.time_format
    if data_type == "date" and time_format in _DATES:
        return lambda value: instant_of_days(int(value), settings.default_timezone)
    accepted = _TEXTS if data_type == "string" else _NUMBERS
    if data_type == "date" or time_format not in accepted:
        return None
    return lambda value: instant_of(value, settings)

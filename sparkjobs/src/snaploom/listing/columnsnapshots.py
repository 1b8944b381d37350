"""Snapshots in a column of Parquet files whose footers prove all its values.

The same footers give a session its values (`engine.sources.files.columnreader`), which no setting
of it changes: a single value of a row group, by statistics that are trusted, of a text, a date or a
whole number. Whatever else a session would look at, such as types that differ between files or
names that clash, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from snaploom.listing.capturedfiles import FileListing
from snaploom.listing.footers import (
    EndOf,
    Footer,
    SingleValues,
    Value,
    plain_columns,
    read_footers,
)
from snaploom.listing.instants import NotAnInstant, instant_of, instant_of_days
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.models.times import EpochNanos
from snaploom.planning.fieldpaths import split_path
from snaploom.planning.intervals import SourceSnapshots

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
        SourceError: the files cannot be listed.
        SparkNeeded: only Spark can list them, or read their ends.
    """
    declared, settings = listing.declared, listing.declared.snapshot.from_field_value
    if settings is None or declared.schema_fields is not None or declared.format_options:
        return None
    parts = split_path(settings.field_name) or ()
    if declared.format.lower() != "parquet" or len(parts) != 1 or "." in parts[0]:
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

"""Values of a metadata store, from and to the form in which Snaploom keeps them.

Dates before 1582-10-15 and timestamps before 1900 mean another day or moment when an old Spark
wrote them (in the calendar that was used until then). Where a file does not show that a new Spark
wrote it, such values are unknown (rule S16).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.interop.xskipper.schemajson import SPARK_VERSION
from snaploom.skipping.core.terms import arrow_type

FIRST_GREGORIAN_DAY = -141427
"""1582-10-15 in days since 1970: from here on both calendars name days alike."""

FIRST_SURE_MOMENT = -2208988800000000
"""1900-01-01T00:00:00Z in microseconds: from here on both calendars and all time zones' local
mean times agree; Spark's own limit (`RebaseDateTime.lastSwitchJulianTs`)."""

_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_NEW_DATES, _NEW_INT96 = (3, 0), (3, 1)
"""Spark versions that write the calendar of today unless a footer key names another."""


@dataclass(frozen=True)
class Calendar:
    """Reliability of a file's old values."""

    dates: bool
    """Dates of any time."""
    timestamps: bool
    """Timestamps of any time."""


def calendar_of(footer: Mapping[bytes, bytes]) -> Calendar:
    """The calendar of a file, from its footer's keys."""
    version = _version(footer.get(SPARK_VERSION, b""))
    return Calendar(
        dates=version >= _NEW_DATES and _LEGACY_DATES not in footer,
        timestamps=version >= _NEW_INT96 and _LEGACY_INT96 not in footer,
    )


def from_store(values: pa.Array, data_type: str) -> pa.Array | None:
    """Values of a Parquet column as they are kept; None where the column has another type."""
    kept_as = arrow_type(data_type)
    if kept_as is None or not _holds(values.type, data_type):
        return None
    if pa.types.is_timestamp(values.type):
        # Through microseconds without zone: the moment itself, whatever zone the type names.
        return values.cast(pa.timestamp("us")).view(pa.int64())
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    if pa.types.is_floating(kept_as):
        # -0.0 and 0.0 are one value (rule S4).
        return pc.add(values.cast(kept_as), pa.scalar(0.0, kept_as))
    return values.cast(kept_as)


def unsure(values: pa.Array, data_type: str, calendar: Calendar) -> pa.Array:
    """For each kept value, whether it is too old for its meaning to be certain; null for null."""
    if data_type == "date" and not calendar.dates:
        return pc.less(values, FIRST_GREGORIAN_DAY)
    if data_type == "timestamp" and not calendar.timestamps:
        return pc.less(values, FIRST_SURE_MOMENT)
    return pc.and_(values.is_null(), False)


def to_store(values: pa.Array, data_type: str) -> pa.Array:
    """Kept values as a Parquet column; `pyarrow.ArrowInvalid` for text that is not UTF-8."""
    match data_type:
        case "timestamp":
            return values.view(pa.timestamp("us", "UTC"))
        case "date":
            return values.view(pa.date32())
        case "string":
            return values.cast(pa.large_string())
    return values


def store_type(data_type: str) -> pa.DataType:
    """Arrow type of a Spark type in the store."""
    return to_store(pa.array([], arrow_type(data_type)), data_type).type


def _holds(stored: pa.DataType, data_type: str) -> bool:
    match data_type:
        case "timestamp" | "timestamp_ntz":
            return bool(pa.types.is_timestamp(stored))
        case "date":
            return bool(pa.types.is_date32(stored))
        case "string":
            return bool(pa.types.is_string(stored) or pa.types.is_large_string(stored))
        case "binary":
            return bool(pa.types.is_binary(stored) or pa.types.is_large_binary(stored))
    return bool(stored == arrow_type(data_type))


def _version(text: bytes) -> tuple[int, ...]:
    parts = text.decode("ascii", "replace").split(".")[:2]
    return tuple(int(part) for part in parts) if all(map(str.isdecimal, parts)) else ()

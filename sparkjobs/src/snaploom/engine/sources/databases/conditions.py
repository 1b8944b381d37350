"""The rows of one snapshot, as a condition that the database itself evaluates.

The values come from the database, went through Spark, and go back as literals of the database.
Spark would write times without a zone, which the hour that comes twice in autumn makes ambiguous;
and databases keep times finer than Spark's microseconds, so that a time means the whole
microsecond that begins with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from pyspark.sql import types as spark

from snaploom.engine.sources.snapshotcolumn import RawValue
from snaploom.planning.sources.databases.drivers import Database

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def condition_for(
    database: Database, column: str, data_type: spark.DataType, values: Sequence[RawValue]
) -> str:
    """SQL that is true for rows whose column has one of the values.

    `values` are those of `SnapshotColumn.values`.
    """
    quoted = database.quoted(column)
    return " OR ".join(f"({_one(database, quoted, data_type, value)})" for value in values)


def _one(database: Database, column: str, data_type: spark.DataType, value: RawValue) -> str:
    if isinstance(data_type, spark.TimestampType):
        return _during(column, database.instant, _EPOCH + int(value) * _MICROSECOND)
    if isinstance(data_type, spark.TimestampNTZType):
        return _during(column, database.local_time, datetime.fromisoformat(str(value)))
    if isinstance(data_type, spark.DateType):
        day = date.fromordinal(_EPOCH_DAY + int(value)).isoformat()
        return f"{column} = {database.date.format(text=day)}"
    if isinstance(data_type, spark.StringType):
        return f"{column} = {database.text(str(value))}"
    return f"{column} = {int(value)}"


def _during(column: str, literal: str, moment: datetime) -> str:
    at_least = f"{column} >= {literal.format(text=_text(moment))}"
    if moment > datetime.max - _MICROSECOND:
        return at_least
    return f"{at_least} AND {column} < {literal.format(text=_text(moment + _MICROSECOND))}"


def _text(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="microseconds")

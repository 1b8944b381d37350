"""The column that holds the snapshot of each row: its distinct values, and a filter by them.

Values leave Spark as the text or whole number that they are, never through a Python date, become
instants by the rules of `instants`, and rows are chosen by the raw values again. So one instant
may be written in several ways (`2020-01-01T00:00Z`, `...+00:00`), nothing is rounded, and Spark
can push the filter down to the files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.errors import SnapshotValueInvalid, SourceSchemaInvalid
from snaploom.models.common import NANOS_PER_MICROSECOND, EpochNanos
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.sources import prefix
from snaploom.spark.failures import translate
from snaploom.spark.types import Found, find_field
from snaploom.types.schemas import quote

RawValue = str | int

MOST_VALUES = 1_000_000
"""Distinct values of a snapshot column: an hourly snapshot for a century is fewer; a column with
more is an identifier or a measure, and must not fill the driver."""
MOST_PAIRS = 250_000
"""Pairs of file and value, of which one run leaves no more to the next."""
SAMPLES = 5
"""Values that a message quotes."""

_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_NUMBERS = (TimeFormat.UNIX_MILLISECONDS, TimeFormat.UNIX_SECONDS, TimeFormat.PATTERN)


@dataclass(frozen=True)
class _Reading:
    """Conversion of values of one type from Spark to instants and back to conditions."""

    raw: Column
    instant: Callable[[RawValue], EpochNanos]
    literal: Callable[[RawValue], Column]


@dataclass(frozen=True)
class SnapshotColumn:
    """The snapshot field of one source, found in its data."""

    resource: str
    settings: FromFieldValue
    field: Found
    source: str
    """Path of the source's variant, such as `spec.hdfsLike`."""

    @classmethod
    def find(
        cls,
        schema: spark.StructType,
        settings: FromFieldValue,
        resource: str,
        source: str = "spec.hdfsLike",
    ) -> SnapshotColumn:
        """The declared field in a schema.

        Raises:
            SnapshotValueInvalid: its type cannot hold the declared format.
        """
        found = find_field(schema, settings.field_name)
        if found is None:
            raise SourceSchemaInvalid(
                "the snapshot field is neither a column of the data nor captured by "
                "sourceUriPrefix",
                resource=resource,
                path=f"{source}.{_FIELD}.fieldName",
                found=f"columns {', '.join(schema.names)}",
                expected=settings.field_name,
                hint="correct fieldName; write a column whose own name contains a dot in backticks",
            )
        column = cls(resource, settings, found, source)
        column._reading()
        return column

    def values(
        self, frame: DataFrame, rows: str | None = None
    ) -> Mapping[EpochNanos, tuple[RawValue, ...]]:
        """The raw values of every snapshot; one pass over the column.

        Where `frame` has distinct values only, `rows` is the column with the number of rows of
        each.
        """
        weight = sf.lit(1) if rows is None else sf.col(quote(rows))
        found = self._counted(frame, weight, sf.lit(""), MOST_VALUES)
        if found is None:
            raise SnapshotValueInvalid(
                f"column {self.field.path} has more than {MOST_VALUES:,} different values",
                resource=self.resource,
                path=self._at("fieldName"),
                expected="a column that is equal in all rows of a snapshot",
                found=f"at least {MOST_VALUES + 1:,} of them",
                hint="name another column, or cut the values to days in a virtual source",
            )
        return self.instants(value for _, value, _ in self._valid(found))

    def values_by_file(
        self, frame: DataFrame, file: Column
    ) -> Mapping[str, tuple[RawValue, ...]] | None:
        """The raw values in each file that has rows; None where these are too many to list.

        `frame` is the data as it was loaded, and `file` the file of each row.

        Raises:
            SnapshotValueInvalid: rows have NULL, or a value that is not of its format.
        """
        found = self._counted(frame, sf.lit(1), file, MOST_PAIRS)
        if found is None:
            return None
        by_file: dict[str, list[RawValue]] = defaultdict(list)
        for name, value, _ in self._valid(found):
            by_file[name].append(value)
        return {name: tuple(sorted(values)) for name, values in by_file.items()}

    def instants(self, values: Iterable[RawValue]) -> Mapping[EpochNanos, tuple[RawValue, ...]]:
        """Raw values by snapshot.

        Raises:
            NotAnInstant: a value is not of the declared format.
        """
        reading = self._reading()
        by_instant: dict[EpochNanos, list[RawValue]] = defaultdict(list)
        for value in dict.fromkeys(values):
            by_instant[_converted(reading, value)].append(value)
        return {instant: tuple(sorted(by_instant[instant])) for instant in sorted(by_instant)}

    def are_instants(self, values: Iterable[RawValue]) -> bool:
        """Whether all values are of the declared format."""
        try:
            self.instants(values)
        except prefix.NotAnInstant:
            return False
        return True

    def select(self, frame: DataFrame, values: Sequence[RawValue]) -> DataFrame:
        """The rows with one of the values."""
        literal = self._reading().literal
        column = sf.col(self.field.expression)
        return frame.where(column.isin([literal(value) for value in values]))

    def _reading(self) -> _Reading:
        column, time_format = sf.col(self.field.expression), self.settings.time_format
        data_type = self.field.data_type
        if isinstance(data_type, spark.StringType) and time_format in (
            TimeFormat.ISO8601_DATE,
            TimeFormat.ISO8601_DATE_TIME,
            TimeFormat.PATTERN,
        ):
            return _Reading(column, self._as_declared, sf.lit)
        if isinstance(data_type, spark.DateType) and time_format in (
            TimeFormat.ISO8601_DATE,
            TimeFormat.TIMESTAMP,  # which holds a day without loss: the midnight that begins it
        ):
            return _Reading(sf.unix_date(column), self._from_days, _date)
        if isinstance(data_type, spark.TimestampType) and time_format is TimeFormat.TIMESTAMP:
            return _Reading(sf.unix_micros(column), _from_micros, _timestamp)
        if isinstance(data_type, spark.TimestampNTZType) and time_format is TimeFormat.TIMESTAMP:
            return _Reading(column.cast("string"), self._from_local, _local_timestamp)
        if time_format in _NUMBERS and isinstance(data_type, _WHOLE):
            return _Reading(column, self._as_declared, lambda value: _number(value, data_type))
        if (
            time_format in _NUMBERS
            and isinstance(data_type, spark.DecimalType)
            and data_type.scale == 0
        ):
            return _Reading(
                column.cast("string"), self._as_declared, lambda value: _number(value, data_type)
            )
        raise SnapshotValueInvalid(
            f"column {self.field.path} has a type that {time_format} cannot read",
            resource=self.resource,
            path=self._at("timeFormat"),
            found=data_type.simpleString(),
            expected=_ACCEPTED[time_format],
            hint=_hint(data_type),
        )

    def _counted(
        self, frame: DataFrame, weight: Column, file: Column, most: int
    ) -> list[tuple[str, RawValue | None, int]] | None:
        """File, value and number of rows by one pass over the column; None where they are more."""
        named = frame.select(
            file.alias("file"), self._reading().raw.alias("value"), weight.alias("rows")
        )
        counted = named.groupBy("file", "value").agg(sf.sum("rows").cast("bigint"))
        try:
            found = counted.limit(most + 1).collect()
        except (PySparkException, Py4JError) as error:
            raise translate(error, resource=self.resource, path=self._at("fieldName")) from error
        return None if len(found) > most else [(row[0], row[1], row[2]) for row in found]

    def _valid(
        self, found: Sequence[tuple[str, RawValue | None, int]]
    ) -> list[tuple[str, RawValue, int]]:
        reading = self._reading()
        valid: list[tuple[str, RawValue, int]] = []
        invalid: Counter[RawValue | None] = Counter()
        for name, value, count in found:
            try:
                _converted(reading, value)
            except prefix.NotAnInstant:
                invalid[value] += count
            else:
                assert value is not None  # NULL is no instant
                valid.append((name, value, count))
        if invalid:
            raise self._invalid(list(invalid.items()))
        return valid

    def _at(self, name: str) -> str:
        return f"{self.source}.{_FIELD}.{name}"

    def _as_declared(self, value: RawValue) -> EpochNanos:
        return prefix.instant_of(value, self.settings)

    def _from_days(self, days: RawValue) -> EpochNanos:
        return prefix.instant_of_days(int(days), self.settings.default_timezone)

    def _from_local(self, text: RawValue) -> EpochNanos:
        return prefix.instant_of_date_time(str(text), self.settings.default_timezone)

    def _invalid(self, invalid: Sequence[tuple[RawValue | None, int]]) -> SnapshotValueInvalid:
        rows = sum(count for _, count in invalid)
        ordered = sorted(invalid, key=lambda pair: (-pair[1], str(pair[0])))
        quoted = [
            f"{'NULL' if value is None else repr(value)} ({count:,} row{'' if count == 1 else 's'})"
            for value, count in ordered[:SAMPLES]
        ]
        more = [f"and {len(invalid) - SAMPLES} more values"] if len(invalid) > SAMPLES else []
        return SnapshotValueInvalid(
            f"{rows:,} row{' has' if rows == 1 else 's have'} a snapshot value in column "
            f"{self.field.path} that cannot be read",
            resource=self.resource,
            path=self._at("fieldName"),
            found=", ".join([*quoted, *more]),
            expected=f"{prefix.EXPECTED[self.settings.time_format]} ({self.settings.time_format})",
            hint=prefix.month_hint((value for value, _ in invalid), in_paths=False),
        )


_FIELD = "snapshot.fromFieldValue"
_ACCEPTED = {
    TimeFormat.ISO8601_DATE: "string or date",
    TimeFormat.ISO8601_DATE_TIME: "string",
    TimeFormat.TIMESTAMP: "timestamp, timestamp_ntz or date",
    TimeFormat.UNIX_MILLISECONDS: "tinyint, smallint, int, bigint or decimal(n,0)",
    TimeFormat.UNIX_SECONDS: "tinyint, smallint, int, bigint or decimal(n,0)",
    TimeFormat.PATTERN: "string, tinyint, smallint, int, bigint or decimal(n,0)",
}


def _hint(data_type: spark.DataType) -> str:
    """The fix for a column that a time format cannot read: the formats that can, if any."""
    name = data_type.simpleString()
    if isinstance(data_type, spark.DecimalType):
        name = "decimal(n,0)" if data_type.scale == 0 else name
    fitting = [
        str(time_format)
        for time_format, accepted in _ACCEPTED.items()
        if name in accepted.replace(" or ", ", ").split(", ")
    ]
    if fitting:
        return f"a column of this type is read by timeFormat: {' or '.join(fitting)}"
    return "write the column as such a type, or declare its type in schemaFields"


def _converted(reading: _Reading, value: RawValue | None) -> EpochNanos:
    if value is None:
        raise prefix.NotAnInstant
    return reading.instant(value)


def _from_micros(micros: RawValue) -> EpochNanos:
    return prefix.bounded(int(micros) * NANOS_PER_MICROSECOND)


def _date(days: RawValue) -> Column:
    return sf.date_from_unix_date(sf.lit(days))


def _timestamp(micros: RawValue) -> Column:
    return sf.timestamp_micros(sf.lit(micros).cast("bigint"))


def _local_timestamp(text: RawValue) -> Column:
    return sf.lit(text).cast("timestamp_ntz")


def _number(value: RawValue, data_type: spark.DataType) -> Column:
    return sf.lit(str(value)).cast(data_type)

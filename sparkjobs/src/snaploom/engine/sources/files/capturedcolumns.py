"""Columns captured by `sourceUriPrefix`.

They are constants where all files of a read agree, and otherwise looked up by the file that each
row comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.listing.instants import instant_of_date_time
from snaploom.models.times import NANOS_PER_MICROSECOND
from snaploom.planning.fieldpaths import quote
from snaploom.planning.prefix import Capture, CapturedValue, CaptureType

Captured = Mapping[str, CapturedValue]
"""Values from the path of one file, by name of the capture."""

_TYPES: Mapping[CaptureType, spark_types.DataType] = {
    CaptureType.STRING: spark_types.StringType(),
    CaptureType.INTEGER: spark_types.IntegerType(),
    CaptureType.LONG: spark_types.LongType(),
    CaptureType.ISO8601_DATE_TIME: spark_types.TimestampType(),
}
_FILE_OF_ROW = "__snaploom_file"
_LOOKUP_KEY = "__snaploom_key"


@dataclass(frozen=True)
class CapturedColumns:
    """The columns of one prefix."""

    spark: SparkSession
    captures: Sequence[Capture]
    """At least one."""
    zone: str
    """Of captured times that name none."""

    def constant(self, frame: DataFrame, files: Iterable[Captured]) -> DataFrame | None:
        """The columns of a frame, then the captured ones; None where files do not agree."""
        rows = {self._row(values) for values in files}
        if len(rows) > 1:
            return None
        pairs = zip(next(iter(rows)), self.captures, strict=True)
        return frame.select(*_data(frame), *(_constant(value, one) for value, one in pairs))

    def looked_up(
        self, frame: DataFrame, file_of_row: Column, by_url: Mapping[str, Captured]
    ) -> DataFrame:
        """The columns of a frame, then the captured ones of the file that each row is from.

        A row of a file that is not known fails the read. `file_of_row` is the URL of the file of
        each row.
        """
        data = _data(frame)
        table = [(url, *self._row(values)) for url, values in by_url.items()]
        stored = [spark_types.StructField(_LOOKUP_KEY, spark_types.StringType(), nullable=False)]
        stored += [
            spark_types.StructField(c.name, _stored_type(c), nullable=False) for c in self.captures
        ]
        lookup = self.spark.createDataFrame(table, spark_types.StructType(stored))
        placed = frame.select(*data, file_of_row.alias(_FILE_OF_ROW)).join(
            sf.broadcast(lookup), sf.col(_FILE_OF_ROW) == sf.col(_LOOKUP_KEY), "left"
        )
        unknown = sf.raise_error(sf.concat(sf.lit("no captures for "), sf.col(_FILE_OF_ROW)))
        columns = [
            sf.when(sf.col(_LOOKUP_KEY).isNull(), unknown.cast(_TYPES[c.type]))
            .otherwise(_typed(sf.col(quote(c.name)), c))
            .alias(c.name)
            for c in self.captures
        ]
        return placed.select(*data, *columns)

    def _row(self, values: Captured) -> tuple[CapturedValue, ...]:
        return tuple(self._stored(capture, values[capture.name]) for capture in self.captures)

    def _stored(self, capture: Capture, value: CapturedValue) -> CapturedValue:
        """A captured time as microseconds, as Spark's timestamps are; everything else as it is."""
        if capture.type is not CaptureType.ISO8601_DATE_TIME:
            return value
        return instant_of_date_time(str(value), self.zone) // NANOS_PER_MICROSECOND


def _data(frame: DataFrame) -> list[Column]:
    return [sf.col(quote(name)) for name in frame.schema.names]


def _constant(value: CapturedValue, capture: Capture) -> Column:
    return _typed(sf.lit(value).cast(_stored_type(capture)), capture).alias(capture.name)


def _typed(stored: Column, capture: Capture) -> Column:
    if capture.type is CaptureType.ISO8601_DATE_TIME:
        return sf.timestamp_micros(stored)
    return stored


def _stored_type(capture: Capture) -> spark_types.DataType:
    if capture.type is CaptureType.ISO8601_DATE_TIME:
        return spark_types.LongType()
    return _TYPES[capture.type]

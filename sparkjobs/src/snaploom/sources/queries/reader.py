"""Readers of simple and complex queries over frames of their sources."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.errors import SnaploomError, SnapshotValueInvalid, SourceSchemaInvalid
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import ComplexVirtual, SimpleVirtual
from snaploom.plan.intervals import NO_TIME, IntervalSet, ReversedInterval, SourceSnapshots
from snaploom.policy.sqlfunctions import CHANGES_ROWS
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.port import ReaderContext, SourceFrame, SourceReader, not_listed, united
from snaploom.sources.queries.declared import INTERVAL_COLUMNS, ComplexQuery, SimpleQuery, bound
from snaploom.sources.sourcefiles import queried_fingerprint
from snaploom.sources.transformers import check_schema
from snaploom.spark.failures import translate
from snaploom.spark.gate import SqlPlace, checked_query
from snaploom.spark.types import find_field, fold_case

# A user's query over frames: it sees its aliases and nothing else.

_POSITION = re.compile(r"line (\d+),? pos (\d+)")


@dataclass(frozen=True)
class SourceQuery:
    """One query of a virtual source."""

    spark: SparkSession
    resource: str
    path: str
    aliases: tuple[str, ...]

    def over(self, query: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """The result of a query; not computed yet.

        A semicolon at the end of the one SELECT is ignored.

        Raises:
            SourceSchemaInvalid: it reads or runs what it may not, or Spark refuses it over these
                columns, or its own columns could not be published.
        """
        expected = f"SELECT over {' and '.join(self.aliases)}"
        place = SqlPlace(
            self.resource, self.path, SourceSchemaInvalid, expected, varying=CHANGES_ROWS
        )
        try:
            frame = checked_query(self.spark, query, frames, place)
        except (PySparkException, Py4JError) as error:
            raise self._refused(error, frames) from error
        check_schema(frame.schema, self.resource, self.path)
        return frame

    def _refused(self, error: Exception, frames: Mapping[str, DataFrame]) -> SnaploomError:
        position = _POSITION.search(str(error))
        # The query is resolved behind a line of ours.
        place = (
            f" at line {int(position[1]) - 1}, column {int(position[2]) + 1}" if position else ""
        )
        cause = translate(error)
        columns = (f"{', '.join(frame.schema.names)} in {name}" for name, frame in frames.items())
        return SourceSchemaInvalid(
            f"Spark refuses the query{place}: {cause.message}",
            resource=self.resource,
            path=self.path,
            found=f"columns {'; '.join(columns)}",
            hint=cause.hint,
        )


# Simple virtual sources: one query over each snapshot of one physical source.


def open_simple_query(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of a query over another source."""
    if not isinstance(source, SimpleQuery):
        return None
    read = context.reader(source.declared.data_source)
    return SimpleVirtualReader(context.spark, source.source.name, source.declared, read)


@dataclass(frozen=True)
class SimpleVirtualReader:
    """A query over the snapshots of another source."""

    spark: SparkSession
    name: str
    declared: SimpleVirtual
    source: SourceReader

    def listing(self) -> SourceSnapshots:
        return self.source.listing()

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        """The results of the query over each snapshot; not computed yet.

        Raises:
            SourceSchemaInvalid: Spark refuses the query over a snapshot's schema, or results have
                types that have nothing in common.
        """
        return united(f"DataSource/{self.name}", [self._of(snapshot) for snapshot in snapshots])

    def _of(self, snapshot: EpochNanos) -> SourceFrame:
        below = self.source.read(snapshot)
        alias, query = self.declared.alias, self.declared.data_query
        resource = f"DataSource/{self.name}"
        asked = SourceQuery(self.spark, resource, "spec.simpleVirtual.dataQuery", (alias,))
        frame = asked.over(query, {alias: below.frame})
        digest = queried_fingerprint(below.fingerprint, query)
        return SourceFrame(frame, snapshot, digest, below={alias: below})


# Complex virtual sources: queries over the latest snapshot of several sources, at any time.

MOST_INTERVALS = 1_000_000
"""Different intervals that a snapshotQuery may return: they are merged in the driver's memory."""

_PATH = "spec.complexVirtual"
_WHOLE = (
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
)


def open_complex_query(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of queries over other sources."""
    if not isinstance(source, ComplexQuery):
        return None
    declared = source.declared
    read = {each.alias: context.reader(each.data_source) for each in declared.data_sources}
    return ComplexVirtualReader(context.spark, source.source.name, declared, read, context.now)


@dataclass(frozen=True)
class ComplexVirtualReader:
    """Queries over the latest snapshots of other sources."""

    spark: SparkSession
    name: str
    declared: ComplexVirtual
    sources: Mapping[str, SourceReader]
    """By alias; aliases of one source share its reader."""
    now: EpochNanos

    def listing(self) -> SourceSnapshots:
        """An interval set; nothing when one of the sources has no snapshot.

        Raises:
            SourceSchemaInvalid: snapshotQuery is refused, or returns other columns.
            SnapshotValueInvalid: an interval has no beginning or no end, or ends before it begins.
        """
        return SourceSnapshots(intervalset=self._intervalset)

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        """The data at one of its times; not computed yet.

        Raises:
            SnapshotMissing: no interval holds this time.
            SourceSchemaInvalid: dataQuery is refused.
        """
        (snapshot,) = snapshots
        if self._intervalset.newest(snapshot, snapshot) is None:
            raise not_listed(self.name, snapshot)
        query = bound(self.declared.data_query, snapshot)
        frame = self._query("dataQuery").over(query, self._frames)
        prints = {alias: read.fingerprint for alias, read in self._latest.items()}
        document = json.dumps([prints, query], sort_keys=True)
        digest = hashlib.sha256(document.encode()).hexdigest()
        return SourceFrame(frame, snapshot, digest, below=self._latest)

    @cached_property
    def _latest(self) -> Mapping[str, SourceFrame]:
        """The latest snapshot of each source, by alias; empty when one of them has none."""
        found: dict[str, SourceFrame] = {}
        by_name: dict[str, SourceFrame] = {}
        for alias, reader in self.sources.items():
            if reader.name not in by_name:
                time = reader.listing().latest(self.now)
                if time is None:
                    return {}
                by_name[reader.name] = reader.read(time)
            found[alias] = by_name[reader.name]
        return found

    @cached_property
    def _frames(self) -> Mapping[str, DataFrame]:
        return {alias: read.frame for alias, read in self._latest.items()}

    @cached_property
    def _intervalset(self) -> IntervalSet:
        if not self._latest:
            return NO_TIME
        frame = self._query("snapshotQuery").over(self.declared.snapshot_query, self._frames)
        rows = self._intervals(frame)
        if len(rows) > MOST_INTERVALS:
            raise self._invalid(
                f"the query returns more than {MOST_INTERVALS:,} different intervals",
                expected="intervals that touch, merged into one",
            )
        without = [row for row in rows if row[0] is None or row[1] is None]
        if without:
            raise self._invalid(
                f"{len(without):,} of {len(rows):,} intervals have no beginning or no end",
                found=str(tuple(without[0])),
                expected="two numbers in every row; coalesce() makes one of NULL",
            )
        try:
            return IntervalSet.of((row[0], row[1]) for row in rows)
        except ReversedInterval as error:
            raise self._invalid(
                "an interval ends before it begins",
                found=str(error),
                expected="interval_start <= interval_end, both belonging to the interval",
            ) from error

    def _intervals(self, frame: DataFrame) -> Sequence[Row]:
        names = {fold_case(name) for name in frame.schema.names}
        if len(frame.schema) != len(INTERVAL_COLUMNS) or names != set(INTERVAL_COLUMNS):
            raise self._wrong_columns(frame)
        found = [find_field(frame.schema, name) for name in INTERVAL_COLUMNS]
        if not all(field is not None and isinstance(field.data_type, _WHOLE) for field in found):
            raise self._wrong_columns(frame)
        columns = [sf.col(name).cast("bigint") for name in INTERVAL_COLUMNS]
        try:
            return frame.select(*columns).distinct().limit(MOST_INTERVALS + 1).collect()
        except (PySparkException, Py4JError) as error:
            path = f"{_PATH}.snapshotQuery"
            raise translate(error, resource=self._resource, path=path) from error

    def _query(self, field: str) -> SourceQuery:
        return SourceQuery(self.spark, self._resource, f"{_PATH}.{field}", tuple(self.sources))

    @property
    def _resource(self) -> str:
        return f"DataSource/{self.name}"

    def _wrong_columns(self, frame: DataFrame) -> SourceSchemaInvalid:
        return SourceSchemaInvalid(
            "snapshotQuery must return exactly interval_start and interval_end",
            resource=self._resource,
            path=f"{_PATH}.snapshotQuery",
            found=frame.schema.simpleString(),
            expected="interval_start and interval_end of type bigint: milliseconds since 1970",
            hint="unix_millis() makes milliseconds of a timestamp",
        )

    def _invalid(self, message: str, expected: str, found: str = "") -> SnapshotValueInvalid:
        return SnapshotValueInvalid(
            message,
            resource=self._resource,
            path=f"{_PATH}.snapshotQuery",
            found=found or None,
            expected=expected,
            hint="correct snapshotQuery",
        )

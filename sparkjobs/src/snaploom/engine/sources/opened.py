"""From declared sources to their readers, each opened once a run.

A source may be read in several places: as a node of the tree, and by virtual sources under one
alias or more. All of them share its reader, and with it what the reader has listed.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from snaploom.engine.sources.databases.readers import open_jdbc
from snaploom.engine.sources.databases.table import DatabaseTable
from snaploom.engine.sources.declaredcolumns import ShapedReader
from snaploom.engine.sources.files.readers import open_hdfs_like
from snaploom.engine.sources.port import SourceReader
from snaploom.engine.sources.queries.complex import ComplexVirtualReader
from snaploom.engine.sources.queries.simple import SimpleVirtualReader
from snaploom.engine.sources.tables.readers import open_table
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSourceSpec
from snaploom.models.finding import InvalidDeclarations, errors_of
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.databases.checks import jdbc_findings
from snaploom.planning.sources.tableformats import table_format
from snaploom.storage.listingcache import Listings


class Sources:
    """The readers of one run."""

    def __init__(
        self,
        spark: SparkSession,
        bundle: Bundle,
        now: EpochNanos,
        listings: Listings | None = None,
        allow: Allowances = NO_ALLOWANCES,
    ) -> None:
        """Nothing is opened yet.

        Args:
            spark: the session, with the settings of `snaploom.engine.settings`.
            bundle: holds the sources and what they read; validated.
            now: the instant of the run: the time of `fromReadTime` snapshots.
            listings: what earlier runs learned of files; None to ask all of them.
            allow: what declarations may use beyond the built-in lists.
        """
        self._spark = spark
        self._bundle = bundle
        self._now = now
        self._listings = listings
        self._allow = allow
        self._opened: dict[str, SourceReader] = {}
        self._tables: list[DatabaseTable] = []
        self._applicators = {item.name: item for item in bundle.metadata_applicators}
        self._transformers = {item.name: item for item in bundle.field_transformers}

    def reader(self, name: str) -> SourceReader:
        """The reader of one source; nothing is listed or read yet."""
        if name not in self._opened:
            self._opened[name] = self._shaped(name, self._bundle.source(name).spec)
        return self._opened[name]

    def close(self) -> None:
        """Close connections to databases; frames of their tables cannot be read any more."""
        for table in self._tables:
            table.close()

    def _shaped(self, name: str, spec: DataSourceSpec) -> SourceReader:
        variant = spec.variant
        return ShapedReader(
            self._open(name, spec),
            DataSourceSpec.variant_of(spec),
            tuple(self._transformers[used] for used in variant.field_transformers),
            tuple(self._applicators[used] for used in variant.metadata_applicators),
        )

    def _open(self, name: str, spec: DataSourceSpec) -> SourceReader:
        if spec.hdfs_like is not None and table_format(spec.hdfs_like) is not None:
            return open_table(self._spark, name, spec.hdfs_like, self._now)
        if spec.hdfs_like is not None:
            return open_hdfs_like(
                self._spark, name, spec.hdfs_like, self._now, self._listings, self._allow
            )
        if spec.jdbc is not None:
            source = self._bundle.source(name)
            # Once more, since the writer of the Bundle need not have validated it.
            refused = errors_of(jdbc_findings(spec.jdbc, source, self._allow))
            if refused:
                raise InvalidDeclarations(refused)
            table = DatabaseTable(self._spark, source.identity, spec.jdbc, self._now)
            self._tables.append(table)
            return open_jdbc(name, table)
        if spec.simple_virtual is not None:
            below = self.reader(spec.simple_virtual.data_source)
            return SimpleVirtualReader(self._spark, name, spec.simple_virtual, below)
        assert spec.complex_virtual is not None  # guaranteed by one_of
        read = {
            source.alias: self.reader(source.data_source)
            for source in spec.complex_virtual.data_sources
        }
        return ComplexVirtualReader(self._spark, name, spec.complex_virtual, read, self._now)


def open_source(
    spark: SparkSession,
    bundle: Bundle,
    name: str,
    now: EpochNanos,
    allow: Allowances = NO_ALLOWANCES,
) -> SourceReader:
    """The reader of one source by itself; a run that reads several opens `Sources`."""
    return Sources(spark, bundle, now, allow=allow).reader(name)

"""From declared sources to their readers, each opened once a run.

A source may be read in several places: as a node of the tree, and by virtual sources under one
alias or more. All of them share its reader, and with it what the reader has listed.
"""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import SparkSession

from snaploom.engine.hadoopfiles import HadoopFiles
from snaploom.engine.sources.declaredcolumns import ShapedReader
from snaploom.engine.sources.port import SourceReader
from snaploom.engine.sources.readercontext import ReaderContext
from snaploom.engine.sources.registry import open_declared
from snaploom.hadoop.client import client_of
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSource
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.registry import declared
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
        files: SourceFiles | None = None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            spark: the session, with the settings of `snaploom.engine.settings`.
            bundle: holds the sources and what they read; validated.
            now: the instant of the run: the time of `fromReadTime` snapshots.
            listings: what earlier runs learned of files; None to ask all of them.
            allow: what declarations may use beyond the built-in lists.
            files: what was listed before there was a session.
        """
        self._bundle = bundle
        self._resources = ExitStack()
        hadoop = HadoopFiles(client_of(spark))
        listed = SourceFiles(hadoop) if files is None else files.asking(hadoop)
        self._context = ReaderContext(
            spark, now, allow, listings, listed, self.reader, self._resources
        )
        self._opened: dict[str, SourceReader] = {}
        self._applicators = {item.name: item for item in bundle.metadata_applicators}
        self._transformers = {item.name: item for item in bundle.field_transformers}

    def reader(self, name: str) -> SourceReader:
        """The reader of one source; nothing is listed or read yet."""
        if name not in self._opened:
            self._opened[name] = self._shaped(self._bundle.source(name))
        return self._opened[name]

    def close(self) -> None:
        """Close connections to databases; frames of their tables cannot be read any more."""
        self._resources.close()

    def _shaped(self, source: DataSource) -> SourceReader:
        known, variant = declared(source), source.spec.variant
        return ShapedReader(
            open_declared(known, self._context),
            known.field,
            tuple(self._transformers[used] for used in variant.field_transformers),
            tuple(self._applicators[used] for used in variant.metadata_applicators),
        )


def open_source(
    spark: SparkSession,
    bundle: Bundle,
    name: str,
    now: EpochNanos,
    allow: Allowances = NO_ALLOWANCES,
) -> SourceReader:
    """The reader of one source by itself; a run that reads several opens `Sources`."""
    return Sources(spark, bundle, now, allow=allow).reader(name)

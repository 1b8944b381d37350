"""Simple virtual sources: one query over each snapshot of one physical source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pyspark.sql import SparkSession

from snaploom.engine.sources.port import SourceFrame, SourceReader
from snaploom.engine.sources.queries.sourcequery import SourceQuery
from snaploom.engine.sources.readercontext import ReaderContext
from snaploom.models.datasource import SimpleVirtual
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.sources.declared import DeclaredSource
from snaploom.planning.sources.queries.simple import SimpleQuery


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
        """The snapshots of the source that is read."""
        return self.source.listing()

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The result of the query over one snapshot; not computed yet.

        Raises:
            SourceSchemaInvalid: Spark refuses the query over this snapshot's schema.
            SourceError: the source cannot be read.
        """
        below = self.source.read(snapshot)
        alias, query = self.declared.alias, self.declared.data_query
        resource = f"DataSource/{self.name}"
        asked = SourceQuery(self.spark, resource, "spec.simpleVirtual.dataQuery", (alias,))
        frame = asked.over(query, {alias: below.frame})
        digest = hashlib.sha256(f"{below.fingerprint}\n{query}".encode()).hexdigest()
        return SourceFrame(frame, snapshot, digest, below={alias: below})

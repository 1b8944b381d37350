"""Flint's builder of skipping indexes, and the registration of its data source."""

from dataclasses import dataclass
from importlib.util import find_spec

from pyspark.sql import SparkSession

from snaploom.errors import IndexNotFound
from snaploom.models.skippingindex import RefreshMode
from snaploom.plugins import flint
from snaploom.plugins.flint.metadata import PREFIX, SUFFIX, FlintForm, index_name
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.lifecycle.operations import RefreshResult
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import TableName
from snaploom.skipping.stores.port import StoredState

# Flint's builder of skipping indexes, over the same engine as every other interface.

FULL, INCREMENTAL = RefreshMode.FULL, RefreshMode.INCREMENTAL
"""Flint's modes of a refresh."""


@dataclass(frozen=True)
class FlintSpark:
    """Skipping indexes by Flint's names."""

    spark: SparkSession
    location: str = ""

    def skipping_index(self) -> IndexBuilder:
        """Begin to build an index."""
        return skipping_index(self.spark, self.location)

    def refresh(self, name: str, mode: RefreshMode = FULL) -> RefreshResult:
        """Bring an index up to date; `IndexNotFound` if there is none of that name."""
        return self._indexes.refresh(self._subject(name), mode)

    def describe_index(self, name: str) -> Description:
        """Describe an index; `IndexNotFound` if there is none of that name."""
        return self._indexes.describe(self._subject(name))

    def delete_index(self, name: str) -> StoredState:
        """Delete an index; `vacuum_index` removes what it kept."""
        return self._indexes.drop(self._subject(name))

    def vacuum_index(self, name: str) -> StoredState:
        """Remove the rows of a deleted index."""
        return self._indexes.vacuum(self._subject(name))

    def recover_index(self, name: str) -> StoredState:
        """Clean up after an operation that failed or died."""
        return self._indexes.recover(self._subject(name))

    @property
    def _indexes(self) -> SkippingIndexes:
        return SkippingIndexes(self.spark, self.location)

    def _subject(self, name: str) -> TableName:
        """The table whose index has a name.

        Deleted indexes are in no list, so the tables of the current database are searched, too.
        """
        lowered = name.lower()
        definitions = (one.definition for one in self._indexes.list())
        known = [one.target.table for one in definitions if one is not None and one.target.table]
        catalog, database = (
            self.spark.catalog.currentCatalog(),
            self.spark.catalog.currentDatabase(),
        )
        known += [f"{catalog}.{database}.{one.name}" for one in self.spark.catalog.listTables()]
        for form in FlintForm:
            for table in known:
                if index_name(table, form) == lowered:
                    return TableName(tuple(table.split(".")))
        raise IndexNotFound(
            f"no table has an index of the name {name}",
            expected=f"{PREFIX}<catalog>_<database>_<table>{SUFFIX}, or {PREFIX}<table>{SUFFIX}",
        )


# The data source `flint` in each session in which skipping is enabled.

_CLIENT = "opensearchpy"
"""Client of OpenSearch, an optional dependency: without it there is no data source."""


def offer(spark: SparkSession) -> None:
    """Make the data source known to a session, where its client is installed."""
    if find_spec(_CLIENT) is not None:
        flint.offer(spark)

"""Location of index metadata, by a named folder or by properties of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.hadoop.store import hadoop_stores
from snaploom.skipping.core.definition import Target
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.lifecycle.interchange import (
    CatalogProperties,
    FoundMetadata,
    interchange,
    registered_interchange,
)
from snaploom.storage.stores import open_store

_CATALOG = "spark_catalog."


def find_metadata(
    spark: SparkSession, target: Target, directory: str, keys: ParquetKeys | None
) -> FoundMetadata:
    """Find the metadata store of a target in a folder or, if that is empty, by properties.

    Raises:
        IndexNotPossible: no package here knows such stores.
        IndexNotFound: there is none.
        IndexUnreadable: it is damaged, or of a newer version.
        KeyUnavailable: it is encrypted, and a key is unavailable.
    """
    known = interchange()
    is_named = directory or not target.table
    properties = (
        CatalogProperties() if is_named else _properties(spark, target.table, known.property_names)
    )
    opened = partial(open_store, create=False, others=hadoop_stores(spark))
    return known.find(target, directory, properties, opened, keys)


def base_of_properties(spark: SparkSession, table: str) -> str:
    """The folder of a table's indexes by properties; empty for none."""
    known = registered_interchange()
    return "" if known is None else known.base(_properties(spark, table, known.property_names))


def _properties(spark: SparkSession, table: str, names: Sequence[str]) -> CatalogProperties:
    state = spark._jsparkSession.sessionState()
    try:
        name = state.sqlParser().parseTableIdentifier(table.removeprefix(_CATALOG))
        metadata = state.catalog().getTableMetadata(name)
        database = state.catalog().getDatabaseMetadata(metadata.database())
        return CatalogProperties(
            _chosen(metadata.properties(), names), _chosen(database.properties(), names)
        )
    except (PySparkException, Py4JJavaError):
        return CatalogProperties()  # a table of another catalog, which has no such properties


def _chosen(properties: JavaObject, names: Sequence[str]) -> Mapping[str, str]:
    """Properties that name a location; reading all of them costs a call each."""
    found = {name: properties.get(name) for name in names}
    return {name: str(value.get()) for name, value in found.items() if value.isDefined()}

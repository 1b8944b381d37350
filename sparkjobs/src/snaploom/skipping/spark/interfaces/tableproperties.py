"""Properties of a table and its database that name where index metadata are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.skipping.lifecycle.interchange import CatalogProperties

CATALOG = "spark_catalog."
"""How names of tables of Spark's own catalog may begin."""


def properties_of(spark: SparkSession, table: str, names: Sequence[str]) -> CatalogProperties:
    """Properties of some names.

    Args:
        spark: the session that knows the table.
        table: its name; nothing is known about those of other catalogs.
        names: of the properties; reading all of them costs a call each.
    """
    state = spark._jsparkSession.sessionState()
    try:
        name = state.sqlParser().parseTableIdentifier(table.removeprefix(CATALOG))
        metadata = state.catalog().getTableMetadata(name)
        database = state.catalog().getDatabaseMetadata(metadata.database())
        return CatalogProperties(
            _chosen(metadata.properties(), names), _chosen(database.properties(), names)
        )
    except (PySparkException, Py4JJavaError):
        return CatalogProperties()


def _chosen(properties: JavaObject, names: Sequence[str]) -> Mapping[str, str]:
    found = {name: properties.get(name) for name in names}
    return {name: str(value.get()) for name, value in found.items() if value.isDefined()}

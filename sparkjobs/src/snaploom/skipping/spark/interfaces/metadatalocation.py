"""Where a metadata store of others lies: a folder that was named, or that properties name.

A table's property names the store itself, its database's a folder with one store for each table
(`snaploom.skipping.formats.xskipper.locations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import IndexNotFound
from snaploom.hadoop.store import hadoop_stores
from snaploom.skipping.core.definition import Target
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.formats.xskipper.directory import XskipperDirectory
from snaploom.skipping.formats.xskipper.locations import (
    LOCATION,
    OLD_LOCATION,
    LocationKind,
    below_base,
    property_in,
    resolve,
)
from snaploom.skipping.formats.xskipper.objectnames import table_identifier
from snaploom.skipping.formats.xskipper.storereader import StoredMetadata
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.stores import open_store

_CATALOG = "spark_catalog."
_NAMES = (LOCATION, OLD_LOCATION)


def find_metadata(
    spark: SparkSession, target: Target, directory: str, keys: ParquetKeys | None
) -> StoredMetadata:
    """The metadata store of a target.

    Args:
        spark: the session that knows the table.
        target: what the metadata are about.
        directory: the store, or a folder with the stores of many tables; empty for the one that
            properties of the table or its database name.
        keys: for encrypted stores.

    Raises:
        IndexNotFound: there is none.
        IndexUnreadable: it is damaged, or of a newer version.
        KeyUnavailable: it is encrypted, and a key is not to be had.
    """
    folders = _folders(spark, target, directory)
    for folder in folders:
        try:
            return XskipperDirectory(_store(spark, folder), keys).read()
        except IndexNotFound:
            continue
    raise IndexNotFound(
        "there is no metadata store",
        found=f"no Parquet files in {' or '.join(folders)}",
        expected="the folder of a metadata store, or the one that holds those of many tables",
        hint="look for a folder with files part-*.parquet in it",
    )


def _store(spark: SparkSession, folder: str) -> ObjectStore:
    return open_store(folder, create=False, others=hadoop_stores(spark))


def base_of_properties(spark: SparkSession, table: str) -> str:
    """The folder of a table's indexes by properties; empty for none."""
    of_table, of_database = _properties(spark, table)
    own = property_in(of_table)
    if own is not None:
        return str(PurePosixPath(own.rstrip("/")).parent) if "/" in own else ""
    return property_in(of_database) or ""


def _folders(spark: SparkSession, target: Target, directory: str) -> list[str]:
    table = target.table.removeprefix(_CATALOG)
    identifiers = [name for name in (table, table_identifier(target.uri)) if name]
    if directory:
        return [directory, *(below_base(directory, name) for name in identifiers)]
    if not table:
        raise IndexNotFound(
            "the location of the metadata store is not set",
            found="files that are no table, so that no property names it",
            expected="the folder of the store",
            hint="name it: `snaploom index import TARGET DIRECTORY`",
        )
    of_table, of_database = _properties(spark, target.table)
    kind = LocationKind.HIVE_TABLE_NAME
    found = [resolve(kind, "", name, of_table, of_database) for name in identifiers]
    return list(dict.fromkeys(found))


def _properties(spark: SparkSession, table: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Properties of a table of Spark's own catalog, and of its database."""
    state = spark._jsparkSession.sessionState()
    try:
        name = state.sqlParser().parseTableIdentifier(table.removeprefix(_CATALOG))
        metadata = state.catalog().getTableMetadata(name)
        database = state.catalog().getDatabaseMetadata(metadata.database())
        return _as_mapping(metadata.properties()), _as_mapping(database.properties())
    except (PySparkException, Py4JJavaError):
        return {}, {}  # a table of another catalog, which has no such properties


def _as_mapping(properties: JavaObject) -> Mapping[str, str]:
    """The properties that name a location; reading all of them costs a call each."""
    found = {name: properties.get(name) for name in _NAMES}
    return {name: str(value.get()) for name, value in found.items() if value.isDefined()}

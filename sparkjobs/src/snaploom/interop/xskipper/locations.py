"""Location of a metadata store, by the reference's four kinds of locations.

Pure: the caller brings the properties of table and database. A table's own property names the
store itself; a database's names a base path. Properties of the reference's predecessor are read
where the newer ones are absent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from snaploom.errors import IndexNotFound

LOCATION = "io.xskipper.parquet.mdlocation"
"""Property (and parameter) that names the location."""

LOCATION_KIND = "io.xskipper.parquet.mdlocation.type"
"""Parameter that decides what `LOCATION` means."""

OLD_LOCATION = "spark.ibm.metaindex.parquet.mdlocation"
"""The same property, of the predecessor."""


class LocationKind(StrEnum):
    """Meaning of a location's text."""

    EXPLICIT_LOCATION = "EXPLICIT_LOCATION"
    """The store itself."""
    EXPLICIT_BASE_PATH_LOCATION = "EXPLICIT_BASE_PATH_LOCATION"
    """A base path of stores of many tables; the default."""
    HIVE_TABLE_NAME = "HIVE_TABLE_NAME"
    """A table whose property names the store; else the property of its database."""
    HIVE_DB_NAME = "HIVE_DB_NAME"
    """A database whose property names a base path."""


def below_base(base: str, identifier: str) -> str:
    """The store of a table below a base path."""
    return f"{base.rstrip('/')}/{hashlib.sha256(identifier.encode()).hexdigest()}"


def resolve(
    kind: LocationKind,
    location: str,
    identifier: str,
    table_properties: Mapping[str, str],
    database_properties: Mapping[str, str],
) -> str:
    """The folder of a store.

    Args:
        kind: meaning of `location`.
        location: a path; of no use for the two kinds that name a table or database, whose
            properties are given instead.
        identifier: of the table.
        table_properties: of the table, for HIVE_TABLE_NAME.
        database_properties: of its database, for HIVE_TABLE_NAME and HIVE_DB_NAME.

    Raises:
        IndexNotFound: the properties do not name a location.
    """
    if kind is LocationKind.EXPLICIT_LOCATION:
        return location.rstrip("/") or "/"
    if kind is LocationKind.EXPLICIT_BASE_PATH_LOCATION:
        return below_base(location, identifier)
    own = property_in(table_properties) if kind is LocationKind.HIVE_TABLE_NAME else None
    if own is not None:
        return own.rstrip("/") or "/"
    base = property_in(database_properties)
    if base is None:
        raise IndexNotFound(
            f"no property names the metadata store of {identifier}",
            expected=f"{LOCATION} on the table or its database",
            hint="name the folder of the store",
        )
    return below_base(base, identifier)


def property_in(properties: Mapping[str, str]) -> str | None:
    """The location that properties of a table or database name; None for none."""
    return properties.get(LOCATION, properties.get(OLD_LOCATION))

"""Tables of databases, as lineage names them (`snaploom.planning.datasetnames`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from snaploom.models.datasource import Jdbc, JdbcDriver
from snaploom.planning.datasetnames import DatasetName
from snaploom.planning.sources.databases.drivers import DATABASES
from snaploom.planning.sources.databases.tablenames import table_parts

_NAMESPACES: Mapping[JdbcDriver, str] = {
    JdbcDriver.POSTGRESQL: "postgres",
    JdbcDriver.MYSQL: "mysql",
    JdbcDriver.MARIADB: "mariadb",
    JdbcDriver.SQLSERVER: "sqlserver",
    JdbcDriver.ORACLE: "oracle",
    JdbcDriver.SQLITE: "sqlite",
    JdbcDriver.H2: "h2",
    JdbcDriver.DUCKDB: "duckdb",
}
_SCHEMA = {JdbcDriver.POSTGRESQL: "public", JdbcDriver.SQLSERVER: "dbo"}
"""Where a table is whose reference names no schema."""


def table_dataset(jdbc: Jdbc) -> DatasetName:
    """The dataset that is a table of a database."""
    parts = table_parts(jdbc.table_reference)
    if len(parts) == 1 and jdbc.driver in _SCHEMA:
        parts = (_SCHEMA[jdbc.driver], *parts)
    if jdbc.url is not None:
        address = re.split(r"[?;]", jdbc.url.removeprefix("jdbc:"), maxsplit=1)[0]
        return DatasetName(address, ".".join(parts))
    scheme, database = _NAMESPACES[jdbc.driver], jdbc.database or ""
    port = jdbc.port or DATABASES[jdbc.driver].port
    if jdbc.host is None or port is None:
        return DatasetName(f"{scheme}://{database}", ".".join(parts))
    if parts[0] != database:
        parts = (database, *parts)
    return DatasetName(f"{scheme}://{jdbc.host}:{port}", ".".join(parts))

"""Reads databases for `init --from`: catalogue and first rows, by Spark and a JDBC driver.

Asked are `DatabaseMetaData`'s questions, which are the same for all drivers; how many rows a table
has is what its statistics hold, since counting would read all of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import SourceError
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import Jdbc, JdbcDriver
from snaploom.models.run import RunSettings
from snaploom.plugins.discovery import profiles
from snaploom.plugins.discovery.foundfiles import (
    DATABASE_ROWS,
    MOST_TABLES,
    SECONDS,
    LeftOut,
)
from snaploom.run.driverlock import LOCK_FILE, cached_jar, read_lock, verified_jar
from snaploom.run.session.classarchive import JARS
from snaploom.run.session.spark import build_session
from snaploom.sources.databases.connection import (
    JdbcConnection,
    connect,
    refuse_other_zones,
    refused,
)
from snaploom.sources.databases.declared import DeclaredKey, table_parts
from snaploom.sources.databases.drivers import DATABASES, DRIVER_JAR_BY_NAME
from snaploom.sources.databases.table import DatabaseTable, address_of

COUNTED_ROWS = 10_000_000
"""Rows of a table up to which a database is asked about all of them, by `count(DISTINCT ..)` and
the like; by its statistics, where it has some."""
_SYSTEM = frozenset({
    "information_schema", "pg_catalog", "pg_toast", "mysql", "performance_schema", "sys",
})  # fmt: skip
_KINDS = ("TABLE", "PARTITIONED TABLE", "BASE TABLE")
_PARTITIONS = """SELECT n.nspname, c.relname FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relispartition"""
"""Tables of PostgreSQL that are parts of another one."""


@dataclass(frozen=True)
class CatalogTable:
    """A table as the catalogue has it."""

    reference: str
    """As `tableReference` names it."""
    name: str
    rows: int
    """By its statistics, which may be old; 0 without any."""
    primary_key: tuple[str, ...]
    foreign_keys: tuple[DeclaredKey, ...]


def catalog_of(
    spark: SparkSession, declared: Jdbc, resource: str, most: int
) -> tuple[tuple[CatalogTable, ...], tuple[str, ...]]:
    """The tables that a user may see, by name, and the references of those that are too many.

    `declared` is any source of the database; its table is not read. At most `most` tables are asked
    about.

    Raises:
        SourceError: the database cannot be reached, or refuses.
    """
    refuse_other_zones(spark, resource)
    connection = connect(spark, address_of(declared, resource))
    try:
        places = sorted(_places(connection, declared))
        tables = tuple(_table(connection, declared, place) for place in places[:most])
    finally:
        connection.close()
    return tables, tuple(profiles.reference_of(*place) for place in places[most:])


def sample_of(spark: SparkSession, declared: Jdbc, resource: str, most: int) -> pa.Table:
    """The first rows of a table, with the types that Spark reads.

    It has at most `most` rows.

    Raises:
        SourceError: the table cannot be read.
    """
    table = DatabaseTable(spark, resource, declared, EpochNanos(0))
    try:
        return table.read().limit(most).toArrow()
    except (PySparkException, Py4JError) as error:
        login = address_of(declared, resource).login
        raise refused(error, resource, login) from None
    finally:
        table.close()


def _places(connection: JdbcConnection, declared: Jdbc) -> Iterable[tuple[str, str]]:
    """Schema and name of each table; the schema is empty where a database has none."""
    catalog = connection.java.getCatalog()
    wanted = declared.options.get("currentSchema")
    found = connection.catalogue(lambda meta: meta.getTables(catalog, wanted, "%", None))
    parts = _partitions(connection, declared)
    for row in found:
        place = (row.get("TABLE_SCHEM", ""), row["TABLE_NAME"])
        is_ours = row.get("TABLE_TYPE", "").upper() in _KINDS and place not in parts
        if is_ours and place[0].lower() not in _SYSTEM:
            yield place


def _partitions(connection: JdbcConnection, declared: Jdbc) -> frozenset[tuple[str, str]]:
    if declared.driver is not JdbcDriver.POSTGRESQL:
        return frozenset()
    return frozenset((row[0] or "", row[1] or "") for row in connection.run(_PARTITIONS))


def _table(connection: JdbcConnection, declared: Jdbc, place: tuple[str, str]) -> CatalogTable:
    catalog, (schema, name) = connection.java.getCatalog(), place
    keys = connection.catalogue(lambda meta: meta.getPrimaryKeys(catalog, schema or None, name))
    foreign = connection.catalogue(lambda meta: meta.getImportedKeys(catalog, schema or None, name))
    by_name: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in sorted(foreign, key=_place_in_key):
        by_name[row.get("FK_NAME") or row["PKTABLE_NAME"]].append(row)
    return CatalogTable(
        reference=profiles.reference_of(schema, name),
        name=name,
        rows=_rows(connection, place),
        primary_key=tuple(row["COLUMN_NAME"] for row in sorted(keys, key=_place_in_key)),
        foreign_keys=tuple(
            DeclaredKey(
                key,
                tuple(row["FKCOLUMN_NAME"] for row in rows),
                profiles.reference_of(rows[0].get("PKTABLE_SCHEM", ""), rows[0]["PKTABLE_NAME"]),
                tuple(row["PKCOLUMN_NAME"] for row in rows),
            )
            for key, rows in sorted(by_name.items())
        ),
    )


def _place_in_key(row: dict[str, str]) -> int:
    return int(row.get("KEY_SEQ") or 0)


def _rows(connection: JdbcConnection, place: tuple[str, str]) -> int:
    """Row counts of the statistics of the table and its indexes; some drivers have none."""
    catalog, (schema, name) = connection.java.getCatalog(), place
    with suppress(SourceError, ValueError):
        found = connection.catalogue(
            lambda meta: meta.getIndexInfo(catalog, schema or None, name, False, True)
        )
        return max((int(float(row.get("CARDINALITY") or 0)) for row in found), default=0)
    return 0


def read_database(address: profiles.DatabaseAddress) -> profiles.DatabaseContent:
    """The tables of a database, a bounded part of each.

    Args:
        address: of the database; user and password are in the variables that it names.

    Raises:
        SourceError: the driver or a variable is missing, or the database refuses.
        SparkNotStarted: there is no Java.
    """
    settings = [(JARS, str(jar)) for jar in _jars(address)]
    spark = build_session("snaploom init", RunSettings(), asked=settings)
    found, rest = catalog_of(spark, address.source("tables"), address.uri, MOST_TABLES)
    left_out = [LeftOut(f"{address.uri} {name}", f"only {MOST_TABLES} tables are looked into")
                for name in rest]  # fmt: skip
    where = address_of(address.source("tables"), address.uri)

    def ask(sql: str) -> Sequence[Sequence[object]]:
        with suppress(SourceError):
            connection = connect(spark, where)
            try:
                return connection.run(sql, seconds=SECONDS)
            finally:
                connection.close()
        return ()

    tables: list[profiles.ReadTable] = []
    for table in found:
        try:
            sample = sample_of(spark, address.source(table.reference), address.uri, DATABASE_ROWS)
        except SourceError as error:
            left_out.append(LeftOut(f"{address.uri} {table.reference}", error.message))
        else:
            read = len(sample)
            rows = read if read < DATABASE_ROWS else max(read, table.rows)
            if read == DATABASE_ROWS and table.rows <= COUNTED_ROWS:
                quoted = DATABASES[address.driver].quoted
                parts = ".".join(map(quoted, table_parts(table.reference)))
                rows = max((int(str(row[0])) for row in ask(f"SELECT count(*) FROM {parts}")),
                           default=rows)  # fmt: skip
            tables.append(
                profiles.ReadTable(
                    table.reference, table.name, sample, rows, table.primary_key,
                    table.foreign_keys, ask if rows <= COUNTED_ROWS else None,
                )
            )  # fmt: skip
    return profiles.DatabaseContent(tuple(tables), tuple(left_out))


def _jars(address: profiles.DatabaseAddress) -> tuple[Path, ...]:
    """The jar of the driver: the locked one, or one in the cache; none where Spark may have it."""
    name = address.driver.value.lower()
    lock = Path(LOCK_FILE)
    held = read_lock(lock)
    if name in held:
        return (verified_jar(held[name], lock),)
    known = DRIVER_JAR_BY_NAME.get(name)
    return (verified_jar(known, lock),) if known is not None and cached_jar(known).is_file() else ()

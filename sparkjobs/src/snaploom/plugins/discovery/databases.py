"""Reads databases for `init --from`: catalogue and first rows, by Spark and a JDBC driver."""

from __future__ import annotations

from pathlib import Path

from snaploom.errors import SourceError
from snaploom.models.run import RunSettings
from snaploom.plugins.discovery.foundfiles import DATABASE_ROWS, MOST_TABLES, LeftOut
from snaploom.plugins.discovery.profiles import DatabaseAddress, DatabaseContent, ReadTable
from snaploom.run.driverlock import LOCK_FILE, cached_jar, read_lock, verified_jar
from snaploom.run.session.classarchive import JARS
from snaploom.run.session.spark import build_session
from snaploom.sources.databases.catalog import catalog_of, sample_of
from snaploom.sources.databases.drivers import DRIVER_JAR_BY_NAME


def read_database(address: DatabaseAddress) -> DatabaseContent:
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
    tables: list[ReadTable] = []
    for table in found:
        try:
            sample = sample_of(spark, address.source(table.reference), address.uri, DATABASE_ROWS)
        except SourceError as error:
            left_out.append(LeftOut(f"{address.uri} {table.reference}", error.message))
        else:
            read = len(sample)
            rows = read if read < DATABASE_ROWS else max(read, table.rows)
            tables.append(ReadTable(table.reference, table.name, sample, rows, table.primary_key,
                                    table.foreign_keys))  # fmt: skip
    return DatabaseContent(tuple(tables), tuple(left_out))


def _jars(address: DatabaseAddress) -> tuple[Path, ...]:
    """The jar of the driver: the locked one, or one in the cache; none where Spark may have it."""
    name = address.driver.value.lower()
    lock = Path(LOCK_FILE)
    held = read_lock(lock)
    if name in held:
        return (verified_jar(held[name], lock),)
    known = DRIVER_JAR_BY_NAME.get(name)
    return (verified_jar(known, lock),) if known is not None and cached_jar(known).is_file() else ()

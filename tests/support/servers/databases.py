"""Databases for tests: where their drivers are, how a source names them, and those in files."""

import functools
import subprocess
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support.declared.sources import READ_TIME
from support.servers.mariadbserver import DATABASE, MariaDb
from support.servers.postgresserver import PASSWORD, USER, Postgres

JARS = Path(__file__).parents[3] / ".ci" / "jars"
LOGIN = {"fromPlaintext": {"user": USER, "password": PASSWORD}}


def driver_jars() -> Path:
    """Folder with the jars of drivers whose databases tests read."""
    return fetched_jars("jdbc")


@functools.cache
def fetched_jars(component: str) -> Path:
    """Folder with the jars of one of tests/support/components; fetched when they are not there."""
    found = subprocess.run([JARS, component], check=True, stdout=subprocess.PIPE, text=True)
    return Path(found.stdout.strip())


def in_postgres(server: Postgres, table: str, **settings: Any) -> dict[str, Any]:
    """The spec of a source in PostgreSQL; read as one snapshot unless `snapshot` is given."""
    declared = {
        "driver": "POSTGRESQL",
        "host": "127.0.0.1",
        "port": server.port,
        "database": "postgres",
        "credentials": LOGIN,
        "tableReference": table,
        "snapshot": READ_TIME,
        **settings,
    }
    return {"jdbc": {name: value for name, value in declared.items() if value is not None}}


def in_h2(file: Path, table: str, **settings: Any) -> dict[str, Any]:
    """The spec of a source in an H2 file."""
    declared = {
        "driver": "H2",
        "database": str(file),
        "tableReference": table,
        "snapshot": READ_TIME,
        **settings,
    }
    return {"jdbc": declared}


def in_mariadb(
    server: MariaDb, table: str, driver: str = "MARIADB", **settings: Any
) -> dict[str, Any]:
    """The spec of a source in MariaDB, read by one of the two drivers that it has."""
    declared = {
        "driver": driver,
        "host": "127.0.0.1",
        "port": server.port,
        "database": DATABASE,
        "credentials": LOGIN,
        "tableReference": table,
        "snapshot": READ_TIME,
        **settings,
    }
    return {"jdbc": {name: value for name, value in declared.items() if value is not None}}


def in_duckdb(file: Path, table: str, **settings: Any) -> dict[str, Any]:
    """The spec of a source in a DuckDB file."""
    declared = {
        "driver": "DUCKDB",
        "database": str(file),
        "tableReference": table,
        "snapshot": READ_TIME,
        **settings,
    }
    return {"jdbc": declared}


def make_duckdb(spark: SparkSession, file: Path, *statements: str) -> None:
    """Carry out statements in a DuckDB file, by the driver that reads it."""
    gateway = spark.sparkContext._gateway
    connection = gateway.jvm.java.sql.DriverManager.getConnection(f"jdbc:duckdb:{file}")
    try:
        for statement in statements:
            connection.createStatement().execute(statement)
    finally:
        connection.close()


def make_h2(file: Path, sql: str) -> None:
    """Carry out statements in an H2 file, new or not, as a user without a name."""
    script = file.with_suffix(".sql")
    script.write_text(sql, encoding="utf-8")
    command = ["java", "-cp", f"{driver_jars()}/*", "org.h2.tools.RunScript"]
    subprocess.run(
        [*command, "-url", f"jdbc:h2:file:{file}", "-script", str(script)], check=True, text=True
    )

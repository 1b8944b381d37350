"""A connection of the driver's JVM to a database, for questions with short answers.

Spark opens connections of its own to read; this one asks whether the table is there, counts, and
holds the moment at which all of them look at it. It goes through Spark's registry of drivers, so
that a driver that Spark can load is found, wherever its jar is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from snaploom.engine.sources.databases.failures import DriverMissing, refused
from snaploom.engine.sources.databases.login import Login
from snaploom.hadoop.jvm import jvm_of

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class JdbcAddress:
    """Where a database is, and how it is reached."""

    resource: str
    """`Kind/name` of the source."""
    driver_class: str
    url: str
    """Without user and password."""
    options: Mapping[str, str]
    """Of the driver; no user and no password."""
    login: Login | None

    @property
    def properties(self) -> dict[str, str]:
        """The options with user and password."""
        login = {} if self.login is None else {"user": self.login.user}
        secret = {} if self.login is None else {"password": self.login.password}
        return {**self.options, **login, **secret}


@dataclass(frozen=True)
class JdbcConnection:
    """An open connection."""

    address: JdbcAddress
    java: JavaObject

    def run(self, statement: str, path: str = "") -> list[Row]:
        """Carry out one statement; its rows, every value as text.

        `path` is the field of the source that it comes from.

        Raises:
            SourceError: the database refuses it.
        """
        try:
            carried_out = self.java.createStatement()
            try:
                if not carried_out.execute(statement):
                    return []
                return _rows(carried_out.getResultSet())
            finally:
                carried_out.close()
        except Py4JError as error:
            raise refused(error, self.address.resource, self.address.login, path) from None

    def catalogue(self, question: Callable[[JavaObject], JavaObject]) -> list[dict[str, str]]:
        """The rows of an answer of the catalogue, every value as text, by the column's label.

        `question` asks the `java.sql.DatabaseMetaData` for a `java.sql.ResultSet`.

        Raises:
            SourceError: the database refuses it.
        """
        try:
            answer = question(self.java.getMetaData())
            try:
                about = answer.getMetaData()
                columns = range(1, int(about.getColumnCount()) + 1)
                labels = [str(about.getColumnLabel(column)).upper() for column in columns]
                return [
                    {label: value or "" for label, value in zip(labels, row, strict=True)}
                    for row in _rows(answer)
                ]
            finally:
                answer.close()
        except Py4JError as error:
            raise refused(error, self.address.resource, self.address.login) from None

    def begin(self) -> None:
        """Begin a transaction for all statements that follow."""
        self.java.setAutoCommit(False)

    def close(self) -> None:
        """Close; a failure to close a connection that is no longer needed is ignored."""
        with suppress(Py4JError, OSError):
            self.java.close()


def connect(spark: SparkSession, address: JdbcAddress) -> JdbcConnection:
    """Open a connection.

    Raises:
        DriverMissing: there is no such driver, or it is not one for this kind of database.
        SourceError: the database cannot be reached, or refuses.
    """
    jvm = jvm_of(spark)
    registry = jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
    try:
        registry.register(address.driver_class)
        driver = registry.get(address.driver_class)
    except Py4JError:
        raise _no_driver(address, "there is no such class among Spark's jars") from None
    properties = jvm.java.util.Properties()
    for name, value in address.properties.items():
        properties.setProperty(name, value)
    try:
        java = driver.connect(address.url, properties)
    except Py4JError as error:
        # The cause would repeat the URL, and may repeat more.
        raise refused(error, address.resource, address.login) from None
    if java is None:
        raise _no_driver(address, "it is not a driver of this kind of database")
    return JdbcConnection(address, java)


def _no_driver(address: JdbcAddress, what: str) -> DriverMissing:
    return DriverMissing(
        f"the database has no driver here: {what}",
        resource=address.resource,
        path="spec.jdbc.driverClass",
        found=address.driver_class,
        expected="the class of a driver in Spark's jars",
        hint="on a laptop `snaploom drivers install`; in a cluster add its jar to the image",
    )


def _rows(result: JavaObject) -> list[Row]:
    columns = range(1, int(result.getMetaData().getColumnCount()) + 1)
    rows: list[Row] = []
    while result.next():
        rows.append(tuple(result.getString(column) for column in columns))
    return rows

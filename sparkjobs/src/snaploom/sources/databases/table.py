"""One table of a database during a run, read in parallel by conditions that it evaluates."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark
from pyspark.sql.types import DataType, DecimalType, IntegralType

from snaploom.errors import SourceError, SourceSchemaInvalid
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import IsolationLevel, Jdbc, JdbcDriver
from snaploom.sources.databases.connection import (
    JdbcAddress,
    JdbcConnection,
    connect,
    login_of,
    refuse_other_zones,
    refused,
)
from snaploom.sources.databases.declared import ALLOW_URL_VARIABLE, table_parts
from snaploom.sources.databases.drivers import (
    DATABASES,
    Database,
    connection_url,
    first_statement,
    properties_of,
)
from snaploom.sources.databases.splits import doubt_of
from snaploom.sources.snapshotcolumn import RawValue
from snaploom.sources.transformers import check_schema
from snaploom.spark.types import fold_case

# The rows of one snapshot, as a condition that the database itself evaluates.

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def condition_for(
    database: Database, column: str, data_type: spark.DataType, values: Sequence[RawValue]
) -> str:
    """SQL that is true for rows whose column has one of the values.

    `values` are those of `SnapshotColumn.values`.
    """
    quoted = database.quoted(column)
    return " OR ".join(f"({_one(database, quoted, data_type, value)})" for value in values)


def _one(database: Database, column: str, data_type: spark.DataType, value: RawValue) -> str:
    if isinstance(data_type, spark.TimestampType):
        return _during(column, database.instant, _EPOCH + int(value) * _MICROSECOND)
    if isinstance(data_type, spark.TimestampNTZType):
        return _during(column, database.local_time, datetime.fromisoformat(str(value)))
    if isinstance(data_type, spark.DateType):
        day = date.fromordinal(_EPOCH_DAY + int(value)).isoformat()
        return f"{column} = {database.date.format(text=day)}"
    if isinstance(data_type, spark.StringType):
        return f"{column} = {database.text(str(value))}"
    return f"{column} = {int(value)}"


def _during(column: str, literal: str, moment: datetime) -> str:
    at_least = f"{column} >= {literal.format(text=_text(moment))}"
    if moment > datetime.max - _MICROSECOND:
        return at_least
    return f"{at_least} AND {column} < {literal.format(text=_text(moment + _MICROSECOND))}"


def _text(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="microseconds")


# A table of a database as a frame, with a partition for each condition.


def jdbc_frame(
    spark: SparkSession,
    url: str,
    table: str,
    predicates: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame:
    """A frame of a table; the database is asked for the schema, and for nothing else yet.

    `table` is a name as the database quotes it, or a query in parentheses with a name behind it.
    Each predicate is read by one task; without any, one task reads everything.

    Raises:
        Py4JError: likewise.
    """
    if not predicates:
        return spark.read.jdbc(url, table, properties=dict(options))
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # set once a session exists
    jvm = gateway.jvm
    package = jvm.org.apache.spark.sql.execution.datasources.jdbc
    partitions = gateway.new_array(jvm.org.apache.spark.Partition, len(predicates))
    for number, predicate in enumerate(predicates):
        partitions[number] = package.JDBCPartition(predicate, number)
    kept = package.JDBCOptions(url, table, jvm.PythonUtils.toScalaMap(dict(options)))
    session = spark._jsparkSession
    relation = getattr(getattr(package, "JDBCRelation$"), "MODULE$").apply(
        partitions, kept, session
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


# One table of a database during one run: looked at once, then read by Spark in parallel.

ROWS = "snaploom_rows"
"""Column of `DatabaseTable.values_of` with the number of rows."""

_SAME_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_NO_LIMIT = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""The transaction that holds the moment does nothing while Spark reads."""
_EXPORT = "SELECT pg_export_snapshot(), txid_current_snapshot()"


class UrlNotAllowed(SourceError):
    """A source gives a whole JDBC URL, and nobody has allowed that."""


@dataclass(frozen=True)
class _Session:
    """Facts known once the database was asked."""

    connection: JdbcConnection
    first_statement: str
    """The first statement of every connection of Spark's; empty for none."""
    moment: str
    """Identifies this state of the database."""


def address_of(declared: Jdbc, resource: str) -> JdbcAddress:
    """Return the address of a source's database, and its connection settings.

    Raises:
        CredentialsRefused: a variable with user or password is not set.
    """
    if declared.url is not None and os.environ.get(ALLOW_URL_VARIABLE) != "true":
        raise UrlNotAllowed(
            "a JDBC URL is not allowed here: it can carry options by which drivers run code",
            resource=resource,
            path="spec.jdbc.url",
            expected="driver, host, port, database and options",
        )
    return JdbcAddress(
        resource,
        declared.driver_class or DATABASES[declared.driver].driver_class,
        connection_url(declared),
        properties_of(declared),
        login_of(declared.credentials, os.environ, resource),
    )


@dataclass(frozen=True)
class DatabaseTable:
    """The table of one `jdbc` source; nothing is opened before it is needed."""

    spark: SparkSession
    resource: str
    declared: Jdbc
    now: EpochNanos

    @cached_property
    def database(self) -> Database:
        """The facts about databases of its kind."""
        return DATABASES[self.declared.driver]

    def look(self) -> None:
        """Make sure that the table is there and may be read."""
        _ = self._session

    def read(self, condition: str = "") -> DataFrame:
        """The rows that meet a condition, or all; nothing but the schema is read yet."""
        if self.declared.check_predicates and len(self.declared.table_predicates) > 0:
            _ = self._counted
        frame = self._rows_that(condition) if condition else self.rows
        check_schema(frame.schema, self.resource, "spec.jdbc.tableReference")
        return frame

    def values_of(self, column: str, *, is_time: bool) -> DataFrame:
        """Every value of a column, and how many rows have it; grouped by the database.

        `is_time` is whether it is a date or a timestamp.
        """
        name = self.database.quoted(column)
        value = self.database.finite.format(column=name) if is_time else name
        rows = self.database.quoted(ROWS)
        grouped = (
            f"SELECT {value} AS {name}, COUNT(*) AS {rows} FROM {self._table} GROUP BY {value}"
        )
        return self._frame(f"({grouped}) {self.database.quoted('snaploom_values')}", [])

    @cached_property
    def rows(self) -> DataFrame:
        """All of the table; its schema is known, and whether predicates split it is not yet."""
        return self._rows_that("")

    def fingerprint(self, condition: str = "") -> str:
        """A hash that changes whenever the rows of a condition may have changed.

        PostgreSQL reports whether anything was written since; elsewhere every run has its own.
        """
        read = [self._address.url, self._table, condition, self._session.moment]
        return hashlib.sha256(json.dumps(read).encode()).hexdigest()

    def close(self) -> None:
        """Close the connection, which ends its moment; frames cannot be read then."""
        if "_session" in self.__dict__:
            self._session.connection.close()

    @cached_property
    def _table(self) -> str:
        return ".".join(map(self.database.quoted, table_parts(self.declared.table_reference)))

    @cached_property
    def _address(self) -> JdbcAddress:
        return address_of(self.declared, self.resource)

    @cached_property
    def _session(self) -> _Session:
        refuse_other_zones(self.spark, self.resource)
        connection = connect(self.spark, self._address)
        try:
            session = self._begun(connection)
            # In PostgreSQL this also keeps others from changing its columns while we read.
            connection.run(f"SELECT 1 FROM {self._table} WHERE 1 = 0")
        except BaseException:
            connection.close()
            raise
        return session

    def _begun(self, connection: JdbcConnection) -> _Session:
        level = self.declared.isolation_level
        if self.declared.driver is JdbcDriver.POSTGRESQL and level != IsolationLevel.READ_COMMITTED:
            connection.begin()
            connection.run(_SAME_MOMENT)
            connection.run(_NO_LIMIT)
            ((exported, moment),) = connection.run(_EXPORT, "spec.jdbc.isolationLevel")
            return _Session(
                connection, f"{_SAME_MOMENT}; SET TRANSACTION SNAPSHOT '{exported}'", str(moment)
            )
        statement = first_statement(self.declared)
        if statement and self.database.read_only:
            connection.run(statement)
        return _Session(connection, statement, str(self.now))

    def _rows_that(self, condition: str) -> DataFrame:
        """Rows that meet a condition, in a partition for each predicate."""
        predicates = self.declared.table_predicates or (("",) if condition else ())
        both = [" AND ".join(f"({c})" for c in (p, condition) if c) for p in predicates]
        return self._frame(self._readable, both)

    @cached_property
    def _readable(self) -> str:
        """The table, or a query with its columns as types that Spark knows.

        Columns of other types are left out where `schemaFields` does not have them.
        """
        casts = self._casts
        if self.declared.schema_fields is not None:
            try:
                self._frame(self._with(casts, ()), [])
            except SourceSchemaInvalid:
                names = self._session.connection.columns_of(self._table)
                return self._with(casts, [name for name in names if self._is_named(name)])
        return self._with(casts, ())

    def _with(self, casts: Mapping[str, str], names: Sequence[str]) -> str:
        """The table with some columns cast, and only those of some names if there are any."""
        quoted = self.database.quoted
        if names:
            listed = ", ".join(casts.get(name, quoted(name)) for name in names)
        elif casts:
            listed = f"* REPLACE ({', '.join(casts.values())})"
        else:
            return self._table
        return f"(SELECT {listed} FROM {self._table}) {quoted('snaploom_read')}"

    @cached_property
    def _casts(self) -> dict[str, str]:
        """Columns that Spark reads as another type only, with the SQL of that."""
        if not self.database.read_as:
            return {}
        described = f"SELECT column_name, column_type FROM (DESCRIBE {self._table})"
        casts = {}
        for name, kind in self._session.connection.run(described):
            text, column = str(kind), self.database.quoted(str(name))
            first = "[]" if text.endswith("]") else text.partition("(")[0]
            if first in self.database.read_as:
                casts[str(name)] = f"CAST({column} AS {self.database.read_as[first]}) AS {column}"
        return casts

    def _is_named(self, column: str) -> bool:
        """Whether the declaration has a column, or may have it in a predicate."""
        folded, snapshot = fold_case(column), self.declared.snapshot.from_field_value
        texts = [*self.declared.table_predicates, snapshot.field_name if snapshot else ""]
        declared = {fold_case(field.name) for field in self.declared.schema_fields or ()}
        return folded in declared or any(folded in fold_case(text) for text in texts)

    def _frame(self, table: str, predicates: list[str]) -> DataFrame:
        session = self._session
        options = {
            **self._address.properties,
            "driver": self._address.driver_class,
            "fetchsize": str(self.declared.fetch_size),
            # Times without a zone stay so, instead of being read in the zone of this machine.
            "preferTimestampNTZ": "true",
        }
        if session.first_statement:
            options["sessionInitStatement"] = session.first_statement
        try:
            return jdbc_frame(self.spark, self._address.url, table, predicates, options)
        except (PySparkException, Py4JError) as error:
            raise refused(error, self.resource, self._address.login) from None

    @cached_property
    def _counted(self) -> None:
        """Asked once, in the database: does each row meet one predicate?"""
        met = " + ".join(
            f"CASE WHEN ({predicate}) THEN 1 ELSE 0 END"
            for predicate in self.declared.table_predicates
        )
        doubted = self._doubted_by_values()
        if doubted == "":
            return
        wrong = f"({met}) <> 1"
        condition = wrong if doubted is None else f"({doubted}) AND {wrong}"
        path = "spec.jdbc.tablePredicates"
        # Without groups, of which PostgreSQL expects a million, so that it neither works in
        # parallel nor without compiling: a quarter of the time, measured.
        others = f"SELECT COUNT(*) FROM {self._table} WHERE {condition}"
        ((number,),) = self._session.connection.run(others, path)
        if int(number or 0):
            self._refuse_split(met, path)

    def _doubted_by_values(self) -> str | None:
        """Rows that may not meet one predicate, by the values of a column; None for any row.

        Only whole numbers are in a column that Spark reads as an integer, or as a decimal without
        digits after the point.
        """
        doubt = doubt_of(self.declared.table_predicates, self.database.dialect)
        if doubt is None:
            return None
        name = doubt.column.casefold()
        fields = [field for field in self.rows.schema if field.name.casefold() == name]
        if len(fields) != 1 or not _is_whole(fields[0].dataType):
            return None
        return doubt.condition(self.database.quoted(fields[0].name))

    def _refuse_split(self, met: str, path: str) -> None:
        """Report how many rows are left out, and how many are read twice."""
        # Grouped, so that databases which fold a subquery into its reader count once a row.
        each = f"(SELECT {met} AS met FROM {self._table}) counted"
        statement = f"SELECT met, COUNT(*) FROM {each} GROUP BY met"
        found = self._session.connection.run(statement, path)
        rows = {int(count or 0): int(number or 0) for count, number in found}
        total, left_out = sum(rows.values()), rows.get(0, 0)
        twice = total - left_out - rows.get(1, 0)
        raise SourceSchemaInvalid(
            "the predicates do not split the table into parts",
            resource=self.resource,
            path=path,
            found=f"of {total} rows, {left_out} meet none and {twice} meet more than one",
            expected="exactly one predicate for every row, those with NULL included",
            hint="cover NULL by a predicate such as `id IS NULL`, and let bounds not overlap",
        )


def _is_whole(data_type: DataType) -> bool:
    if isinstance(data_type, DecimalType):
        return data_type.scale == 0
    return isinstance(data_type, IntegralType)

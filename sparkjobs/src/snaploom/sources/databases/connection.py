"""Connections to a database through its driver: login, zone, and failures without secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.confidential import HIDDEN, remember_secret
from snaploom.errors import SourceError, SourceNotReadable, SourceSchemaInvalid
from snaploom.models.datasource import Credentials
from snaploom.plan.bundles import user_and_password
from snaploom.sources.databases.drivers import driver_hint
from snaploom.spark.failures import DEEPEST_CAUSE, condense
from snaploom.spark.jvm import jvm_of

# Refusals by a database or its driver as errors: one line, no secret, and a fix.


class DriverMissing(SourceError):
    """The class of a JDBC driver is not in Spark's jars, or is not one for this database."""


@dataclass(frozen=True)
class _Kind:
    states: tuple[str, ...]
    """Prefixes of the SQLSTATE."""
    error: type[SourceError]
    field: str
    message: str
    hint: str


_TABLE = _Kind(
    ("42P01", "42S02", "42S03", "42S04", "3F000", "90079"),
    SourceNotReadable,
    "tableReference",
    "there is no such table, or this user may not see it",
    "names are taken letter for letter: look at the spelling, with capitals, and at the schema",
)


# The login to a database: read when it is needed, stored nowhere, never printed.


class CredentialsRefused(SourceError):
    """There are no credentials where they should be, or the database does not accept them."""


_KINDS = (
    _Kind(
        ("28",),
        CredentialsRefused,
        "credentials",
        "the database refuses this user or password",
        "correct the credentials, or let the user connect",
    ),
    _TABLE,
    _Kind(
        ("42501", "42000.229"),
        CredentialsRefused,
        "credentials",
        "this user may not read the table",
        "grant SELECT on it",
    ),
    _Kind(
        ("3D", "90146", "90013"),
        SourceNotReadable,
        "database",
        "there is no such database",
        "correct database",
    ),
    _Kind(
        ("08", "90067"),
        SourceNotReadable,
        "host",
        "the database cannot be reached",
        "look at host and port, and whether the network lets the driver's pod connect",
    ),
    _Kind(
        ("42", "22"),
        SourceSchemaInvalid,
        "tableReference",
        "the database refuses a statement",
        "look at tablePredicates and schemaFields",
    ),
)
_NO_TYPE = _Kind(
    (),
    SourceSchemaInvalid,
    "tableReference",
    "a column has a type that Spark does not know",
    "leave it out by schemaFields, or read a view of the database that casts it",
)
_NO_TYPE_CONDITION = "UNRECOGNIZED_SQL_TYPE"
_OTHER = _Kind(
    ("",), SourceNotReadable, "tableReference", "the database cannot be read", "try again"
)


def refused(
    error: PySparkException | Py4JError, resource: str, login: Login | None, path: str = ""
) -> SourceError:
    """The error for a failure of the database.

    `login` must not be shown; `path` is the field at work, omitted the one that such failures are
    mostly about.
    """
    state, message = _state_and_message(error)
    kind = next((k for k in _KINDS if state.startswith(k.states)), _OTHER)
    if _NO_TYPE_CONDITION in str(error):
        kind = _NO_TYPE
    return kind.error(
        kind.message,
        resource=resource,
        path=path or f"spec.jdbc.{kind.field}",
        found=message if login is None else login.hide(message),
        hint=kind.hint,
    )


def _state_and_message(error: PySparkException | Py4JError) -> tuple[str, str]:
    """SQLSTATE and message of the first failure of the database; its own text without one."""
    chain = tuple(_chain(error))
    deepest = condense(str(chain[-1].getMessage() if chain else error))
    for throwable in chain:
        state = _state(throwable)
        if state:
            message = condense(str(throwable.getMessage()))
            return state, message if deepest in message else f"{message}: {deepest}"
    return "?", deepest


def _chain(error: PySparkException | Py4JError) -> Iterator[JavaObject]:
    throwable = getattr(error, "java_exception", None) if isinstance(error, Py4JJavaError) else None
    throwable = throwable or getattr(error, "_origin", None)
    for _ in range(DEEPEST_CAUSE):
        if not isinstance(throwable, JavaObject):
            return
        yield throwable
        throwable = throwable.getCause()


def _state(throwable: JavaObject) -> str:
    try:
        return str(throwable.getSQLState() or "")
    except Py4JError:
        return ""  # no failure of a database


@dataclass(frozen=True)
class Login:
    """User name and password."""

    user: str = field(repr=False)
    password: str = field(repr=False)

    def hide(self, text: str) -> str:
        """A text without them, wherever a driver may have repeated one."""
        if self.password:
            text = text.replace(self.password, HIDDEN)
        # Names of users are short: as a part of a word it is not the name that stands there.
        return re.sub(rf"(?<!\w){re.escape(self.user)}(?!\w)", HIDDEN, text) if self.user else text


def login_of(
    credentials: Credentials | None, environment: Mapping[str, str], resource: str
) -> Login | None:
    """User name and password of a source; None where it needs none."""
    if credentials is None:
        return None
    if credentials.from_plaintext is not None:
        given = credentials.from_plaintext
        return _remembered(given.user, given.password.get_secret_value())
    keys = user_and_password(credentials)
    if keys is not None:
        names = {f"key {key.key} of Secret/{key.secret}": key.variable for key in keys}
        path, hint = (
            "fromSecret",
            "the operator sets it in the driver's pod; elsewhere set it by hand",
        )
    else:
        declared = credentials.from_environment
        assert declared is not None  # exactly one of the three is given
        names = {"user": declared.user_variable, "password": declared.password_variable}
        path, hint = "fromEnvironment", "set it where the job's driver runs"
    missing = [f"{name} ({what})" for what, name in names.items() if name not in environment]
    if missing:
        raise CredentialsRefused(
            "the credentials of the database are not there",
            resource=resource,
            path=f"spec.jdbc.credentials.{path}",
            found="no environment variable " + ", no ".join(missing),
            expected="user and password in the environment of the driver",
            hint=hint,
        )
    user, password = (environment[name] for name in names.values())
    return _remembered(user, password)


def _remembered(user: str, password: str) -> Login:
    remember_secret(password, user)
    return Login(user, password)


# Drivers hand times over by way of Java's own zone, which must be UTC therefore.

EXECUTOR_OPTIONS = ("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions")
"""The JVM options of executors, in the order in which Spark writes them: the last one counts."""
_ZONE = "-Duser.timezone="


class ZoneNotUtc(SourceError):
    """A database cannot be read rightly, since Java works in a zone that is not UTC."""


def refuse_other_zones(spark: SparkSession, resource: str) -> None:
    """Make sure that Java works in UTC, in the driver and in executors.

    The driver is asked; executors, which may not have begun, have what the session starts them
    with.
    """
    zones = jvm_of(spark).java
    own = zones.util.TimeZone.getDefault()
    if not _is_utc(own):
        raise _not_utc(resource, str(own.toZoneId().getId()))
    if str(spark.sparkContext.master).split("[")[0] == "local":
        return
    conf = spark.sparkContext.getConf()
    java_options = " ".join(conf.get(name, "") for name in EXECUTOR_OPTIONS)
    zone = zone_in(java_options)
    if zone is None or not _is_utc(zones.util.TimeZone.getTimeZone(zone)):
        raise _not_utc(resource, f"{zone or 'the zones of their machines'}, of executors")


def zone_in(options: str) -> str | None:
    """Java's zone as options of its command line give it; None where the machine decides."""
    found = [one for one in options.split() if one.startswith(_ZONE)]
    return found[-1].removeprefix(_ZONE) if found else None


def _is_utc(zone: JavaObject) -> bool:
    return str(zone.toZoneId().normalized().getId()) == "Z"


def _not_utc(resource: str, found: str) -> ZoneNotUtc:
    return ZoneNotUtc(
        "times of databases would be read wrongly: drivers hand them over in Java's zone",
        resource=resource,
        found=found,
        expected="UTC",
    )


# A connection of the driver's JVM to a database, for questions with short answers.

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class JdbcAddress:
    """Address of a database, and its connection settings."""

    resource: str
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

    def run(self, statement: str, path: str = "", seconds: int = 0) -> list[Row]:
        """Carry out one statement; its rows, every value as text.

        `path` is the field of the source that it comes from; `seconds` bound it, 0 for no bound.
        """
        try:
            carried_out = self.java.createStatement()
            try:
                carried_out.setQueryTimeout(seconds)
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

    def columns_of(self, table: str) -> list[str]:
        """The names of the columns of a table, which stands as in a statement."""
        try:
            asked = self.java.createStatement()
            try:
                about = asked.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData()
                columns = range(1, int(about.getColumnCount()) + 1)
                return [str(about.getColumnName(column)) for column in columns]
            finally:
                asked.close()
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
        hint=driver_hint(address.driver_class),
    )


def _rows(result: JavaObject) -> list[Row]:
    columns = range(1, int(result.getMetaData().getColumnCount()) + 1)
    rows: list[Row] = []
    while result.next():
        rows.append(tuple(result.getString(column) for column in columns))
    return rows

"""Refusals by a database or its driver as errors: one line, no secret, and a fix.

Drivers report the kind of a failure as its SQLSTATE, of which the first two characters are the same
for all of them (ISO/IEC 9075); H2 and others have their own behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from snaploom.engine.failures import DEEPEST_CAUSE, condense
from snaploom.engine.sources.databases.login import CredentialsRefused, Login
from snaploom.errors import SourceError, SourceNotReadable, SourceSchemaInvalid


class DriverMissing(SourceError):
    """The class of a JDBC driver is not in Spark's jars, or is not one for this database."""

    reason = "DriverMissing"
    exit_code = 2


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
    "read a view of the database that casts it",
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

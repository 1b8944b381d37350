"""Databases that `--from` names: their addresses, and the contents that a reader returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from snaploom.discovery.foundfiles import LeftOut, refuse_secret
from snaploom.errors import ArgumentInvalid
from snaploom.models.datasource import (
    Credentials,
    FromEnvironment,
    FromReadTime,
    Jdbc,
    JdbcDriver,
    SnapshotSettings,
)
from snaploom.planning.sources.databases.declaredkeys import DeclaredKey
from snaploom.planning.sources.databases.drivers import DATABASES, HOST

_DRIVERS = {
    "postgresql": JdbcDriver.POSTGRESQL, "mysql": JdbcDriver.MYSQL, "mariadb": JdbcDriver.MARIADB,
    "duckdb": JdbcDriver.DUCKDB,
}  # fmt: skip
"""Databases that are looked into, by the beginning of their URLs."""
_EXPECTED = (
    "jdbc:postgresql://HOST[:PORT]/DATABASE[?OPTION=VALUE], likewise jdbc:mysql: and "
    "jdbc:mariadb:, or jdbc:duckdb:/FILE"
)


@dataclass(frozen=True)
class DatabaseAddress:
    """A database, without user and password."""

    driver: JdbcDriver
    host: str | None
    port: int | None
    database: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        """For people."""
        host = "" if self.host is None else f"//{self.host}"
        port = "" if self.port is None else f":{self.port}"
        slash = "" if self.host is None else "/"
        return f"jdbc:{self.driver.value.lower()}:{host}{port}{slash}{self.database}"

    @property
    def variables(self) -> tuple[str, str] | None:
        """The environment variables with user and password; None for a file."""
        if DATABASES[self.driver].is_file:
            return None
        name = re.sub(r"[^A-Z0-9]+", "_", self.database.upper()).strip("_") or "DB"
        name = name if name[0].isalpha() else f"DB_{name}"
        return f"{name}_DB_USER", f"{name}_DB_PASSWORD"

    def source(self, table_reference: str, snapshot: SnapshotSettings | None = None) -> Jdbc:
        """A source that reads one of its tables.

        Without `snapshot` it is the data present when it is read.
        """
        given: dict[str, object] = {"driver": self.driver}
        if self.host is not None:
            given["host"] = self.host
        if self.port is not None:
            given["port"] = self.port
        given["database"] = self.database
        if self.options:
            given["options"] = dict(self.options)
        if self.variables is not None:
            user, password = self.variables
            given["credentials"] = Credentials(
                from_environment=FromEnvironment(user_variable=user, password_variable=password)
            )
        given["table_reference"] = table_reference
        given["snapshot"] = snapshot or SnapshotSettings(from_read_time=FromReadTime())
        return Jdbc.model_validate(given)


@dataclass(frozen=True)
class ReadTable:
    """The contents read of one table."""

    reference: str
    """As `tableReference` names it."""
    name: str
    sample: pa.Table
    rows: int
    """In the table, as far as its database knows without counting; at least those of the sample."""
    primary_key: tuple[str, ...]
    foreign_keys: tuple[DeclaredKey, ...]


@dataclass(frozen=True)
class DatabaseContent:
    """The contents read of a database."""

    tables: tuple[ReadTable, ...]
    left_out: tuple[LeftOut, ...]


ReadDatabase = Callable[[DatabaseAddress], DatabaseContent]
"""Reads catalogue and first rows with a driver, which is beyond this package."""


def no_databases(address: DatabaseAddress) -> DatabaseContent:
    """Reads none.

    Raises:
        ArgumentInvalid: whatever is named.
    """
    raise _invalid(f"{address.uri}, and there is no Spark here to read it", "use `snaploom init`")


@dataclass(frozen=True)
class DatabaseTable:
    """Where a table of a database is."""

    address: DatabaseAddress
    reference: str


def is_database(uri: str) -> bool:
    """Whether a URI names a database."""
    return uri.partition(":")[0].lower() == "jdbc"


def database_address(uri: str) -> DatabaseAddress:
    """The database that a URI names, which has no secret.

    Raises:
        ArgumentInvalid: it is of no kind that is looked into, or no address.
    """
    refuse_secret(uri)
    scheme, _, rest = uri.partition(":")[2].partition(":")
    driver = _DRIVERS.get(scheme.lower())
    if driver is None:
        raise _invalid(
            f"databases of this kind are not looked into: {scheme or 'none'}",
            "declare its tables by hand, as how-to/read-a-database.md shows",
        )
    if DATABASES[driver].is_file:
        if DATABASES[driver].database_form is None or not rest.startswith("/"):
            raise _invalid("the path of the file is not absolute", "begin it with /")
        return DatabaseAddress(driver, None, None, rest)
    try:
        parts = urlsplit(rest)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _invalid("host or port of this URL cannot be read", "correct them") from None
    database = unquote(parts.path.removeprefix("/"))
    if not HOST.fullmatch(host) or not database or "/" in database:
        raise _invalid("this URL names no host, or no database", "write both")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(options) - DATABASES[driver].options)
    if unknown:
        raise _invalid(
            f"these options are not accepted: {', '.join(unknown)}",
            f"leave them out; accepted are {', '.join(sorted(DATABASES[driver].options))}",
        )
    return DatabaseAddress(driver, host, port, database, options)


def _invalid(found: str, hint: str) -> ArgumentInvalid:
    return ArgumentInvalid(
        "this is not the URL of a database that can be looked into",
        path="--from",
        found=found,
        expected=_EXPECTED,
        hint=hint,
    )

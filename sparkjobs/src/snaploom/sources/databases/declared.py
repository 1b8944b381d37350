"""`DatabaseSource`: a table of a database, its name, address, keys and checks."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from snaploom.confidential import without_user
from snaploom.models.allowances import Allowances
from snaploom.models.datasource import Credentials, DataSource, Jdbc, JdbcDriver, SnapshotSettings
from snaploom.models.findings import Finding, make_finding
from snaploom.policy import addresses
from snaploom.policy.fields import Findings, variable_findings
from snaploom.policy.formatfaults import FORMAT_CODE
from snaploom.policy.references import DeclaredColumns, Scope, columns_of
from snaploom.policy.secretdetection import names_a_login
from snaploom.policy.sqltext import SqlFault, SqlForm, SqlJudge, SqlText, judge
from snaploom.sources.databases.drivers import DATABASES, H2_FILES, HOST, has_host
from snaploom.sources.declared import (
    DatasetName,
    DeclaredSource,
    NoSnapshots,
    schema_findings,
    snapshot_findings,
)

# Keys that the catalogue of a database declares.


@dataclass(frozen=True)
class DeclaredKey:
    """A foreign key of a table."""

    name: str
    columns: tuple[str, ...]
    parent: str
    """Reference of the table that it leads to, as `tableReference` names it."""
    parent_columns: tuple[str, ...]


# Tables of databases, as lineage names them (`snaploom.sources.declared`).

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
"""Schema of a table whose reference names none."""


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


# Names of tables as a declaration writes them: `schema.table`, letter for letter.

MOST_PARTS = 3
"""Database, schema and table; a fourth would name another server."""

_PART = re.compile(r'"((?:[^"]|"")+)"|([^."\x00-\x1f]+)')


class TableNameInvalid(ValueError):
    """A text is not a name of a table."""


def table_parts(reference: str) -> tuple[str, ...]:
    """The names of a reference, outermost first, without quotes."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(reference, position)
        if match is None:
            raise TableNameInvalid("a name is empty, or its quotes do not match")
        parts.append(match[1].replace('""', '"') if match[1] else match[2].strip())
        position = match.end()
        if position == len(reference):
            break
        if reference[position] != ".":
            raise TableNameInvalid("something stands behind a quoted name")
        position += 1
    if not all(parts) or len(parts) > MOST_PARTS:
        raise TableNameInvalid(f"{len(parts)} names, of which none may be empty")
    return tuple(parts)


# Whole JDBC URLs, and the administrator's permission for them.

ALLOW_URL_VARIABLE = "SNAPLOOM_ALLOW_JDBC_URL"
"""Environment variable of a process that reads databases; `true` allows URLs."""


# Tables of databases: an address that stays an address, options that are known, whole conditions.


def jdbc_findings(
    spec: Jdbc, owner: DataSource, allow: Allowances, judge_sql: SqlJudge = judge
) -> Findings:
    """Everything that is wrong with one jdbc source by itself."""
    return (
        *_credentials(spec, owner),
        *variable_findings(spec.credentials, owner, "spec.jdbc.credentials"),
        *_address(spec, owner),
        *_code(spec, owner, allow),
        *_options(spec, owner),
        *_table(spec, owner),
        *_predicates(spec, owner, allow, judge_sql),
        *schema_findings(spec.schema_fields or (), owner, "spec.jdbc.schemaFields"),
        *snapshot_findings(spec.snapshot, spec.schema_fields or (), owner, "spec.jdbc"),
    )


def _address(spec: Jdbc, owner: DataSource) -> Iterator[Finding]:
    database = DATABASES[spec.driver]
    if database.why_not:
        yield _connection(
            owner, "driver", f"tables of {spec.driver} are not read", spec.driver.value,
            "another kind of database", database.why_not,
        )  # fmt: skip
    if spec.url is not None:
        yield from _url(spec.url, spec.driver, owner)
        return
    if spec.host is None and not database.is_file:
        yield _connection(
            owner, "host", "this kind of database needs a host", "no host",
            "the name or address of its server", "add `host`, such as `host: db.example.org`",
        )  # fmt: skip
    if spec.host is not None and not has_host(spec.driver):
        yield _connection(
            owner, "host", "this kind of database is a file, and has no host", spec.host, "no host",
            "remove `host`; `database` is the path of the file",
        )  # fmt: skip
    elif spec.host is not None and HOST.fullmatch(spec.host) is None:
        yield _connection(
            owner, "host", "this is not the name or address of a host", without_user(spec.host),
            "letters, digits, points and hyphens, or an address",
            "write only the name; a port belongs into `port`, user and password into credentials",
        )  # fmt: skip
    elif spec.host is not None and (refused := _refusal_of_address(spec.host, spec.port or 0)):
        yield _connection(
            owner, "host", f"this server is not connected to: {refused}", spec.host,
            "a server of a database", "name the server of the database by its host name",
        )  # fmt: skip
    form = database.database_form
    if form is not None and form.fullmatch(spec.database or "") is None:
        yield _connection(
            owner, "database", "this cannot be the name of such a database", spec.database or "",
            "an absolute path without '..', ':', ';' and '?'"
            if database.is_file
            else "a name without '/', '?', '#', '&' and '%'",
            "write only the name; parameters behind `?` of a URL belong in `options`",
        )  # fmt: skip


def _refusal_of_address(host: str, port: int) -> str:
    """Return why an address is none of a database; empty for a name, which is not resolved here."""
    address = addresses.literal_address(addresses.plain_host(host))
    if address is None:
        return ""
    return addresses.refusal_of_address(address, addresses.OF_ADMINISTRATOR, host, port)


def _code(spec: Jdbc, owner: DataSource, allow: Allowances) -> Iterator[Finding]:
    """Settings that would load unjudged code: the class of a driver, a file of H2."""
    database, allowed = DATABASES[spec.driver], frozenset(allow.formats)
    given = spec.driver_class
    if given is not None and given not in {*database.driver_classes, *allowed}:
        yield _unlisted(
            owner, "driverClass", "this class of a driver is not on the list", given,
            " or ".join(database.driver_classes),
        )  # fmt: skip
    if spec.host is None and spec.url is None and database.is_code and H2_FILES not in allowed:
        yield _unlisted(
            owner, "database", "a file of H2 can hold Java that runs as soon as it is opened",
            H2_FILES, "a server of H2 (host), or a database of another kind",
        )  # fmt: skip


def _unlisted(owner: DataSource, field: str, message: str, entry: str, expected: str) -> Finding:
    return make_finding(
        FORMAT_CODE,
        message,
        resource=owner.identity,
        path=f"spec.jdbc.{field}",
        found=entry,
        expected=expected,
        hint=f"or have `{entry}` added to the list `formats` (chart value allow.formats, or "
        f"--allow formats={entry})",
    )


def _url(url: str, driver: JdbcDriver, owner: DataSource) -> Iterator[Finding]:
    yield make_finding(
        "SL144",
        "a JDBC URL is accepted only where an administrator allows it",
        resource=owner.identity,
        path="spec.jdbc.url",
        found="url",
        expected="driver, host, port, database and options",
    )
    start = DATABASES[driver].address.split(":")[:2]
    if url.split(":")[:2] != start:
        yield _connection(
            owner, "url", "the URL is not one of this driver", "another beginning",
            ":".join(start), "correct `driver`, or the beginning of the URL",
        )  # fmt: skip
    if names_a_login(url):
        yield _connection(
            owner, "url", "a user or password stands in the URL", "not shown",
            "a URL without them", "use credentials",
        )  # fmt: skip


def _options(spec: Jdbc, owner: DataSource) -> Iterator[Finding]:
    allowed = DATABASES[spec.driver].options
    for name in sorted(set(spec.options) - allowed):
        yield make_finding(
            "SL146",
            f"this option is not among those that are allowed for {spec.driver}",
            resource=owner.identity,
            path=f"spec.jdbc.options.{name}",
            found=name,
            expected=", ".join(sorted(allowed)) or "no options",
        )
    levels = DATABASES[spec.driver].isolation
    if spec.isolation_level is not None and spec.isolation_level not in levels:
        yield _connection(
            owner, "isolationLevel", f"{spec.driver} has no such level", spec.isolation_level.value,
            ", ".join(levels) or "none",
            "write one of them, or leave isolationLevel out" if levels else "leave it out",
        )  # fmt: skip


def _credentials(spec: Jdbc, owner: DataSource) -> Iterator[Finding]:
    if spec.credentials is None:
        if not DATABASES[spec.driver].is_file:
            yield _connection(
                owner, "credentials", "this kind of database asks who connects", "none",
                "fromEnvironment or fromSecret",
                "add `credentials: {fromEnvironment: {userVariable: ..., passwordVariable: ...}}`",
            )  # fmt: skip
    elif spec.credentials.from_plaintext is not None:
        yield make_finding(
            "SL143",
            "the password stands in the declaration itself; clusters refuse that",
            resource=owner.identity,
            path="spec.jdbc.credentials.fromPlaintext",
            found="fromPlaintext",
            expected="fromEnvironment or fromSecret",
        )


def _table(spec: Jdbc, owner: DataSource) -> Iterator[Finding]:
    try:
        table_parts(spec.table_reference)
    except TableNameInvalid as error:
        yield _connection(
            owner, "tableReference", f"this is not the name of a table: {error}",
            spec.table_reference, f"up to {MOST_PARTS} names, with points between them",
            "put a name that contains a point into double quotes; for a query use simpleVirtual",
        )  # fmt: skip


def _predicates(
    spec: Jdbc, owner: DataSource, allow: Allowances, judge_sql: SqlJudge
) -> Iterator[Finding]:
    dialect, added = DATABASES[spec.driver].dialect, tuple(sorted(allow.functions))
    for index, predicate in enumerate(spec.table_predicates):
        verdict = judge_sql(SqlText(predicate, SqlForm.CONDITION, dialect, added))
        if isinstance(verdict, SqlFault):
            yield make_finding(
                "SL147",
                f"this is not one condition: {verdict.message}",
                resource=owner.identity,
                path=f"spec.jdbc.tablePredicates[{index}]",
                found=predicate,
                expected="what may stand behind WHERE, such as mod(id, 4) = 0",
            )


def _connection(
    owner: DataSource, field: str, message: str, found: str, expected: str, hint: str = ""
) -> Finding:
    return make_finding(
        "SL145",
        message,
        resource=owner.identity,
        path=f"spec.jdbc.{field}",
        found=found,
        expected=expected,
        hint=hint,
    )


def cluster_findings(spec: Jdbc, owner: DataSource, *, allow_jdbc_url: bool) -> Iterator[Finding]:
    """Settings that only a laptop accepts.

    Everyone with read access to resources can read a password in a spec (rule R16), and a JDBC URL
    can have options through which a driver runs code (rule W6). `allow_jdbc_url` is whether the
    operator's settings allow whole URLs.
    """
    if spec.credentials is not None and spec.credentials.from_plaintext is not None:
        yield make_finding(
            "SL143",
            "a password in a resource is readable by everyone who can read the resource",
            resource=owner.identity,
            path="spec.jdbc.credentials.fromPlaintext",
            hint="put it into a Secret, and name that in fromSecret",
        )
    if spec.url is not None and not allow_jdbc_url:
        yield make_finding(
            "SL144",
            "a JDBC URL is not accepted in this cluster: it could make the driver run code",
            resource=owner.identity,
            path="spec.jdbc.url",
        )


# `DatabaseSource`: a table of a database.


@dataclass(frozen=True)
class DatabaseSource(DeclaredSource):
    """A source that a driver of Java's database interface reads."""

    declared: Jdbc

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        declared = source.spec.jdbc
        return None if declared is None else cls(source, declared)

    def findings(self, scope: Scope) -> Findings:
        return jdbc_findings(self.declared, self.source, scope.allow, scope.judge_text)

    def cluster_findings(self, *, allow_jdbc_url: bool) -> Findings:
        """Passwords and URLs."""
        found = cluster_findings(self.declared, self.source, allow_jdbc_url=allow_jdbc_url)
        return tuple(found)

    @property
    def caption(self) -> str:
        return self.declared.driver.value.lower()

    @property
    def snapshot(self) -> SnapshotSettings:
        """By a column, or by the time of reading."""
        return self.declared.snapshot

    @property
    def no_history(self) -> str:
        """Each snapshot is a query of its own."""
        return "each snapshot is a query of a database: write the snapshots to files first"

    @property
    def columns(self) -> DeclaredColumns | None:
        fields = self.declared.schema_fields
        return None if fields is None else columns_of(fields)

    @property
    def credentials(self) -> Credentials | None:
        return self.declared.credentials

    @property
    def datasets(self) -> tuple[DatasetName, ...]:
        return (table_dataset(self.declared),)

    @property
    def no_snapshots(self) -> NoSnapshots:
        """A table without rows."""
        return NoSnapshots(self.field, "no snapshot", "check that the table has rows")

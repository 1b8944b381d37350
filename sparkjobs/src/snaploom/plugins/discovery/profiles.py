"""Profiles of sources after a bounded look, those of databases included."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from snaploom.errors import ArgumentInvalid
from snaploom.models.datasource import (
    Credentials,
    FromEnvironment,
    FromReadTime,
    Jdbc,
    JdbcDriver,
    SnapshotSettings,
)
from snaploom.plugins.discovery.dates import (
    DOUBLE,
    MOST_DAYS,
    STRING,
    ColumnDates,
    ColumnType,
    Family,
    Unit,
    column_dates,
)
from snaploom.plugins.discovery.foundfiles import LeftOut, refuse_secret
from snaploom.plugins.discovery.layout import Layout, TableFolder
from snaploom.plugins.discovery.names import column_words, common_prefix, nouns
from snaploom.plugins.discovery.scratch import (
    SNAPSHOT,
    AskDatabase,
    Rows,
    Values,
    combined,
    distinct_values,
    is_unique,
)
from snaploom.sources.databases.declared import DeclaredKey, table_parts
from snaploom.sources.databases.drivers import DATABASES, HOST

# Databases that `--from` names: their addresses, and the contents that a reader returns.

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


def reference_of(schema: str, name: str) -> str:
    """The name of a table as `tableReference` has it; without a schema where there is none."""
    parts = [part for part in (schema, name) if part]
    return ".".join(
        part if not set(part) & set('."') and table_parts(part) == (part,)
        else '"' + part.replace('"', '""') + '"' for part in parts
    )  # fmt: skip


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
    ask: AskDatabase | None = None
    """Asks about all of its rows."""


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
    """Location of a table of a database."""

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
            "name the file itself, without jdbc:sqlite:"
            if scheme.lower() == "sqlite"
            else "declare its tables by hand, as how-to/read-a-database.md shows",
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


# Facts about sources after a bounded look: frozen, without any value of the data.

_CODE = "[A-Z0-9][A-Z0-9._/-]*[0-9][A-Z0-9._/-]*"
_MOST_NULL = 0.05
"""Share of rows of a key that may have none, as the last line of a sheet."""
_GUID = re.compile("[0-9A-Fa-f]{8}(-?)(?:[0-9A-Fa-f]{4}\\1){3}[0-9A-Fa-f]{12}")


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """One column."""

    name: str
    type: ColumnType
    rows: int
    """Rows that were read of it."""
    nulls: int
    values: Values
    """Of no column for types that are no part of a key."""
    low: int | None
    """Least whole number; None for other types."""
    high: int | None
    mean_length: float
    """Characters of a text, on average; 0 for other types."""
    is_code: bool
    """Whether its texts are capitals and digits, as article numbers are, and not words."""
    is_guid: bool
    """Whether its first and its last text are UUIDs, of which one is evidence."""
    is_unique: bool
    """Whether the values read of one snapshot are distinct and none is NULL."""
    is_unique_beside_null: bool
    """Whether they are distinct but for few that are NULL, which meet nothing."""
    dates: ColumnDates | None = None
    """Its days, where they are few enough to be snapshots."""
    is_in_shared_range: bool = False
    """Whether a key of another source has most of its numbers, as both count from 10001."""

    @property
    def identifies(self) -> bool:
        """Whether no value stands in two rows of a snapshot."""
        return self.is_unique or self.is_unique_beside_null

    @property
    def may_be_key(self) -> bool:
        """Whether its type can be compared for equality without surprises."""
        return self.type.family in (Family.WHOLE, Family.TEXT)

    @property
    def density(self) -> float:
        """Share of the whole numbers between least and greatest that occur; 0 for other types."""
        if self.low is None or self.high is None:
            return 0.0
        return self.values.distinct / (self.high - self.low + 1)

    @cached_property
    def first_density(self) -> float:
        """The same of the lower half of its numbers: 1 of 1 to 1025 beside 10001 to 10300."""
        if self.low is None or not self.values.distinct:
            return 0.0
        asked = f"SELECT quantile_disc(k0, 0.5) FROM {self.values.keys}"
        return self.values.share_between(self.low, self.values.rows.scratch.number(asked))


@dataclass(frozen=True)
class SnapshotColumn:
    """The column whose values are the snapshots of a source, with the evidence of that."""

    name: str
    dates: ColumnDates
    evidence: str


@dataclass(frozen=True)
class ForeignKey:
    """A relationship that a database itself declares."""

    name: str
    columns: tuple[str, ...]
    parent: str
    """Name of the profile that it leads to."""
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SourceProfile:
    """One source."""

    name: str
    """Of its table."""
    origin: Layout | TableFolder | DatabaseTable
    columns: tuple[ColumnProfile, ...]
    snapshot: Values
    """Of each row that was read, which snapshot it is from."""
    format_options: Mapping[str, str] = field(default_factory=dict)
    has_one_schema: bool = True
    """Whether all files that were compared have the same columns."""
    notes: tuple[str, ...] = ()
    snapshot_column: SnapshotColumn | None = None
    """None where names of files have dates, or nothing has."""
    partition_columns: tuple[str, ...] = ()
    """By which the files of a table are divided."""
    primary_key: tuple[str, ...] = ()
    """As a database declares it; empty where nothing does."""
    foreign_keys: tuple[ForeignKey, ...] = ()
    """As a database declares them."""
    null_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of columns of CSV the texts that stand for no value, and are none of the column's type."""
    mixed: frozenset[str] = frozenset()
    """Columns that have several types in its files."""

    @cached_property
    def prefix(self) -> str:
        """The word that most of its columns begin with, as `l` of `l_orderkey`."""
        return common_prefix(tuple(column.name for column in self.columns))

    @cached_property
    def nouns(self) -> Mapping[str, tuple[str, bool]]:
        """Names of columns in several roles without these, and whether these are known."""
        return nouns(
            tuple(column.name for column in self.columns if column.may_be_key), self.prefix
        )

    @property
    def rows(self) -> int:
        """In all of it; estimated where only a part was read and nothing has their number."""
        return self.snapshot.rows.in_all

    @property
    def rows_read(self) -> int:
        """Rows that were read."""
        return len(self.snapshot)

    @property
    def snapshots_read(self) -> int:
        """Snapshots of which rows were read."""
        return self.snapshot.distinct

    @property
    def is_untyped(self) -> bool:
        """Whether its columns are text for Spark, since no one schema fits its files.

        Columns that headers name are matched by them.
        """
        is_csv = isinstance(self.origin, Layout) and self.origin.data_format == "csv"
        is_by_place = self.format_options.get("header") != "true"
        return is_csv and is_by_place and not self.has_one_schema

    def type_of(self, name: str) -> ColumnType:
        """The type of a column as Spark reads it."""
        return STRING if self.is_untyped else self.column(name).type

    def column(self, name: str) -> ColumnProfile:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def times(self) -> tuple[datetime, ...]:
        """Times of its snapshots; empty without dates."""
        if self.snapshot_column is not None:
            return self.snapshot_column.dates.times
        return self.origin.snapshots if isinstance(self.origin, Layout) else ()

    @property
    def unit(self) -> Unit:
        """Return the precision of these."""
        if self.snapshot_column is not None:
            return self.snapshot_column.dates.unit
        return self.origin.unit if isinstance(self.origin, Layout) else Unit.DAY


def column_profiles(
    rows: Rows, columns: Sequence[tuple[str, ColumnType, str]]
) -> tuple[ColumnProfile, ...]:
    """The profiles of columns, each by its name, its type, and its name in the table of the rows.

    That is empty for columns whose types are no part of a key, which the table does not have.
    """
    columns = [(name, *_whole(rows, kind, own)) for name, kind, own in columns]
    asked = [own for _, _, own in columns if own]
    questions = [
        f"count({own}), min({own}), max({own}), avg(length(CAST({own} AS VARCHAR))), "
        f"bool_and(regexp_full_match(CAST({own} AS VARCHAR), '{_CODE}'))"
        for own in asked
    ]
    facts = rows.scratch.all(f"SELECT {', '.join(questions)} FROM {rows.table}")[0] if asked else ()
    by_column = {own: facts[5 * place :][:5] for place, own in enumerate(asked)}
    return tuple(_profiled(rows, *each, by_column.get(each[2], ())) for each in columns)


def may_be_whole(name: str, kind: ColumnType) -> bool:
    """Whether a column of fractions is called as a key: many tools write whole numbers so."""
    return kind == DOUBLE and column_words(name).has_id


def _whole(rows: Rows, kind: ColumnType, own: str) -> tuple[ColumnType, str]:
    """The type of fractions that are all whole numbers, as a key beside NULL; others are no key."""
    if kind != DOUBLE or not own:
        return kind, own
    odd = f"count(*) FILTER ({own} <> trunc({own}) OR abs({own}) >= {_EXACT})"
    (counts,) = rows.scratch.all(f"SELECT {odd}, count({own}) FROM {rows.table}")
    if rows.asked is not None or counts[0] != 0 or counts[1] == 0:
        return kind, ""
    rows.scratch.run(f"ALTER TABLE {rows.table} ALTER {own} TYPE BIGINT")
    return ColumnType(kind.data_type, Family.WHOLE), own


_EXACT = 2**53
"""Least whole number of which a fraction may not hold all digits."""


def _profiled(
    rows: Rows, name: str, kind: ColumnType, own: str, facts: tuple[object, ...]
) -> ColumnProfile:
    values = rows.values((own,) if own else ())
    if not own:
        return ColumnProfile(
            name, kind, rows.count, 0, values, None, None, 0.0, False, False, False, False
        )
    given, low, high, length, is_code = facts
    nulls = rows.count - int(str(given))
    is_text = kind.family is Family.TEXT
    snapshot = rows.values((SNAPSHOT,))
    return ColumnProfile(
        name=name,
        type=kind,
        rows=rows.count,
        nulls=nulls,
        values=values,
        low=None if kind.family is not Family.WHOLE or low is None else int(str(low)),
        high=None if kind.family is not Family.WHOLE or high is None else int(str(high)),
        mean_length=float(str(length)) if is_text and length is not None else 0.0,
        is_code=is_text and is_code is True,
        is_guid=is_text and all(_GUID.fullmatch(str(each)) for each in (low, high)),
        is_unique=not nulls and is_unique(values, snapshot),
        is_unique_beside_null=0 < nulls <= _MOST_NULL * rows.count
        and combined([values, snapshot]).distinct == rows.count - nulls,
        dates=None if nulls == rows.count else _dates(kind, values),
    )


def _dates(kind: ColumnType, values: Values) -> ColumnDates | None:
    """The days of a column; of times the days, and one time that is no midnight if there is any."""
    if kind.data_type == DOUBLE.data_type:
        return None  # the text of a fraction is no date
    if kind.family is not Family.TIME:
        found = distinct_values(values, MOST_DAYS)
        return None if found is None else column_dates(kind, found)
    days = f"SELECT DISTINCT date_trunc('day', k0) AS k0 FROM {values.keys} LIMIT {MOST_DAYS + 1}"
    other = f"SELECT k0 FROM {values.keys} WHERE k0 <> date_trunc('day', k0) ORDER BY k0 LIMIT 1"
    found = values.rows.scratch.arrow(f"({days}) UNION ALL ({other})").column(0)
    return column_dates(kind, found)

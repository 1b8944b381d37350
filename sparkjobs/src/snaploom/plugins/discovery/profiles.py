"""Profiles of sources after a bounded look, those of databases included."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
    STRING,
    ColumnDates,
    ColumnType,
    Family,
    Unit,
    column_dates,
)
from snaploom.plugins.discovery.foundfiles import SKETCH_VALUES, LeftOut, refuse_secret
from snaploom.plugins.discovery.layout import Layout, TableFolder
from snaploom.plugins.discovery.names import common_prefix
from snaploom.sources.databases.declared import DeclaredKey
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


# Facts about sources after a bounded look: frozen, without any value of the data.

Hashes = NDArray[np.uint64]
ALL_HASHES = 2**64
_CODE = r"^[A-Z0-9][A-Z0-9._/-]*[0-9][A-Z0-9._/-]*$"
_NOTHING = np.uint64(0)
"""Hash of NULL."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """The hashes of a column's distinct values below a limit."""

    kept: Hashes
    """Ascending."""
    limit: int
    """Hashes from it on are left out; `ALL_HASHES` where none is."""
    distinct: int
    """Distinct values in all that was read."""


@dataclass(frozen=True)
class Inclusion:
    """Number of distinct values of one column that another one has."""

    share: float
    compared: int
    """Distinct values that were compared."""
    distinct: int
    """Distinct values of the column that refers."""


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """One column."""

    name: str
    type: ColumnType
    rows: int
    """Rows that were read of it."""
    nulls: int
    sketch: Sketch
    low: int | None
    """Least whole number; None for other types."""
    high: int | None
    mean_length: float
    """Characters of a text, on average; 0 for other types."""
    is_code: bool
    """Whether its texts are capitals and digits, as article numbers are, and not words."""
    is_unique: bool
    """Whether the values read of one snapshot are distinct and none is NULL."""
    sample: Hashes
    """Hash of each row of the sample."""
    dates: ColumnDates | None = None
    """Its days, where they are few enough to be snapshots."""

    @property
    def may_be_key(self) -> bool:
        """Whether its type can be compared for equality without surprises."""
        return self.type.family in (Family.WHOLE, Family.TEXT)

    @property
    def density(self) -> float:
        """Share of the whole numbers between least and greatest that occur; 0 for other types."""
        if self.low is None or self.high is None:
            return 0.0
        return self.sketch.distinct / (self.high - self.low + 1)


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
    rows: int
    """In the snapshots that were looked at; exact for Parquet and ORC."""
    rows_read: int
    snapshot: Hashes
    """Of each row of the sample, which snapshot it is from."""
    snapshots_read: int
    format_options: Mapping[str, str]
    has_one_schema: bool
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

    @property
    def prefix(self) -> str:
        """The word that most of its columns begin with, as `l` of `l_orderkey`."""
        return common_prefix(tuple(column.name for column in self.columns))

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


def inclusion(child: Sketch, parent: Sketch) -> Inclusion:
    """The share of a column's distinct values that another column has."""
    limit = min(child.limit, parent.limit)
    mine = child.kept if limit == child.limit else child.kept[child.kept < np.uint64(limit)]
    if len(mine) == 0:
        return Inclusion(0.0, 0, child.distinct)
    found = int(np.isin(mine, parent.kept, assume_unique=True).sum())
    return Inclusion(found / len(mine), len(mine), child.distinct)


def hashes_of(values: pa.Array, family: Family) -> Hashes:
    """A hash of each value; that of NULL is 0."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    encoded = values.dictionary_encode()
    distinct = _distinct_hashes(encoded.dictionary, family)
    indices = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    hashes: Hashes = np.append(distinct, _NOTHING)[indices.astype(np.int64)]
    return hashes


def _distinct_hashes(values: pa.Array, family: Family) -> Hashes:
    if pa.types.is_decimal(values.type):
        values = pc.cast(values, pa.string())
    if pa.types.is_integer(values.type):
        return _mixed(pc.cast(values, pa.int64(), safe=False).to_numpy(zero_copy_only=False))
    if family is Family.TIME and pa.types.is_timestamp(values.type):
        values = pc.cast(values, pa.timestamp("us", values.type.tz), safe=False)
        numbers = pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False)
        return _mixed(numbers) ^ np.uint64(0x5555555555555555)
    texts: list[str] = pc.cast(values, pa.string()).to_pylist()
    result = np.fromiter(map(_hash_of_text, texts), dtype=np.uint64, count=len(texts))
    whole = [index for index, text in enumerate(texts) if _is_whole(text)]
    result[whole] = _mixed(np.array([int(texts[index]) for index in whole], dtype=np.int64))
    return result


def _hash_of_text(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return (
        text.isascii()
        and digits.isdigit()
        and (digits[0] != "0" or text == "0")
        and (len(digits) <= 18 or (len(digits) == 19 and -(2**63) <= int(text) < 2**63))
    )


def _mixed(numbers: NDArray[np.int64]) -> Hashes:
    """The finaliser of SplitMix64, which spreads numbers over all 64 bits; never 0."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return np.where(x == 0, np.uint64(1), x)


def combined(columns: Sequence[Hashes]) -> Hashes:
    """One hash of each row of several columns; 0 where one of them is NULL."""
    with np.errstate(over="ignore"):
        result = np.full(len(columns[0]), 1469598103934665603, dtype=np.uint64)
        is_null = np.zeros(len(columns[0]), dtype=bool)
        for hashes in columns:
            result = (result ^ hashes) * np.uint64(1099511628211)
            result ^= result >> np.uint64(29)
            is_null |= hashes == _NOTHING
    return np.where(is_null, _NOTHING, np.where(result == 0, np.uint64(1), result))


def sketch_of(hashes: Hashes) -> Sketch:
    """The sketch of a column by the hashes of its rows; NULL does not count."""
    distinct = np.unique(hashes)
    if len(distinct) and distinct[0] == _NOTHING:
        distinct = distinct[1:]
    if len(distinct) <= SKETCH_VALUES:
        return Sketch(distinct, ALL_HASHES, len(distinct))
    return Sketch(distinct[:SKETCH_VALUES], int(distinct[SKETCH_VALUES]), len(distinct))


def is_unique(hashes: Hashes, snapshot: Hashes) -> bool:
    """Whether no hash stands twice in one snapshot, and none is that of NULL."""
    if len(hashes) == 0 or (hashes == _NOTHING).any():
        return False
    ordered = np.sort(combined([hashes, snapshot]))
    return not bool((ordered[1:] == ordered[:-1]).any())


def profile_column(
    name: str, kind: ColumnType, values: pa.Array, snapshot: Hashes, sample_rows: int
) -> ColumnProfile:
    """The profile of a column by the values that were read.

    The values are of all rows that were read, the first `sample_rows` of which are the sample;
    `snapshot` numbers the snapshot of each row.
    """
    if values.type == pa.string_view():
        values = pc.cast(values, pa.string())
    is_key = kind.family is not Family.OTHER
    hashes = hashes_of(values, kind.family) if is_key else np.zeros(len(values), dtype=np.uint64)
    low = high = None
    length = 0.0
    is_code = False
    if kind.family is Family.WHOLE and values.null_count < len(values):
        numbers = pc.cast(values, pa.int64(), safe=False)
        bounds = pc.min_max(numbers).as_py()
        low, high = bounds["min"], bounds["max"]
    elif kind.family is Family.TEXT and values.null_count < len(values):
        length = float(pc.mean(pc.utf8_length(values)).as_py())
        distinct = pc.unique(values.drop_null())
        is_code = bool(pc.all(pc.match_substring_regex(distinct, _CODE)).as_py())
    return ColumnProfile(
        name=name,
        type=kind,
        rows=len(values),
        nulls=values.null_count,
        sketch=sketch_of(hashes),
        low=low,
        high=high,
        mean_length=length,
        is_code=is_code,
        is_unique=is_key and is_unique(hashes, snapshot),
        sample=hashes[:sample_rows],
        dates=column_dates(kind, values),
    )

"""A scratch database of DuckDB: the rows that were read, and the questions about them.

It has no access to files but those of its own folder, loads no extension, and is gone with the
profiles that ask it. Rows beyond its memory lie in that folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import duckdb
import pyarrow as pa

from snaploom.types.merge import Key

_MEMORY, _SPILLED = "1GB", "32GB"
_FIRST_LOOKS = (5_000, 500_000)
"""Rows by which most sets of columns are known not to be unique."""
SNAPSHOT, FILE = "snapshot", "file"
"""Columns beside those of a source: the numbers of a row's snapshot and of its file."""


class OutOfTime(Exception):
    """A question took more seconds than it may."""


class Scratch:
    """A database with the rows of all sources."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="snaploom-init-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        self._numbers = count()
        self._duckdb = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": _MEMORY,
                "temp_directory": str(self.folder / "spilled"),
                "max_temp_directory_size": _SPILLED,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
            },
        )
        self._duckdb.execute("SET TimeZone = 'UTC'")
        self._duckdb.execute(f"SET allowed_directories = [{text(f'{self.folder}/')}]")
        self._duckdb.execute("SET enable_external_access = false")
        self._duckdb.execute("SET lock_configuration = true")

    def name(self) -> str:
        """A name that no table or file has."""
        return f"t{next(self._numbers)}"

    def run(self, sql: str) -> None:
        """Carry out a statement."""
        self._duckdb.execute(sql)

    def all(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of an answer."""
        return self._duckdb.execute(sql).fetchall()

    def number(self, sql: str) -> int:
        """The first value of an answer of one row, which is a whole number."""
        return int(str(self.all(sql)[0][0]))

    def arrow(self, sql: str) -> pa.Table:
        """An answer as Arrow has it."""
        return self._duckdb.sql(sql).to_arrow_table()

    def create(self, rows: pa.Table) -> str:
        """A table with some rows, and with the columns that they have."""
        table = self.name()
        self._with(rows, f"CREATE TABLE {table} AS FROM batch")
        return table

    def insert(self, table: str, rows: pa.Table) -> None:
        """Add rows with the same columns."""
        self._with(rows, f"INSERT INTO {table} FROM batch")

    def _with(self, rows: pa.Table, sql: str) -> None:
        self._duckdb.register("batch", rows)
        try:
            self._duckdb.execute(sql)
        finally:
            self._duckdb.unregister("batch")

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Interrupt what is asked inside after some seconds.

        Raises:
            OutOfTime: that happened.
        """
        timer = Timer(seconds, self._duckdb.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        except duckdb.InterruptException:
            raise OutOfTime from None
        finally:
            timer.cancel()


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


AskDatabase = Callable[[str], Sequence[Sequence[object]]]
"""Asks a database by SQL; no rows where it does not answer in time."""


@dataclass(frozen=True, eq=False)
class AskedTable:
    """A table of a database, which answers for all of its rows where only some were read."""

    ask: AskDatabase
    name: str
    """As it stands in a statement."""
    columns: Mapping[str, str]
    """Likewise, by the names of columns of the rows that were read."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows read of a source."""

    scratch: Scratch
    table: str
    count: int
    in_all: int
    """Rows of the source, as far as that is known."""
    snapshots: int = 1
    files: tuple[str, ...] = ()
    """URIs by the number of the file."""
    asked: AskedTable | None = None
    known: dict[tuple[str, ...], Values] = field(default_factory=dict)
    """Columns about which something was asked."""

    @property
    def are_all(self) -> bool:
        """Whether the source has no others."""
        return self.count >= self.in_all

    @property
    def basis(self) -> str:
        """The part of the source that figures are about, for people."""
        return "all rows" if self.are_all else f"a part, {self.count:,} rows"

    def values(self, columns: Iterable[str]) -> Values:
        """Some columns; that of the snapshot only where rows are of several."""
        named = [each for each in dict.fromkeys(columns) if each != SNAPSHOT or self.snapshots > 1]
        key = tuple(named or columns)
        return self.known.setdefault(key, Values(self, key))


@dataclass(frozen=True, eq=False)
class Values:
    """Some columns of the rows of a source, all of which answer the questions about them."""

    rows: Rows
    columns: tuple[str, ...]
    """As the table is asked for them."""

    def __len__(self) -> int:
        return self.rows.count

    @property
    def _listed(self) -> str:
        return ", ".join(self.columns)

    @cached_property
    def keys(self) -> str:
        """The table of its distinct values, or combinations without NULL, each with its rows."""
        table = self.rows.scratch.name()
        self.rows.scratch.run(f"CREATE TABLE {table} AS {_grouped(self.rows.table, self.columns)}")
        return table

    def of_database(self) -> tuple[AskDatabase, str] | None:
        """The function that asks its database, and the SQL of `keys` there; None without any."""
        asked = self.rows.asked
        if asked is None or not self.columns or SNAPSHOT in self.columns:
            return None
        return asked.ask, _grouped(asked.name, [asked.columns[name] for name in self.columns])

    @cached_property
    def _facts(self) -> tuple[bool, int, int, int, int]:
        """Return the figures of its values or combinations, and whether they are of all rows.

        The figures are: how many there are, the rows that have one, those that stand in several
        rows, and the sum of the squares of their rows.
        """
        if not self.columns:
            return True, 0, 0, 0, 0
        asked = "SELECT count(*), sum(n), sum(CASE WHEN n > 1 THEN 1 END), sum(n * n) FROM "
        other = self.of_database()
        answer: Sequence[Sequence[object]] = ()
        if other is not None and not self.rows.are_all:
            answer = other[0](f"{asked}({other[1]}) counted")
        # Of many sets of columns nothing else is asked: there is no table for them.
        keys = f"({_grouped(self.rows.table, self.columns)})" if self.columns[1:] else self.keys
        (row,) = answer or self.rows.scratch.all(asked + keys)
        distinct, rows, repeated, squares = (int(float(str(number or 0))) for number in row)
        return self.rows.are_all or bool(answer), distinct, rows, repeated, squares

    @property
    def is_answered(self) -> bool:
        """Whether figures are of all rows."""
        return self._facts[0]

    @property
    def distinct(self) -> int:
        """The number of values or combinations."""
        return self._facts[1]

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of its columns."""
        described = self.rows.scratch.all(f"DESCRIBE {self.keys}")
        return tuple(str(row[1]) for row in described[: len(self.columns)])

    def is_unique(self) -> bool:
        """Whether no two rows are equal in them, and none has NULL."""
        for rows in _FIRST_LOOKS:
            part = f"(SELECT {self._listed} FROM {self.rows.table} LIMIT {rows})"
            twice = f"SELECT 1 FROM {part} GROUP BY {self._listed} HAVING count(*) > 1 LIMIT 1"
            if rows < len(self) and self.rows.scratch.all(twice):
                return False
        are_all, keys, *_ = self._facts
        return 0 < keys == (self.rows.in_all if are_all else self.rows.count)

    def repeated(self) -> tuple[int, tuple[str, ...]]:
        """The number of values that stand in several rows, and the places of one of them."""
        same = " AND ".join(f"{column} = k{place}" for place, column in enumerate(self.columns))
        places = self.rows.scratch.all(
            f"WITH numbered AS (SELECT *, rowid AS r, rank() OVER (PARTITION BY {FILE} ORDER BY "
            f"rowid) AS place FROM {self.rows.table}), twice AS (SELECT *, min(r) OVER (PARTITION "
            f"BY {self._listed}) AS first FROM numbered JOIN {self.keys} ON {same} WHERE n > 1) "
            f"SELECT {FILE}, place FROM twice ORDER BY first, r LIMIT 2"
        )
        files = self.rows.files
        shown = (
            f"record {place:,}" + (f" of {files[int(str(file))]}" if files else "")
            for file, place in places
        )
        return self._facts[3], tuple(shown)

    def share_between(self, low: int, high: int) -> float:
        """The share of the whole numbers from one to another that are values of its column."""
        asked = f"SELECT count(*) FROM {self.keys} WHERE k0 BETWEEN {low} AND {high}"
        return self.rows.scratch.number(asked) / (high - low + 1)

    def equal_rows(self, other: Values) -> int:
        """The rows that have the same in other columns of their source."""
        same = (
            f"{a}::VARCHAR = {b}::VARCHAR" for a, b in zip(self.columns, other.columns, strict=True)
        )
        return self.rows.scratch.number(
            f"SELECT count(*) FROM {self.rows.table} WHERE {' AND '.join(same)}"
        )

    def rows_per_key(self) -> float:
        """Rows for each of its values or combinations, on average; those with NULL do not count."""
        return self._facts[2] / max(1, self._facts[1])

    def rows_beside(self) -> float:
        """Rows with the value or combination of one of its rows, on average."""
        return self._facts[4] / max(1, self._facts[2])


def _grouped(table: str, columns: Sequence[str]) -> str:
    named = ", ".join(f"{column} AS k{place}" for place, column in enumerate(columns))
    given = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    listed = ", ".join(columns)
    return f"SELECT {named}, count(*) AS n FROM {table} WHERE {given} GROUP BY {listed}"


def combined(columns: Sequence[Values]) -> Values:
    """Columns of one source together."""
    return columns[0].rows.values(name for each in columns for name in each.columns)


def is_unique(columns: Values, snapshot: Values) -> bool:
    """Whether no two rows of a snapshot are equal in some columns, and none has NULL."""
    return combined([columns, snapshot]).is_unique()


@dataclass(frozen=True)
class Inclusion:
    """Number of distinct values of one column that another one has."""

    share: float
    compared: int
    """Distinct values that were compared."""
    distinct: int
    """Distinct values of the column that refers."""
    basis: str = "all rows"
    """The rows that these are of, for people."""


def inclusion(child: Values, parent: Values) -> Inclusion:
    """The share of the distinct values of some columns that other ones have.

    Values of different types are equal if their texts are, as 7 and `7` are.
    """
    if child.distinct == 0 or parent.distinct == 0:
        return Inclusion(0.0, child.distinct, child.distinct)
    basis = "all rows"
    found = _of_one_database(child, parent)
    if not found:
        basis = " in ".join(dict.fromkeys((child.rows.basis, parent.rows.basis)))
        same = " AND ".join(
            f"mine.k{n} = theirs.k{n}" if one == other
            else f"CAST(mine.k{n} AS VARCHAR) = CAST(theirs.k{n} AS VARCHAR)"
            for n, (one, other) in enumerate(zip(child.types, parent.types, strict=True))
        )  # fmt: skip
        found = child.rows.scratch.all(
            f"SELECT count(*), (SELECT count(*) FROM {child.keys}) FROM {child.keys} mine "
            f"SEMI JOIN {parent.keys} theirs ON {same}"
        )
    included, *others = (int(str(number)) for number in found[0])
    mine = others[0] if others else child.distinct
    return Inclusion(included / mine, mine, child.distinct, basis)


def _of_one_database(child: Values, parent: Values) -> Sequence[Sequence[object]]:
    """The answer of the database of both about values in common; nothing without one."""
    mine, theirs = child.of_database(), parent.of_database()
    is_known = child.rows.are_all and parent.rows.are_all
    if is_known or mine is None or theirs is None or mine[0] is not theirs[0]:
        return ()
    if not child.is_answered or not parent.is_answered:
        return ()
    same = " AND ".join(f"mine.k{n} = theirs.k{n}" for n in range(len(child.columns)))
    return mine[0](
        f"SELECT count(*) FROM ({mine[1]}) mine WHERE EXISTS "
        f"(SELECT 1 FROM ({theirs[1]}) theirs WHERE {same})"
    )


def distinct_values(column: Values, most: int) -> pa.Array | None:
    """The distinct values of a column, ascending; None for more than `most`."""
    if column.distinct > most:
        return None
    found = column.rows.scratch.arrow(f"SELECT k0 FROM {column.keys} ORDER BY k0")
    return found.column(0).combine_chunks()


def distinct_keys(values: Values, most: int) -> list[Key] | None:
    """The distinct values or combinations of some columns, as texts; None for more than `most`."""
    if not 0 < values.distinct <= most:
        return None if values.distinct else []  # of no column there is no table
    listed = ", ".join(f"k{place}::VARCHAR" for place in range(len(values.columns)))
    found = values.rows.scratch.all(f"SELECT {listed} FROM {values.keys}")
    texts = (tuple(map(str, row)) for row in found)
    return [row if len(row) > 1 else row[0] for row in texts]


# Rows as of a time: the newest one of a key at or before it.


def rows_as_of(mine: Values, theirs: Values, end: str) -> int:
    """The rows of one source that find a row of another one, of their key and as of their time.

    The last column of each is its time. `end` is the column of the other source with the time
    from which a row holds no longer; empty for none.
    """
    same = " AND ".join(f"mine.k{n} = theirs.k{n}" for n in range(len(mine.columns) - 1))
    return mine.rows.scratch.number(
        f"SELECT count(*) FROM ({_timed(mine, '')}) mine ASOF JOIN ({_timed(theirs, end)}) theirs "
        f"ON {same} AND mine.t >= theirs.t WHERE theirs.u IS NULL OR theirs.u > mine.t"
    )


def interval_ends(values: Values, end: str) -> tuple[int, int, int]:
    """The rows that overlap the next one of their key, that end as it begins, and a day before.

    The last column is the time from which a row holds. One that ends as it begins itself is of
    the last kind: its end is its last day.
    """
    keys = ", ".join(f"k{n}" for n in range(len(values.columns) - 1))
    once = f"SELECT count(*) FROM {values.rows.table} WHERE {end}::TIMESTAMP = "
    once += f"{values.columns[-1]}::TIMESTAMP"
    (found,) = values.rows.scratch.all(
        f"SELECT count(*) FILTER (next IS NOT NULL AND (u IS NULL OR u > next)), "
        f"count(*) FILTER (u = next), count(*) FILTER (u + INTERVAL 1 DAY = next) + ({once}) FROM "
        f"(SELECT *, lead(t) OVER (PARTITION BY {keys} ORDER BY t) AS next FROM "
        f"({_timed(values, end)}))"
    )
    overlaps, follow, last_days = (int(str(number)) for number in found)
    return overlaps, follow, last_days


def _timed(values: Values, end: str) -> str:
    """SQL for rows with a key `k0`.., a time `t`, and an end `u`; without those that never hold."""
    *keys, time = values.columns
    named = ", ".join(f"{column} AS k{place}" for place, column in enumerate(keys))
    given = " AND ".join(f"{column} IS NOT NULL" for column in values.columns)
    until = f"CAST({end or 'NULL'} AS TIMESTAMP)"
    start = f"CAST({time} AS TIMESTAMP)"
    return (
        f"SELECT {named}, {start} AS t, {until} AS u FROM {values.rows.table} "
        f"WHERE {given} AND ({until} IS NULL OR {until} > {start})"
    )

"""A scratch database of DuckDB: the rows that were read, and the questions about them.

It has no access to files but those of its own folder, loads no extension, and is gone with the
profiles that ask it. Rows beyond its memory lie in that folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import duckdb
import pyarrow as pa

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


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows read of a source."""

    scratch: Scratch
    table: str
    count: int
    in_all: int
    """Rows of the source, as far as that is known."""
    files: tuple[str, ...] = ()
    """URIs by the number of the file."""

    @property
    def basis(self) -> str:
        """The part of the source that figures are about, for people."""
        if self.count >= self.in_all:
            return "all rows"
        return f"a part, {self.count:,} rows"


@dataclass(frozen=True, eq=False)
class Sketch:
    """Some columns of the rows read of a source, all of which answer the questions about them."""

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
        named = ", ".join(f"{column} AS k{place}" for place, column in enumerate(self.columns))
        given = " AND ".join(f"{column} IS NOT NULL" for column in self.columns)
        self.rows.scratch.run(
            f"CREATE TABLE {table} AS SELECT {named}, count(*) AS n FROM {self.rows.table} "
            f"WHERE {given} GROUP BY {self._listed}"
        )
        return table

    @cached_property
    def _facts(self) -> tuple[int, int, int, int]:
        """Keys, rows that have one, keys of several rows, and the sum of squares of rows a key."""
        if not self.columns:
            return 0, 0, 0, 0
        asked = "count(*), sum(n), count(*) FILTER (n > 1), sum(n * n)"
        (row,) = self.rows.scratch.all(f"SELECT {asked} FROM {self.keys}")
        keys, rows, repeated, squares = (int(str(number or 0)) for number in row)
        return keys, rows, repeated, squares

    @property
    def distinct(self) -> int:
        """How many values or combinations there are."""
        return self._facts[0]

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
        return 0 < len(self) == self.distinct

    def repeated(self) -> tuple[int, tuple[str, ...]]:
        """The number of values that stand in several rows, and the places of the first of them."""
        same = " AND ".join(f"{column} = k{place}" for place, column in enumerate(self.columns))
        places = self.rows.scratch.all(
            f"WITH numbered AS (SELECT *, rowid AS r, rank() OVER (PARTITION BY {FILE} ORDER BY "
            f"rowid) AS place FROM {self.rows.table}), twice AS (SELECT *, min(r) OVER (PARTITION "
            f"BY {self._listed}) AS first FROM numbered JOIN {self.keys} ON {same} WHERE n > 1) "
            f"SELECT {FILE}, place FROM twice ORDER BY first, r LIMIT 2"
        )
        files = self.rows.files
        shown = [
            f"record {place:,}" + (f" of {files[int(str(file))]}" if files else "")
            for file, place in places
        ]
        repeated = self._facts[2]
        return repeated, tuple(shown)

    def rows_per_key(self) -> float:
        """Rows for each of its values or combinations, on average; those with NULL do not count."""
        keys, rows, _, _ = self._facts
        return rows / max(1, keys)

    def rows_beside(self) -> float:
        """Rows with the value or combination of one of its rows, on average."""
        _, rows, _, squares = self._facts
        return squares / max(1, rows)


def combined(columns: Sequence[Sketch]) -> Sketch:
    """Columns of one source together."""
    names = dict.fromkeys(name for each in columns for name in each.columns)
    return Sketch(columns[0].rows, tuple(names))


def sketch_of(columns: Sketch) -> Sketch:
    """The columns themselves, of which all distinct values are known."""
    return columns


def is_unique(columns: Sketch, snapshot: Sketch) -> bool:
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


def inclusion(child: Sketch, parent: Sketch) -> Inclusion:
    """The share of the distinct values of some columns that other ones have.

    Values of different types are equal if their texts are, as 7 and `7` are.
    """
    if child.distinct == 0:
        return Inclusion(0.0, 0, 0)
    same = " AND ".join(
        f"mine.k{n} = theirs.k{n}" if one == other
        else f"CAST(mine.k{n} AS VARCHAR) = CAST(theirs.k{n} AS VARCHAR)"
        for n, (one, other) in enumerate(zip(child.types, parent.types, strict=True))
    )  # fmt: skip
    found = child.rows.scratch.number(
        f"SELECT count(*) FROM {child.keys} mine SEMI JOIN {parent.keys} theirs ON {same}"
    )
    basis = dict.fromkeys(each.rows.basis for each in (child, parent))
    return Inclusion(found / child.distinct, child.distinct, child.distinct, " in ".join(basis))


def distinct_values(column: Sketch, most: int) -> pa.Array | None:
    """The distinct values of a column, ascending; None for more than `most`."""
    if column.distinct > most:
        return None
    found = column.rows.scratch.arrow(f"SELECT k0 FROM {column.keys} ORDER BY k0")
    return found.column(0).combine_chunks()

"""`format: sqlite`: a table of a file of SQLite, by the database itself.

A file may come from anybody: it is opened read-only, what it declares cannot call functions, views
and virtual tables are not read, and nothing is larger than the file can hold.
"""

import os
import re
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import pyarrow as pa

from snaploom.files.measured import FileTable, MeasuredTable, Row, TableKey, TableMissing, Value
from snaploom.files.typedfiles import LocalFile

_MAGIC = b"SQLite format 3\0"
_HEAD = 100
_WAL = 2
"""Mark of a file whose changes are kept beside it at first."""
_LARGEST_VALUE = 64 << 20
"""Bytes of a value or a row."""
_SMALLEST_ROW = 4
"""Bytes that a row takes at least: its place in a page, its length and its number."""
_STEPS, _SECONDS = 100_000, 60
"""Steps of SQLite between two looks at the clock, and seconds that a row or an answer takes."""
_COPIED = 1 << 20
_TABLES = (
    "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
)
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_DECLARED = (
    (re.compile("BOOL", re.IGNORECASE), pa.bool_()),
    (re.compile("DATETIME|TIMESTAMP", re.IGNORECASE), pa.timestamp("us")),
    (re.compile("DATE", re.IGNORECASE), pa.date32()),
)
"""Declared types that SQLite has no values of: numbers and texts stand for them."""


def open_sqlite(
    file: pa.NativeFile, *, table: str = "", schema: pa.Schema | None = None, most: int = 0
) -> pa.RecordBatchReader:
    """Open a table, which must be named where there are several.

    Raises:
        ValueError: it is no such file, was cut short, or has no such table.
    """
    database = _Database(file)
    with closing(database.connect()) as opened:
        names = [name for name, why_not in _listed(opened).items() if not why_not]
        wanted = [name for name in names if name.casefold() == table.casefold() or not table]
        if len(wanted) != 1:
            raise TableMissing("table", table, names)
        columns = _columns(opened, wanted[0])
    return MeasuredTable(
        tuple(columns),
        lambda: database.rows(wanted[0], tuple(columns)),
        lambda number, column: f"row {number:,} of {wanted[0]}.{column}",
        {name: hint for name, kind in columns.items() if (hint := _hint(kind)) is not None},
    ).opened(schema, most)


def tables_of(file: pa.NativeFile) -> tuple[FileTable, ...]:
    """The tables of a file, with the keys that it declares, and its views.

    Raises:
        ValueError: it is no such file, or was cut short.
    """
    with closing(_Database(file).connect()) as opened:
        return tuple(_tables(opened))


def _listed(opened: sqlite3.Connection) -> dict[str, str]:
    """The names of tables and views, each with the reason why it is not read, or without."""
    found = [(str(name), kind, str(sql)) for name, kind, sql in _all(opened, _TABLES)]
    virtual = tuple(f"{name}_" for name, _, sql in found if _VIRTUAL.match(sql))
    return {
        name: "a view, whose query is not run: write its rows into a table" * (kind == "view")
        or "of a virtual table, which an extension reads"
        * bool(_VIRTUAL.match(sql) or name.startswith(virtual))
        for name, kind, sql in found
    }


def _tables(opened: sqlite3.Connection) -> Iterator[FileTable]:
    listed = _listed(opened)
    keys = {name: _primary_key(opened, name) for name, why_not in listed.items() if not why_not}
    for name, why_not in listed.items():
        if why_not:
            yield FileTable(name, {}, why_not=why_not)
            continue
        ((rows,),) = _all(opened, f"SELECT count(*) FROM {_quoted(name)}")
        foreign = tuple(_foreign_keys(opened, name, keys))
        yield FileTable(name, {"table": name}, int(str(rows)), keys[name], foreign)


def _primary_key(opened: sqlite3.Connection, table: str) -> tuple[str, ...]:
    sql = "SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk"
    return tuple(str(name) for (name,) in _all(opened, sql, table))


def _foreign_keys(
    opened: sqlite3.Connection, table: str, keys: Mapping[str, tuple[str, ...]]
) -> Iterator[TableKey]:
    by_name = {name.casefold(): name for name in keys}
    sql = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq'
    pairs: dict[object, list[tuple[str, str, str | None]]] = {}
    for number, parent, own, other in _all(opened, sql, table):
        to = None if other is None else str(other)
        pairs.setdefault(number, []).append((str(parent), str(own), to))
    for found in pairs.values():
        parent = by_name.get(found[0][0].casefold())
        theirs = tuple(to for _, _, to in found if to is not None)
        if parent is not None:
            own = tuple(column for _, column, _ in found)
            named = f"{table}({', '.join(own)})"
            yield TableKey(named, own, parent, theirs or keys[parent])


def _columns(opened: sqlite3.Connection, table: str) -> dict[str, str]:
    sql = "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid"
    return {str(name): str(kind) for name, kind in _all(opened, sql, table)}


def _hint(declared: str) -> pa.DataType | None:
    return next((kind for word, kind in _DECLARED if word.search(declared)), None)


def _all(opened: sqlite3.Connection, sql: str, *values: str) -> list[tuple[object, ...]]:
    try:
        _Clock(opened)
        return opened.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        raise _fault(error) from None


class _Clock:
    """Interrupts an answer that takes too long."""

    def __init__(self, opened: sqlite3.Connection) -> None:
        self.restart()
        opened.set_progress_handler(lambda: monotonic() > self._end, _STEPS)

    def restart(self) -> None:
        """Begin to wait for the next row."""
        self._end = monotonic() + _SECONDS


def _fault(error: sqlite3.Error) -> ValueError:
    text = str(error)
    if text == "interrupted":
        text = f"an answer takes more than {_SECONDS} seconds"
    return ValueError(f"SQLite refuses it: {text}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Database:
    """A file of SQLite: a local one where it is, of others a copy, which goes with this."""

    def __init__(self, file: pa.NativeFile) -> None:
        head = file.read(_HEAD)
        if not head.startswith(_MAGIC) or len(head) < _HEAD:
            raise ValueError("it does not begin as a file of SQLite, or is encrypted")
        self._size = file.size()
        page = int.from_bytes(head[16:18], "big")
        pages = int.from_bytes(head[28:32], "big")
        is_counted = head[24:28] == head[92:96]  # else by an old version, which counts no pages
        if is_counted and pages * (65_536 if page == 1 else page) > self._size:
            raise ValueError(f"it has {self._size:,} bytes of {pages * page:,}: it was cut short")
        self._is_wal = _WAL in head[18:20]
        if isinstance(file, LocalFile):
            self._path = file.path
            self._refuse_changes()
        else:
            handle, self._path = tempfile.mkstemp(prefix="snaploom-", suffix=".sqlite")
            weakref.finalize(self, os.unlink, self._path)
            file.seek(0)
            with open(handle, "wb") as copy:
                while part := file.read(_COPIED):
                    copy.write(part)

    def _refuse_changes(self) -> None:
        """Refuse a file of which some rows are elsewhere, or half written."""
        for ending in ("-wal", "-journal"):
            beside = Path(f"{self._path}{ending}")
            if beside.is_file() and beside.stat().st_size:
                raise ValueError(
                    f"it has changes in {beside.name} that are not in the file yet: close the "
                    "program that writes it, or copy it by `sqlite3 FILE '.backup COPY'`"
                )

    def connect(self) -> sqlite3.Connection:
        """Open it."""
        how = "mode=ro&immutable=1" if self._is_wal else "mode=ro"  # else files arise beside it
        try:
            opened = sqlite3.connect(
                f"file:{quote(self._path)}?{how}", uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise _fault(error) from None
        opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            opened.execute(f"PRAGMA {pragma}")
        return opened

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        """All rows of a table, and no more than the file has room for."""
        listed = ", ".join(map(_quoted, columns))
        with closing(self.connect()) as opened:
            try:
                clock, most = _Clock(opened), self._size // _SMALLEST_ROW
                cursor = opened.execute(f"SELECT {listed} FROM {_quoted(table)}")
                values: tuple[Value, ...]
                for number, values in enumerate(cursor, start=1):
                    if number > most:
                        raise ValueError(f"{table} has more rows than the file has room for")
                    yield number, values
                    clock.restart()
            except sqlite3.Error as error:
                raise _fault(error) from None

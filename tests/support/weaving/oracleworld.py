"""Small worlds of sources, relationships and an output, as plain data that tests make and change.

Times are days of January 2024, at midnight UTC. What the declarations of a world contain is in
`oracledeclarations`, what comes of it in `oracle`, and random worlds in `oraclegenerated`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]

SPARK_NAMES = {"string": "string", "integer": "int", "long": "bigint", "double": "double"}
"""Types of columns, as declarations and as Spark call them."""

DAY_COLUMN = "day"
"""Column that every source takes from its paths: the time of the snapshot, such as 2024-01-02."""

EXPRESSIONS = (
    "upper(cast(value AS string))",
    "try_cast(value AS bigint) * 10",
    "length(cast(value AS string))",
    "concat('0', cast(value AS string))",
    "nullif(cast(value AS string), '1')",
)
"""What expressions of transformers are: each takes a value of any type."""

QUERIES: Mapping[str, Sequence[str]] = {
    "string": ("trim({0})", "upper({0})"),
    "integer": ("{0} % 2",),
    "long": ("{0} % 2",),
    "double": (),
}
"""Queries of key components over one field, by its type."""

PAIR = "concat(cast({0} AS string), '-', cast({1} AS string))"
"""Query of a key component over two fields of any type."""


@dataclass(frozen=True)
class Column:
    """A column of a snapshot."""

    name: str
    type: str
    is_marked: bool = False
    """Whether its metadata contains `role: key`."""


@dataclass(frozen=True)
class Table:
    """One snapshot of a source."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Selector:
    """Which columns a change is about."""

    include: str | None = None
    exclude: str | None = None
    is_marked: bool = False
    """Whether only columns with `role: key` are meant."""


@dataclass(frozen=True)
class Change:
    """One entry of a FieldTransformer."""

    kind: str
    """`to`, `pattern`, `cast`, `expression` or `drop`."""
    value: Any
    """New name, (pattern, replacement), type, SQL, or None."""
    selectors: tuple[Selector, ...]
    replaces: bool = True
    first: int | None = None
    end: int | None = None
    """Days of the snapshotRange, half-open."""


@dataclass(frozen=True)
class Source:
    """A source, by day of its snapshots."""

    snapshots: Mapping[int, Table]
    changes: tuple[Change, ...] = ()
    keeps_day: bool = False
    """Whether `dropField` is false."""


@dataclass(frozen=True)
class Component:
    """One component of a key as one source writes it."""

    fields: tuple[tuple[str, str], ...]
    """Names and declared types."""
    query: str | None = None
    """With `{0}` and `{1}` for the fields."""


@dataclass(frozen=True)
class Relationship:
    """A key that sources share."""

    name: str
    keys: Mapping[str, tuple[Component, ...]]
    casts: tuple[str, ...]
    """`castDataType` of each component."""
    anti_priority: int = 1
    exclusions: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Child:
    """A source that the output joins."""

    source: str
    field_name: str
    group_by: tuple[str, ...] = ()
    path_mode: str = "ERROR"
    join_mode: str = "ERROR"
    group_mode: str = "ERROR"
    snapshot_mode: str = "ERROR"
    preference: str = "NEWEST"
    before: int = 0
    after: int = 0
    """Days of the window around the root's snapshot."""


@dataclass(frozen=True)
class World:
    """Everything that a few runs of one output see."""

    sources: Mapping[str, Source]
    relationships: tuple[Relationship, ...]
    root: str
    children: tuple[Child, ...]
    length: int = 1
    """Days of an interval; the first begins at day 1."""
    preference: str = "NEWEST"
    catchup: str = "OLDEST_FIRST"
    incompatible: str = "FAIL"
    runs: tuple[int, ...] = (20,)
    """Days at noon of which a run is made."""


@dataclass(frozen=True)
class Snapshot:
    """What is published of one day."""

    schema: str
    """As Spark's `simpleString`."""
    rows: list[dict[str, Any]]
    excluded: Mapping[str, str]
    """Reasons by field name, of sources that are in the tree and not in the snapshot."""


@dataclass(frozen=True)
class Outcome:
    """What a run has done."""

    is_refused: bool = False
    """Whether the declarations have no unique tree that reaches every source."""
    published: Mapping[int, Snapshot] = field(default_factory=dict)
    skipped: Mapping[int, str] = field(default_factory=dict)
    """Reasons by day."""
    failed: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Reasons by day, of which one is reported."""

"""Folding: a join tree and one frame a node become one nested frame (rules W13, W23)."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_, or_
from typing import Protocol, TypeVar
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructType

from snaploom.engine.keys import (
    JoinKey,
    KeyPart,
    check_keys,
    collect_groups,
    join_keys,
    refuse_broken_keys,
)
from snaploom.engine.windows import TimedJoin, WindowsJoin, timed_join
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.datarelationship import DataRelationship
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.types.schemas import quote

# The counts taken while a tree is folded, and the two ways to take them.


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the fold where rows are counted."""

    number: int
    is_out: bool
    """After the node's last join, rather than before its first."""


ROWS = "rows"
Counts = Mapping[str, int]
"""`rows`, and for some numbers of nodes `null_<n>` (rows whose key of that join has a NULL) and
`matched_<n>` (rows that found a match in that join); of as-of joins and windows also
`timeless_<n>` (rows with a key and no time), of as-of joins `beyond_<n>` (beyond the tolerance) and
`tied_<n>` (several rows hold). Where several snapshots are woven together, `rows` counts all of
them, and the others are counted of each (`of_snapshot`)."""


def of_snapshot(name: str, number: int) -> str:
    """Name of a count of one of several snapshots, by its number from 0."""
    return f"{name}@{number}"


def counts_of_snapshot(counts: Counts, number: int) -> Counts:
    """The counts of one of several snapshots, named as if it were woven by itself."""
    ending = of_snapshot("", number)
    return {
        name.removesuffix(ending): count for name, count in counts.items() if name.endswith(ending)
    }


class Probe(Protocol):
    """Sees the frames of a fold."""

    def at(self, point: Point, frame: DataFrame, counters: Sequence[Column]) -> DataFrame:
        """Register a frame and the counts to take in it; return the frame to continue with."""


@dataclass
class Observing:
    """Counts in the job that runs the fold anyway."""

    left_out: frozenset[Point] = frozenset()
    observations: dict[Point, Observation] = field(default_factory=dict)
    passed: list[Point] = field(default_factory=list)
    """Those of the points left out that the fold has."""

    def at(self, point: Point, frame: DataFrame, counters: Sequence[Column]) -> DataFrame:
        if point in self.left_out:
            self.passed.append(point)
            return frame
        observation = Observation()
        self.observations[point] = observation
        return frame.observe(observation, *counters)

    def read(self, patience: float) -> dict[Point, Counts]:
        """The observed counts, once the job has ended.

        `Observation.get` waits for ever when the observed part of the plan was optimised away
        (SPARK-54620), so only completed ones are read; the others are absent from the result.
        Spark's listeners report after the job's end; `patience` is the seconds to wait for them.
        """
        deadline = time.monotonic() + patience
        waiting = dict(self.observations)
        counts: dict[Point, Counts] = {}
        while waiting:
            done = [point for point, one in waiting.items() if _is_completed(one)]
            for point in done:
                observation = waiting.pop(point)
                handle = observation._jo
                if handle is not None and handle.getRow().schema() is not None:
                    counts[point] = observation.get
            if time.monotonic() >= deadline:
                break
            if waiting and not done:
                time.sleep(0.005)  # short against a job, long against a call into the JVM
        return counts


def _is_completed(observation: Observation) -> bool:
    handle = observation._jo  # the public API can only wait
    return handle is not None and bool(handle.future().isCompleted())


@dataclass
class Recording:
    """Counts by queries of their own, each when asked."""

    frames: dict[Point, tuple[DataFrame, tuple[Column, ...]]] = field(default_factory=dict)

    def at(self, point: Point, frame: DataFrame, counters: Sequence[Column]) -> DataFrame:
        self.frames[point] = (frame, tuple(counters))
        return frame

    def frame(self, point: Point) -> DataFrame:
        return self.frames[point][0]

    def count(self, point: Point) -> Counts:
        """Exact counts at a point: one Spark job."""
        frame, counters = self.frames[point]
        row = frame.agg(*counters).first()
        assert row is not None  # an aggregation without keys has one row
        return {name: int(value) for name, value in row.asDict().items()}


def rows_counter() -> Column:
    """Counts the rows."""
    return sf.count(sf.lit(1)).alias(ROWS)


# The order in which the children of a node are joined with it.

Child = TypeVar("Child")

_TEXT, _OTHER = 20, 8
"""Bytes of a value, as Spark's own estimates have them (`DataType.defaultSize`): of strings and
binaries, and of numbers and times."""


def in_join_order(
    children: Sequence[Child],
    key: Callable[[Child], Hashable],
    width: Callable[[Child], int],
    is_broadcast: Callable[[Child], bool],
) -> list[Child]:
    """The children in the order of their joins; the given order where nothing else decides.

    The children are of one node; `key` gives the columns of the left side by which a child is
    joined, and `width` the bytes that it adds to a row. `is_broadcast` is asked only where the
    order matters.
    """
    if len({key(child) for child in children}) < 2:
        return list(children)
    shuffled: dict[Hashable, list[Child]] = {}
    broadcast: list[Child] = []
    for child in children:
        group = broadcast if is_broadcast(child) else shuffled.setdefault(key(child), [])
        group.append(child)
    groups = sorted(shuffled.values(), key=lambda group: sum(map(width, group)))
    return [*(child for group in groups for child in group), *broadcast]


def bytes_of_row(fields: Iterable[spark_types.StructField]) -> int:
    """Bytes of a row with these fields, as a schema lets one estimate."""
    return sum(_bytes_of(field.dataType) for field in fields)


def _bytes_of(data_type: spark_types.DataType) -> int:
    match data_type:
        case spark_types.StructType():
            return bytes_of_row(data_type.fields)
        case spark_types.ArrayType():
            return _bytes_of(data_type.elementType)
        case spark_types.MapType():
            return _bytes_of(data_type.keyType) + _bytes_of(data_type.valueType)
        case spark_types.StringType() | spark_types.BinaryType():
            return _TEXT
        case _:
            return _OTHER


def is_broadcast(frame: DataFrame) -> bool:
    """Whether Spark's estimate of a frame is within its threshold for broadcasts."""
    conf = frame.sparkSession._jsparkSession.sessionState().conf()
    estimate = frame._jdf.queryExecution().analyzed().stats().sizeInBytes()
    return int(estimate) <= int(conf.autoBroadcastJoinThreshold())


# Folding: a join tree and one frame a node become one nested frame (rules W13, W23).

JoinListener = Callable[[int, int, JoinNode], None]
"""Called for every join as it enters the plan: its number from 1, how many there are, its child."""

NUMBER = "_snapshot"
"""Column with the number of a row's snapshot, where several are woven together; names of fields
do not begin with `_`."""
SPELLINGS = "_written"
"""Column with the texts of a key as they stand in the data, where they are looked at."""
DATA = "data"
"""Field that holds a source's own columns; they never clash with children (rule W23)."""


@dataclass(frozen=True)
class Weave:
    """Inputs of one snapshot, or of several that differ in the rows of the root only."""

    tree: JoinTree
    frames: Mapping[str, DataFrame]
    """The included nodes' rows, by field name."""
    relationships: Mapping[str, DataRelationship]
    snapshots: int = 1
    """Number of snapshots in the rows of the root; of several, each row has its number, from 0, in
    a column `NUMBER` beside its own columns."""
    nodes: tuple[JoinNode, ...] = field(init=False)
    """The included nodes, in breadth-first order."""
    keys: Mapping[int, JoinKey] = field(init=False)
    """The key of every join, by the number of the child."""
    timed: Mapping[int, TimedJoin] = field(init=False)
    """The as-of joins and windows, by the number of the child."""

    def __post_init__(self) -> None:
        """Leave out nodes without a frame, and their descendants."""
        missing = (n.number for n in self.tree.nodes if n.field_name not in self.frames)
        left_out = self.tree.subtrees(missing)
        included = tuple(node for node in self.tree.nodes if node.number not in left_out)
        schemas = {node.field_name: self.schema(node.field_name) for node in included}
        object.__setattr__(self, "nodes", included)
        object.__setattr__(self, "keys", join_keys(self.tree, schemas, self.relationships))
        timed = {
            n.number: timed_join(n.number, n.timed, schemas[n.parent], schemas[n.field_name])
            for n in included
            if n.timed is not None
        }
        object.__setattr__(self, "timed", timed)

    def schema(self, field_name: str) -> StructType:
        schema = self.frames[field_name].schema
        if self.snapshots == 1 or field_name != self.tree.nodes[0].field_name:
            return schema
        return StructType([field for field in schema.fields if field.name != NUMBER])

    @cached_property
    def _included(self) -> frozenset[int]:
        return frozenset(node.number for node in self.nodes)

    @property
    def root(self) -> JoinNode:
        return self.nodes[0]

    @property
    def joins(self) -> tuple[JoinNode, ...]:
        """The joined nodes, in breadth-first order."""
        return self.nodes[1:]

    def children(self, number: int) -> tuple[JoinNode, ...]:
        """The included children of a node, ordered by field name."""
        children = self.tree.children(number)
        return tuple(node for node in children if node.number in self._included)

    def nested(self) -> Mapping[int, Column]:
        """The fields of sources that hang on others than the root, in no array, by number."""
        places: dict[int, Column] = {}
        for node in self.joins:
            above = places.get(node.parent_number)
            if node.parent_number == 0:
                place = sf.col(node.field_name)
            elif above is None or self.tree.by_number[node.parent_number].group_by:
                continue
            else:
                place = above.getField(node.field_name)
            places[node.number] = place
        return {n: at for n, at in places.items() if self.tree.by_number[n].parent_number}

    def subtrees(self, tops: Iterable[int]) -> frozenset[int]:
        """Numbers of some nodes and of everything included that hangs on them."""
        return self.tree.subtrees(tops) & self._included


def fold(
    weave: Weave,
    probe: Probe,
    on_join: JoinListener | None = None,
    shared: Shared | None = None,
) -> DataFrame:
    """Weave the nested frame: the root's `data`, then its children sorted by field name.

    Nothing runs yet. Every row of the root is in the result exactly once, provided that the counts
    which `probe` sees prove it (`snaploom.engine.rowcounts`).

    Raises:
        SourceSchemaInvalid: Spark refuses a key expression, or a source's columns clash.
    """
    shared = shared or NothingShared()
    found = ((node.number, shared.recall(node.number)) for node in weave.joins)
    folded = {number: frame for number, frame in found if frame is not None}
    below = weave.subtrees(folded) - folded.keys()
    joins = len(weave.joins) - len(below)
    sides: dict[int, Side] = {}
    joined = 0
    for node in reversed(weave.nodes):
        if node.number in below:
            continue
        side = sides[node.number] = Side(weave, node)
        if node.number in folded:
            continue
        frame = side.base()
        if side.children:
            frame = probe.at(Point(node.number, is_out=False), frame, side.in_counters())
        for child in in_join_order(
            side.children,
            key=lambda child: tuple(side.left_keys(child)),
            width=side.width,
            is_broadcast=lambda child: (
                child.number not in weave.timed and is_broadcast(folded[child.number])
            ),
        ):
            joined += 1
            if on_join is not None:
                on_join(joined, joins, child)
            right = folded.pop(child.number)
            frame = side.joined(frame, child, right, sides[child.number])
        frame = side.packed(frame)
        frame = probe.at(Point(node.number, is_out=True), frame, side.out_counters())
        frame = frame.drop(*side.outcomes)
        folded[node.number] = shared.keep(node.number, side.grouped(frame))
    return folded[0]


class Shared(Protocol):
    """Subtrees that other snapshots have as well (`snaploom.engine.subtrees`)."""

    def recall(self, number: int) -> DataFrame | None:
        """The folded subtree of a node, where another snapshot has left it."""

    def keep(self, number: int, frame: DataFrame) -> DataFrame:
        """Take note of a folded subtree; return the frame to go on with."""


class NothingShared:
    """A snapshot that is woven for itself."""

    def recall(self, number: int) -> DataFrame | None:
        return None

    def keep(self, number: int, frame: DataFrame) -> DataFrame:
        return frame


class Side:
    """One node while it is folded: the names of its columns and how they are made."""

    def __init__(self, weave: Weave, node: JoinNode) -> None:
        self.node = node
        self.children = weave.children(node.number)
        self.source = weave.frames[node.field_name]
        self.schema = weave.schema(node.field_name)
        self.flat = [f"c{node.number}_{i}" for i in range(len(self.schema.fields))]
        self.packed_name = packed_name(node.number)
        self._numbers = weave.snapshots if node.number == 0 else 1
        self._carried = [NUMBER] if self._numbers > 1 else []
        self._weave = weave
        self._timed = [weave.timed[c.number] for c in self.children if c.number in weave.timed]
        self._own_timed = weave.timed.get(node.number)
        self.outcomes = [one.outcome for one in self._timed]
        self._names: dict[tuple[str, str, str], str] = {}
        for child in self.children:
            self.left_keys(child)
        self.own_keys = self._own_keys()

    def width(self, child: JoinNode) -> int:
        """Bytes that a child adds to a row, with everything that hangs on it."""
        inside = self._weave.subtrees([child.number])
        added = (node for node in self._weave.joins if node.number in inside)
        return sum(bytes_of_row(self._weave.schema(node.field_name).fields) for node in added)

    def left_keys(self, child: JoinNode) -> list[str]:
        """Names of the columns that hold the key of a child's join; equal keys share columns."""
        return [self._key_name(part) for part in self._weave.keys[child.number].left]

    def _own_keys(self) -> list[str]:
        if self.node.number == 0:
            return []
        return [self._key_name(part) for part in self._weave.keys[self.node.number].right]

    def _key_name(self, part: KeyPart) -> str:
        if self.children and part.is_bare and part.field and len(part.field.parts) == 1:
            return self.flat[self.schema.names.index(part.field.parts[0])]
        return self._names.setdefault(part.identity, f"k{self.node.number}_{len(self._names)}")

    def base(self) -> DataFrame:
        """The source's columns, flat for a left side and packed for a leaf, with the keys."""
        raw = [sf.col(quote(name)) for name in self.schema.names]
        own: list[Column] = []
        if isinstance(self._own_timed, WindowsJoin):
            pass  # none of its rows are kept
        elif self.children:
            own = [c.alias(name) for c, name in zip(raw, self.flat, strict=True)]
        elif self.node.number == 0:
            own = [sf.struct(*raw).alias(DATA)]
        else:
            own = [sf.struct(sf.struct(*raw).alias(DATA)).alias(self.packed_name)]
        parts = self._parts_by_relationship()
        try:
            times = [one.left_column() for one in self._timed]
            times += self._own_timed.right_columns() if self._own_timed else []
            made = self.source.select(*own, *self._key_columns(parts), *times, *self._carried)
            check_keys(made, self.source, parts)
            return made
        except AnalysisException as refusal:
            refuse_broken_keys(self.source, self.node, parts)
            raise SourceSchemaInvalid(
                "Spark cannot select the columns of this source",
                resource=f"DataSource/{self.node.source}",
                found=str(refusal).splitlines()[0],
                expected="columns whose names are unique, ignoring case",
                hint="rename the columns by a virtual source",
            ) from refusal

    def packed(self, frame: DataFrame) -> DataFrame:
        """Data and children in one struct beside the node's own key; for the root side by side."""
        if not self.children:
            return frame
        data = sf.struct(
            *(
                sf.col(flat).alias(name)
                for flat, name in zip(self.flat, self.schema.names, strict=True)
            )
        ).alias(DATA)
        packed = ((sf.col(packed_name(c.number)), c.field_name) for c in self.children)
        fields = [data, *(column.alias(name) for column, name in packed)]
        if self.node.number == 0:
            return frame.select(*fields, *self.outcomes, *self._carried)
        times = self._own_timed.right_times if self._own_timed else []
        beside = dict.fromkeys([*self.own_keys, *times, *self.outcomes])
        return frame.select(sf.struct(*fields).alias(self.packed_name), *beside)

    def grouped(self, frame: DataFrame) -> DataFrame:
        """One row a key, where the node is grouped."""
        if not self.node.group_by:
            return frame
        return collect_groups(frame, self.own_keys, self.packed_name)

    def keys_once(self) -> DataFrame:
        """Each of the node's own keys once, as a group has it."""
        return self.base().select(*self.own_keys).distinct()

    def joined(
        self, frame: DataFrame, child: JoinNode, right: DataFrame, right_side: Side
    ) -> DataFrame:
        """The rows with the match of each in a child, whose own rows `right` has."""
        timed = self._weave.timed.get(child.number)
        if timed is None:
            return frame.join(right, self.condition(child, right_side), "left")
        pairs = self.key_pairs(child, right_side)
        return timed.joined(frame, right, pairs, right_side.packed_name)

    def key_pairs(self, child: JoinNode, right: Side) -> list[tuple[str, str]]:
        """Names of the columns of a child's key, on both sides."""
        return list(zip(self.left_keys(child), right.own_keys, strict=True))

    def condition(self, child: JoinNode, right: Side) -> Column:
        """The join condition of a child; NULL equals nothing."""
        return reduce(and_, [sf.col(a) == sf.col(b) for a, b in self.key_pairs(child, right)])

    def spelled_keys(self, frame: DataFrame) -> DataFrame:
        """The node's own key in its folded rows, beside the texts that were normalised to it."""
        parts = self._weave.keys[self.node.number].right
        texts = [sf.lit("")]
        key = f"key_{uuid4().hex}"  # the columns beside it have any names
        if any(part.steps for part in parts):
            data = f"{quote(self.packed_name)}.{quote(DATA)}.*"
            frame = frame.select(data, sf.struct(*self.own_keys).alias(key))
            session = frame.sparkSession
            values = (part.value(session, self.node.relationship) for part in parts)
            texts = [value.cast("string") for value in values]
            own = [sf.col(key).getField(name).alias(name) for name in self.own_keys]
        else:
            own = [sf.col(name) for name in self.own_keys]
        return frame.select(*own, sf.array(*texts).alias(SPELLINGS))

    def in_counters(self) -> Sequence[Column]:
        """Counters before the first join."""
        nulls = {f"null_{c.number}": _has_null(self.left_keys(c)) for c in self.children}
        for c in self.children:
            if c.number in self._weave.timed:
                time = sf.col(self._weave.timed[c.number].left_time)
                nulls[f"timeless_{c.number}"] = time.isNull() & ~nulls[f"null_{c.number}"]
        return [rows_counter(), *self._counters(nulls)]

    def out_counters(self, joined: Mapping[int, Column] | None = None) -> Sequence[Column]:
        """Counters at packing the node; `joined` has the children's columns before that."""
        counted: dict[str, Column] = {}
        for child in self.children:
            place = sf.col(child.field_name)
            if joined is not None:
                place = joined[child.number]
            elif self.node.number != 0:
                place = sf.col(self.packed_name).getField(child.field_name)
            counted[f"matched_{child.number}"] = place.isNotNull()
        for one in self._timed:
            counted |= one.counted()
        if self.node.number == 0:
            counted |= {f"rows_{n}": c.isNotNull() for n, c in self._weave.nested().items()}
        if self.own_keys:
            counted[f"null_{self.node.number}"] = _has_null(self.own_keys)
        return [rows_counter(), *self._counters(counted)]

    def _counters(self, counted: Mapping[str, Column]) -> list[Column]:
        """Counts the rows for which each condition is true; of several snapshots, of each."""
        if self._numbers == 1:
            return [sf.count_if(condition).alias(name) for name, condition in counted.items()]
        return [
            sf.count_if(condition & (sf.col(NUMBER) == number)).alias(of_snapshot(name, number))
            for number in range(self._numbers)
            for name, condition in {ROWS: sf.lit(True), **counted}.items()
        ]

    def _key_columns(self, parts: Mapping[str, list[KeyPart]]) -> list[Column]:
        columns: dict[str, Column] = {}
        for relationship, ones in parts.items():
            for part in ones:
                name = self._names.get(part.identity)
                if name is not None and name not in columns:
                    column = part.column(self.source.sparkSession, relationship)
                    columns[name] = column.alias(name)
        return list(columns.values())

    def _parts_by_relationship(self) -> dict[str, list[KeyPart]]:
        parts: dict[str, list[KeyPart]] = {}
        for child in self.children:
            parts.setdefault(child.relationship, []).extend(self._weave.keys[child.number].left)
        if self.node.number != 0:
            own = self._weave.keys[self.node.number].right
            parts.setdefault(self.node.relationship, []).extend(own)
        return parts


def packed_name(number: int) -> str:
    """Name of the column with a node's packed rows."""
    return f"n{number}"


def _has_null(keys: Sequence[str]) -> Column:
    return reduce(or_, [sf.col(key).isNull() for key in keys])

"""The one acceptance rule of skipping, on real Spark: rows with skipping on = rows with it off.

What a condition needs is found by one query with skipping off that counts the rows of each file for
which it is TRUE; what Spark reads with skipping on is asked of the scan in the planned query. A
file with such a row that is not read is a counterexample. It is shrunk, and its message shows how
to see it again.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from support.skipping.proofconditions import Condition
from support.skipping.prooftables import ProofTable

from snaploom.skipping.spark.interfaces.enable import (
    decider_of,
    disable,
    enable,
    setting,
    without_skipping,
)
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder
from snaploom.skipping.stores.catalog import LOCATIONS
from snaploom.spark.jvm import jvm_of

_FILE = re.compile(r"path: (\S+), range: \d+-\d+, partition values: ")
"""What Spark writes of a file to read; its URI has no blanks."""

AT_ONCE = 25
"""Conditions that one query decides."""


@dataclass(frozen=True)
class IndexOf:
    type_name: str
    columns: tuple[str, ...] = ()
    expression: str = ""
    parameters: tuple[tuple[str, str | int | float], ...] = ()

    def add_to(self, builder: IndexBuilder) -> IndexBuilder:
        if self.expression:
            return builder.add_expression(self.type_name, self.expression, **dict(self.parameters))
        return builder.add(self.type_name, *self.columns, **dict(self.parameters))

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.type_name}({self.expression or ', '.join(self.columns)}; {shown})"


@dataclass(frozen=True)
class IndexSet:
    label: str
    indexes: tuple[IndexOf, ...]
    where: str = ""

    @property
    def columns(self) -> frozenset[str]:
        """Columns about which something is kept; every one where there is an expression."""
        return frozenset(name for index in self.indexes for name in index.columns)

    def is_asked_by(self, condition: Condition) -> bool:
        """Whether a condition may be one that these indexes know something about."""
        if condition.about:
            return any(index.expression in condition.about for index in self.indexes) or any(
                not index.expression and condition.about & set(index.columns)
                for index in self.indexes
            )
        return any(
            not index.expression and condition.columns & set(index.columns)
            for index in self.indexes
        )


class IndexHome(Protocol):
    """A kind of place in which indexes are kept."""

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        """What it can hold of an index set, with something near for what it cannot."""
        ...

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        """Make an index in a place that has none of the table; returns the location that has it."""
        ...


@contextmanager
def skipping_by(spark: SparkSession, location: str) -> Iterator[None]:
    """Queries in a `with` block skip by the indexes of one location, and of no other."""
    enable(spark)
    decider_of(spark).forget()
    try:
        with setting(spark, LOCATIONS, location):
            yield
    finally:
        disable(spark)


def path_of(uri: str) -> str:
    """The path that a URI of Spark's names: only the path differs between many partitions."""
    return unquote(urlsplit(uri).path)


@functools.cache
def _runtime(jvm: Any) -> Any:
    """What shows arrays; looked for once, since each part of its name is looked for in all jars."""
    return jvm.scala.runtime.ScalaRunTime


def read_files(frame: DataFrame) -> set[str]:
    """Paths of the files that the scans of a planned query read."""
    shown = _runtime(jvm_of(frame.sparkSession))
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    paths: set[str] = set()
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        kind = leaf.getClass().getSimpleName()
        if kind == "CometNativeScanExec":
            parts = leaf.scan().getFilePartitions()
            chosen = [parts.apply(number).files() for number in range(parts.size())]
        elif "FileSourceScanExec" in kind:
            chosen = [leaf.selectedPartitions().toPartitionArray()]
        else:
            continue
        for files in chosen:
            # One question to the JVM, and not four a file.
            found = _FILE.findall(str(shown.stringOf(files)))
            assert len(found) == len(files), "another form of PartitionedFile"
            paths.update(map(path_of, found))
    return paths


Needs = Mapping[str, frozenset[str]]
"""By condition, the paths of the files with a row for which it is TRUE."""


def needed_files(
    spark: SparkSession, table: ProofTable, conditions: Sequence[Condition]
) -> dict[str, frozenset[str]]:
    """What conditions need, with skipping off; those that Spark refuses are left out."""
    found: dict[str, frozenset[str]] = {}
    with without_skipping(spark):
        for start in range(0, len(conditions), AT_ONCE):
            found |= _needed(table.frame(spark), conditions[start : start + AT_ONCE])
    return found


def _needed(frame: DataFrame, batch: Sequence[Condition]) -> dict[str, frozenset[str]]:
    answers = [sql.expr(each.text).alias(f"c{number}") for number, each in enumerate(batch)]
    try:
        rows = frame.select(sql.col("_metadata.file_path").alias("file"), *answers).collect()
    except PySparkException:
        if len(batch) == 1:
            return {}
        half = len(batch) // 2
        return _needed(frame, batch[:half]) | _needed(frame, batch[half:])
    return {
        each.text: frozenset(path_of(row["file"]) for row in rows if row[f"c{number}"])
        for number, each in enumerate(batch)
    }


@dataclass
class Verdict:
    cases: int = 0
    droppable: int = 0
    """Files that conditions do not need which ask the indexes something, summed."""
    dropped: int = 0
    """Those of them that were not read."""
    lost: list[tuple[Condition, frozenset[str]]] = field(default_factory=list)
    """Conditions with files that were needed and not read."""

    @property
    def share(self) -> float:
        return self.dropped / max(self.droppable, 1)


def judge(
    spark: SparkSession,
    table: ProofTable,
    location: str,
    conditions: Iterable[Condition],
    needs: Needs,
    is_asked_by: Callable[[Condition], bool] = lambda _: True,
) -> Verdict:
    """Plan each condition with skipping on, and compare the files that are read with the needed.

    What `is_asked_by` refuses is looked at as well, and counts not as something to be dropped.
    """
    verdict = Verdict()
    with skipping_by(spark, location):
        frame = table.frame(spark)
        every = set(map(path_of, frame.inputFiles()))
        for condition in conditions:
            read = read_files(frame.where(condition.text))
            needed = needs[condition.text]
            verdict.cases += 1
            if is_asked_by(condition):
                verdict.droppable += len(every - needed)
                verdict.dropped += len(every - read - needed)
            if needed - read:
                verdict.lost.append((condition, needed - read))
        errors = decider_of(spark).counting.read()
    if errors.errors:
        raise AssertionError(f"deciding failed {errors.errors} times: {errors.last_error}")
    return verdict


def counterexample(
    spark: SparkSession,
    home: IndexHome,
    table: ProofTable,
    indexes: IndexSet,
    condition: Condition,
) -> str:
    """The smallest form of a counterexample that is easily found, in words."""

    def loses(tried: IndexSet, condition: Condition) -> bool:
        needs = needed_files(spark, table, [condition])
        location = home.build(spark, table, tried)
        return bool(needs and judge(spark, table, location, [condition], needs).lost)

    for index in indexes.indexes:
        single = IndexSet(indexes.label, (index,), indexes.where)
        if loses(single, condition):
            indexes = single
            break
    condition = _smallest(condition, lambda part: loses(indexes, part))
    needs = needed_files(spark, table, [condition])
    location = home.build(spark, table, indexes)
    verdict = judge(spark, table, location, [condition], needs)
    lost = [sorted(files) for _, files in verdict.lost]
    kept = ", ".join(map(str, indexes.indexes))
    return (
        f"rows are lost in {table.name} with {kept} WHERE {indexes.where or 'true'}:\n"
        f"  {condition.text}\n  needs {lost}, which are not read"
    )


def _smallest(condition: Condition, loses: Callable[[Condition], bool]) -> Condition:
    for part in condition.parts:
        if loses(part):
            return _smallest(part, loses)
    return condition


def on_and_off(
    spark: SparkSession, location: str, query: Callable[[], DataFrame]
) -> tuple[list[str], list[str]]:
    """All rows with skipping on and with it off, as texts in one order.

    Nothing of a query that fails without skipping: reading less may spare it the row that fails.
    """
    with skipping_by(spark, location):
        try:
            with without_skipping(spark):
                off = _texts(query())
        except PySparkException:
            return [], []
        finally:
            spark.catalog.clearCache()
        return _texts(query()), off


def _texts(frame: DataFrame) -> list[str]:
    """Rows as Spark writes them: Python has no year 0, which time zones lead to."""
    return sorted(str(row[0]) for row in frame.select(sql.struct("*").cast("string")).collect())

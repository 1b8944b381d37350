"""One distributed pass over the rows of files that builds all indexes.

Spark reads the files, with the reader and the settings of the target. What goes to the Python
workers is a hash of the file's path (paths would cost more than the data), and for each index the
values or the hashes of its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from snaploom.errors import SkippingError
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.indexes.base import Feed, FileBuilder
from snaploom.skipping.indexes.registry import index_type
from snaploom.skipping.spark.builds.statecollector import (
    FILE,
    PARTIALS_DDL,
    Collecting,
    Feeding,
    Scanned,
)
from snaploom.skipping.spark.relations.causes import cause_of
from snaploom.skipping.spark.relations.hadoop import is_spelt_right, url_encoded

_MOST_FAILURES = 40
"""Failed jobs after which a scan gives up: it is not the files that are at fault."""

_NO_AUTHORITY = "file:/"
_EMPTY_AUTHORITY = "file:///"
"""Spark names local files in both ways, depending on how it listed them."""


@dataclass(frozen=True)
class ScanResult:
    """Result of a scan."""

    rows: Mapping[str, tuple[Scanned, ...]]
    """By path, one for each index; files that could not be read are not in it."""
    failures: Mapping[str, str]
    """Why a file could not be read, by path."""


@dataclass(frozen=True)
class Relation:
    """Target as Spark reads it for building."""

    spark: SparkSession
    """A session of our own, which has the reader settings of the user's."""
    read: Callable[[], DataFrame]
    """Gives the frame of every file and every column. Spark lists the files for it."""
    columns: Mapping[str, Column]
    """How to compute a term, by its key."""

    @property
    def frame(self) -> DataFrame:
        """Every file, every column."""
        return self.read()

    @property
    def file_hash(self) -> str:
        """SQL of the hash of the path of a row's file."""
        name = "_metadata"
        while name.lower() in (column.lower() for column in self.frame.columns):
            # Spark's own rule for a column that is called so already.
            name = f"_{name}"
        return f"xxhash64({name}.file_path)"

    def only(self, hashes: Iterable[int]) -> DataFrame:
        """Rows of some files only: Spark decides this on the listing, and opens no others.

        Written as SQL because a column of a thousand literals takes a second to make.
        """
        return self.frame.where(f"{self.file_hash} IN ({', '.join(f'{code}L' for code in hashes)})")


def scan(
    relation: Relation,
    indexes: Sequence[IndexDefinition],
    paths: Sequence[str],
    *,
    is_everything: bool,
) -> ScanResult:
    """Read files once and build all indexes; `is_everything` if the relation has no other files.

    Raises:
        SkippingError: reading fails whatever files are left out.
    """
    hashes = _path_hashes(relation.spark, paths)
    ambiguous = {path for owners in hashes.values() if len(owners) > 1 for path in owners}
    attempts = [[path for path in paths if path not in ambiguous]]
    rows: dict[str, tuple[Scanned, ...]] = {}
    failures: dict[str, str] = {}
    failed_jobs = 0
    while attempts:
        attempt = attempts.pop()
        whole = is_everything and len(attempt) == len(paths)
        wanted = set(attempt)
        chosen = {code: owners[0] for code, owners in hashes.items() if owners[0] in wanted}
        try:
            rows.update(_scan_once(relation, indexes, chosen, whole))
        except (PySparkException, Py4JError) as error:
            failed_jobs += 1
            if failed_jobs > _MOST_FAILURES:
                raise SkippingError(
                    "the files cannot be read",
                    found=cause_of(error),
                    hint="read the target with Spark, and index it when that works",
                ) from error
            if len(attempt) == 1:
                failures[attempt[0]] = cause_of(error)
            else:
                attempts += _without_culprits(attempt, str(error))
    return ScanResult(rows, failures)


def _without_culprits(paths: list[str], message: str) -> list[list[str]]:
    """Smaller attempts: without the files that the message names, or halves."""
    named = [path for path in paths if any(name in message for name in (path, *_spellings(path)))]
    if named and len(named) < len(paths):
        others = [path for path in paths if path not in set(named)]
        return [others, *([path] for path in named)]
    middle = len(paths) // 2
    return [paths[:middle], paths[middle:]]


def _spellings(path: str) -> list[str]:
    encoded = url_encoded(path)
    if encoded.startswith(_NO_AUTHORITY):
        return [encoded, _EMPTY_AUTHORITY + encoded.removeprefix(_NO_AUTHORITY)]
    return [encoded]


def _path_hashes(spark: SparkSession, paths: Sequence[str]) -> dict[int, list[str]]:
    """Paths by the hashes that their rows carry. Computed by Spark's optimizer: no job runs."""
    owners = [path for path in paths for _ in _spellings(path)]
    spellings = [spelling for path in paths for spelling in _spellings(path)]
    row = spark.sql(
        "SELECT transform(split(:paths, '\\n'), path -> xxhash64(path)) AS hashes",
        args={"paths": "\n".join(spellings)},
    ).head()
    hashes: dict[int, list[str]] = {}
    for code, path in zip(row["hashes"] if row is not None else [], owners, strict=True):
        hashes.setdefault(code, []).append(path)
    return hashes


def _scan_once(
    relation: Relation,
    indexes: Sequence[IndexDefinition],
    paths: Mapping[int, str],
    is_everything: bool,
) -> dict[str, tuple[Scanned, ...]]:
    columns: dict[str, Column] = {}
    feedings = tuple(_feeding(definition, relation.columns, columns) for definition in indexes)
    frame = relation.frame if is_everything else relation.only(paths)
    selected = frame.select(
        sql.expr(relation.file_hash).alias(FILE),
        *(column.alias(name) for name, column in columns.items()),
    )
    partials = selected.mapInArrow(Collecting(feedings), PARTIALS_DDL).toArrow()
    collected: dict[str, list[_Merging]] = {}
    is_complete = True
    for row in partials.to_pylist():
        path = paths.get(row[FILE])
        if path is None:
            is_complete = False
            continue
        if path not in collected:
            collected[path] = [_Merging(definition) for definition in indexes]
        collected[path][row["position"]].add(row["values"], row["nulls"], row["partial"])
    if is_complete:
        # The job read every file to its end, so a file that gave no row has none. It must be sure
        # that its rows would have been recognised.
        for path in set(paths.values()) - set(collected):
            if is_spelt_right(relation.spark, path):
                collected[path] = [_Merging(definition) for definition in indexes]
    return {path: tuple(each.finish() for each in merged) for path, merged in collected.items()}


def _feeding(
    definition: IndexDefinition, terms: Mapping[str, Column], columns: dict[str, Column]
) -> Feeding:
    is_hashed = index_type(definition.type).feed(definition) is Feed.HASHES
    names = []
    for term in definition.terms:
        position = list(terms).index(term.key)
        name = f"{'hash' if is_hashed else 'value'}{position}"
        column = terms[term.key]
        columns[name] = sql.when(column.isNotNull(), sql.xxhash64(column)) if is_hashed else column
        names.append(name)
    return Feeding(definition, tuple(names))


class _Merging:
    def __init__(self, definition: IndexDefinition) -> None:
        self._builder: FileBuilder = index_type(definition.type).builder(definition)
        self._values = [0] * len(definition.terms)
        self._nulls = [0] * len(definition.terms)

    def add(self, values: Sequence[int], nulls: Sequence[int], partial: bytes) -> None:
        self._values = [old + new for old, new in zip(self._values, values, strict=True)]
        self._nulls = [old + new for old, new in zip(self._nulls, nulls, strict=True)]
        self._builder.merge(partial)

    def finish(self) -> Scanned:
        return Scanned(tuple(self._values), tuple(self._nulls), self._builder.finish())

"""Everything about some files from one distributed pass over their rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from snaploom.errors import SkippingError
from snaploom.skipping.core.definition import IndexDefinition, arrow_type
from snaploom.skipping.indexes.base import FileBuilder, index_type, is_hashed
from snaploom.skipping.spark.relations.hadoop import cause_of, is_spelt_right, url_encoded
from snaploom.spark.jvm import chosen_python

# Functions for Spark's Python workers: batches of rows in, partial states of builders out.

FILE = "file"
"""Column with the hash of the file's path, in input and output."""

PARTIALS = pa.schema(
    [
        (FILE, pa.int64()),
        ("position", pa.int32()),
        ("values", pa.list_(pa.int64())),
        ("nulls", pa.list_(pa.int64())),
        ("partial", pa.binary()),
    ]
)
"""One row for a file and an index: `position` in the sequence of indexes, counts for each term."""
PARTIALS_DDL = (
    f"{FILE} bigint, position int, values array<bigint>, nulls array<bigint>, partial binary"
)

_EMITTED_ROWS = 256
_EMITTED_BYTES = 4 << 20
"""Bytes that are collected before a batch is emitted; limits a worker's memory."""


@dataclass(frozen=True)
class Scanned:
    """Contribution of one file's rows to one index."""

    values: tuple[int, ...]
    """Rows in which each term is not NULL."""
    nulls: tuple[int, ...]
    """Rows in which each term is NULL."""
    fields: Mapping[str, object]
    """Partial state of the type's builder."""


@dataclass(frozen=True)
class Feeding:
    """One index, and the columns that feed it."""

    definition: IndexDefinition
    columns: tuple[str, ...]
    """For each term, the column of values or hashes."""


@dataclass(frozen=True)
class Collecting:
    """The function that workers run."""

    feedings: tuple[Feeding, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Partial states of every file, as rows of `PARTIALS`."""
        current: Collected | None = None
        emitted = _Emitted()
        for batch in batches:
            files = batch.column(FILE).to_numpy(zero_copy_only=False)
            starts = [0, *(np.flatnonzero(files[1:] != files[:-1]) + 1).tolist(), len(files)]
            types = {
                name: pa.int64() if is_hashed(feeding.definition) else arrow_type(term.data_type)
                for feeding in self.feedings
                for name, term in zip(feeding.columns, feeding.definition.terms, strict=True)
            }
            arrays = {name: as_kept(batch.column(name), kind) for name, kind in types.items()}
            for start, stop in pairwise(starts):
                if start == stop:
                    continue
                if current is None or current.file != files[start]:
                    if current is not None:
                        emitted.take(current)
                    current = Collected(int(files[start]), self.feedings)
                current.add({name: each[start:stop] for name, each in arrays.items()})
            if emitted.is_full:
                yield emitted.batch()
        if current is not None:
            emitted.take(current)
        if emitted.rows:
            yield emitted.batch()


def as_kept(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values from Spark or Parquet, in the Arrow type in which a term's values are kept.

    Dates and timestamps become the numbers that they are: days, and microseconds in UTC.
    """
    if values.type == kind:
        return values
    if pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type):
        return values.view(kind)
    return values.cast(kind)


class Collected:
    """Builders of one file, and what they were fed."""

    def __init__(self, file: int, feedings: Sequence[Feeding]) -> None:
        self.file = file
        self.feedings = feedings
        self.builders: list[FileBuilder] = [
            index_type(feeding.definition.type).builder(feeding.definition) for feeding in feedings
        ]
        self.rows = 0
        self.nulls: dict[str, int] = {}

    def add(self, arrays: dict[str, pa.Array]) -> None:
        for name, values in arrays.items():
            self.nulls[name] = self.nulls.get(name, 0) + values.null_count
        self.rows += len(next(iter(arrays.values())))
        for feeding, builder in zip(self.feedings, self.builders, strict=True):
            builder.add([arrays[name] for name in feeding.columns])

    def finish(self) -> tuple[Scanned, ...]:
        found = []
        for feeding, builder in zip(self.feedings, self.builders, strict=True):
            nulls = tuple(self.nulls.get(name, 0) for name in feeding.columns)
            values = tuple(self.rows - each for each in nulls)
            found.append(Scanned(values, nulls, builder.finish()))
        return tuple(found)


class _Emitted:
    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self._bytes = 0

    def take(self, file: Collected) -> None:
        for position, (feeding, builder) in enumerate(
            zip(file.feedings, file.builders, strict=True)
        ):
            nulls = [file.nulls[name] for name in feeding.columns]
            partial = builder.partial()
            self._bytes += len(partial)
            self.rows.append(
                {
                    FILE: file.file,
                    "position": position,
                    "values": [file.rows - each for each in nulls],
                    "nulls": nulls,
                    "partial": partial,
                }
            )

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= _EMITTED_ROWS or self._bytes >= _EMITTED_BYTES

    def batch(self) -> pa.RecordBatch:
        rows, self.rows, self._bytes = self.rows, [], 0
        return pa.RecordBatch.from_pylist(rows, PARTIALS)


# One distributed pass over the rows of files that builds all indexes.

_MOST_FAILURES = 40
"""Failed jobs after which a scan gives up: it is not the files that are at fault."""

_NO_AUTHORITY = "file:/"
_EMPTY_AUTHORITY = "file:///"
"""Spark names local files in both ways, depending on how it listed them."""


@dataclass(frozen=True)
class Relation:
    """Target as Spark reads it for building."""

    spark: SparkSession
    """A session of our own, which has the reader settings of the user's."""
    read: Callable[[], DataFrame]
    """Gives the frame of every file and every column. Spark lists the files for it."""
    columns: Mapping[str, Column]
    """Expressions of terms, by key."""

    @property
    def file_hash(self) -> str:
        """SQL of the hash of the path of a row's file."""
        name = "_metadata"
        while name.lower() in (column.lower() for column in self.read().columns):
            # Spark's own rule for a column that is called so already.
            name = f"_{name}"
        return f"xxhash64({name}.file_path)"

    def only(self, hashes: Iterable[int]) -> DataFrame:
        """Rows of some files only: Spark decides this on the listing, and opens no others.

        Written as SQL because a column of a thousand literals takes a second to make.
        """
        return self.read().where(
            f"{self.file_hash} IN ({', '.join(f'{code}L' for code in hashes)})"
        )


def scan(
    relation: Relation,
    indexes: Sequence[IndexDefinition],
    paths: Sequence[str],
    *,
    is_everything: bool,
) -> tuple[dict[str, tuple[Scanned, ...]], dict[str, str]]:
    """Read files once and build all indexes; `is_everything` if the relation has no other files.

    Returns:
        By path: of files that could be read, what each index has of them; of others, why not.
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
                raise SkippingError("the files cannot be read", found=cause_of(error)) from error
            if len(attempt) == 1:
                failures[attempt[0]] = cause_of(error)
            else:
                attempts += _without_culprits(attempt, str(error))
    return rows, failures


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
    frame = relation.read() if is_everything else relation.only(paths)
    selected = frame.select(
        sql.expr(relation.file_hash).alias(FILE),
        *(column.alias(name) for name, column in columns.items()),
    )
    with chosen_python(relation.spark):
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
    by_hash = is_hashed(definition)
    names = []
    for term in definition.terms:
        position = list(terms).index(term.key)
        name = f"{'hash' if by_hash else 'value'}{position}"
        column = terms[term.key]
        columns[name] = sql.when(column.isNotNull(), sql.xxhash64(column)) if by_hash else column
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

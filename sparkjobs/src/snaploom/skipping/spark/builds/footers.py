"""Facts that Parquet footers prove about terms, of many files at once, by columns.

By the rules of `storage.parquetstatistics`; a column that is not in the file is NULL in every row,
unless it was added with a default (rule S19).

Files of the local file system are read by the driver's own threads, which takes less than handing
them to executors. Only Hadoop knows how to reach other file systems, with what the session sets
about endpoints and credentials, and it lives in the JVM: there many requests are under way at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from snaploom.skipping.core.terms import Term, arrow_type
from snaploom.skipping.indexes.base import FooterColumn
from snaploom.skipping.spark.relations.hadoop import local_path
from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.storage.footerbatches import (
    FILES_OF_A_BATCH,
    FailedFooter,
    FileFooter,
    FooterParser,
    ParsedFooters,
)
from snaploom.storage.parquetfooters import END, local_footer_bytes
from snaploom.storage.parquetstatistics import (
    ABSENT,
    depends_on_zone,
    leaf_statistics,
    trusted_leaf,
)

_THREADS = 4
"""Threads that read local files; more of them wait for each other's Python."""

_FILES_OF_A_CALL = 500
"""Files that the JVM reads at once; one may interrupt between two calls."""
_FIRST_BYTES = 1 << 15
"""Bytes that are asked of a remote file at once: most footers are shorter, and a second request
costs more than they do."""


@dataclass(frozen=True)
class FooterTerm:
    """A column or nested field to look for in footers."""

    names: tuple[str, ...]
    """From the top-level column to the field, as in Spark's schema."""
    data_type: str
    """Spark's type, as its `catalogString`."""
    has_default: bool = False
    """Whether it, or a struct around it, was added with a default value."""

    @classmethod
    def of(cls, term: Term, *, has_default: bool = False) -> FooterTerm | None:
        """Convert a term; None for an expression."""
        names = term.names
        return None if names is None else cls(names, term.data_type, has_default)


Item = TypeVar("Item")
_COUNT = pa.int64()


@dataclass(frozen=True)
class Footers:
    """Facts of footers, one entry per file."""

    facts: pa.Table
    """`rows` (null where the footer cannot be read), `length` (bytes that were read), `zoned`
    (whether timestamps in the file are other ones when the reader's time zone is another),
    `failure` (why it cannot be read, else null), and four columns for each term."""

    def __len__(self) -> int:
        count: int = self.facts.num_rows
        return count

    @property
    def rows(self) -> pa.Array:
        """Rows in each file; null where the footer cannot be read."""
        return _whole(self.facts.column("rows"))

    def column(self, place: int) -> FooterColumn:
        """Facts about the term at a place."""
        return FooterColumn(*(_whole(self.facts.column(name)) for name in _names(place)))

    def slice(self, start: int, count: int) -> Footers:
        """The same facts about some of the files."""
        return Footers(self.facts.slice(start, count))


def _names(place: int) -> tuple[str, str, str, str]:
    return (f"values{place}", f"nulls{place}", f"min{place}", f"max{place}")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


@dataclass(frozen=True)
class FooterReader:
    """Reader of some terms' facts in footers."""

    terms: tuple[FooterTerm, ...]
    """Columns and fields."""
    is_case_sensitive: bool
    """Whether Spark distinguishes names by case (`spark.sql.caseSensitive`)."""

    def read(self, spark: SparkSession, paths: Sequence[str], lengths: Sequence[int]) -> Footers:
        """Read footers of files of one file system, in order; `paths` as Hadoop writes them."""
        local = [local_path(path) for path in paths]
        names = [name for name in local if name is not None]
        if len(names) < len(paths):
            return self._through_the_jvm(spark, paths, lengths)
        return self.read_local(names)

    def read_local(self, names: Sequence[str]) -> Footers:
        """Read footers of local files, in several threads; `names` are the operating system's."""
        with ThreadPoolExecutor(_THREADS) as pool:
            return self._joined(pool.map(self._read_some, _parts(names, FILES_OF_A_BATCH)))

    def _read_some(self, names: Sequence[str]) -> pa.RecordBatch:
        found = _Found(self)
        found.take([_end_of(name) for name in names])
        return found.batch()

    def _through_the_jvm(
        self, spark: SparkSession, paths: Sequence[str], lengths: Sequence[int]
    ) -> Footers:
        found, rule = _Found(self), JavaRule(spark)
        for some, sizes in zip(
            _parts(paths, _FILES_OF_A_CALL), _parts(lengths, _FILES_OF_A_CALL), strict=True
        ):
            ends = rule.footers(spark._jsparkSession, some, sizes, _FIRST_BYTES)
            found.take([
                end if isinstance(end, str) else _End(end, max(len(end), min(size, _FIRST_BYTES)))
                for end, size in zip(ends, sizes, strict=True)
            ])  # fmt: skip
        return self._joined([found.batch()])

    def _joined(self, batches: Iterable[pa.RecordBatch]) -> Footers:
        return Footers(pa.Table.from_batches(batches, self.schema).combine_chunks())

    @property
    def schema(self) -> pa.Schema:
        """Columns of `Footers.facts`."""
        fields = [
            ("rows", _COUNT), ("length", _COUNT), ("zoned", pa.bool_()), ("failure", pa.string())
        ]  # fmt: skip
        for place, term in enumerate(self.terms):
            kind = arrow_type(term.data_type)
            fields += zip(_names(place), (_COUNT, _COUNT, kind, kind), strict=True)
        return pa.schema(fields)

    def leaves(self, metadata: pq.FileMetaData) -> Sequence[int | None]:
        """Leaf of each term in footers with one schema, writer and notes, by `trusted_leaf`."""
        return [
            trusted_leaf(
                metadata, term.names, term.data_type, is_case_sensitive=self.is_case_sensitive
            )
            for term in self.terms
        ]


class _End(NamedTuple):
    content: bytes
    """From where its footer begins, or from before it."""
    length: int
    """Bytes that were read."""


def _end_of(name: str) -> _End | str:
    try:
        content = local_footer_bytes(name)
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return _End(content, len(content) + END)


class _Found:
    """Facts of footers as columns: an object for each file would cost more than its footer."""

    def __init__(self, reader: FooterReader) -> None:
        self._reader = reader
        self._parser = FooterParser()
        self._columns: list[list[object]] = [[] for _ in reader.schema]

    def take(self, ends: Sequence[_End | str]) -> None:
        """Add files: the end of each, or the reason why it cannot be read."""
        start = len(self._columns[0])
        for column, value in zip(self._columns, self._unread, strict=True):
            column += [value] * len(ends)
        read: list[int] = []
        contents: list[bytes] = []
        for place, end in enumerate(ends, start):
            if isinstance(end, str):
                self._columns[_FAILURE][place] = end
            else:
                read.append(place)
                contents.append(end.content)
                self._columns[_LENGTH][place] = end.length
        for parsed in self._parser.parse(contents):
            if isinstance(parsed, FailedFooter):
                self._columns[_FAILURE][read[parsed.place]] = parsed.why
            else:
                self._take(parsed, read)

    @property
    def _unread(self) -> list[object]:
        return [None, 0, False, None, *[None] * (len(self._columns) - _FACTS)]

    def _take(self, parsed: ParsedFooters, places: Sequence[int]) -> None:
        metadata = parsed.metadata
        leaves, zoned = self._reader.leaves(metadata), depends_on_zone(metadata)
        rows, zones = self._columns[_ROWS], self._columns[_ZONED]
        for file in parsed.files:
            place = places[file.place]
            rows[place], zones[place] = file.rows, zoned
        for number, (term, leaf) in enumerate(zip(self._reader.terms, leaves, strict=True)):
            at = _FACTS + number * len(_NOTHING)
            columns = self._columns[at : at + len(_NOTHING)]
            for file in parsed.files:
                place = places[file.place]
                proved = _proved(metadata, term, leaf, file)
                for column, value in zip(columns, proved, strict=True):
                    column[place] = value

    def batch(self) -> pa.RecordBatch:
        schema = self._reader.schema
        arrays = [
            pa.array(values, field.type)
            for values, field in zip(self._columns, schema, strict=True)
        ]
        return pa.record_batch(arrays, schema)


_ROWS, _LENGTH, _ZONED, _FAILURE, _FACTS = range(5)
"""Places of columns, and how many there are before those of terms."""
_NOTHING = (None, None, None, None)


def _proved(
    metadata: pq.FileMetaData, term: FooterTerm, leaf: int | None, file: FileFooter
) -> Sequence[object]:
    if leaf == ABSENT:
        return _NOTHING if term.has_default else (0, file.rows, None, None)
    if leaf is None:
        return _NOTHING
    found = leaf_statistics(metadata, leaf, term.data_type, file.rows, file.groups)
    if found is None:
        return _NOTHING
    if not found.bounds:
        return (found.values, found.nulls, None, None)
    if len(found.bounds) == 1:
        return (found.values, found.nulls, *found.bounds[0])
    lows, highs = zip(*found.bounds, strict=True)
    return (found.values, found.nulls, min(lows), max(highs))


def _parts(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    return [items[start : start + count] for start in range(0, len(items), count)]

"""Facts about terms that Parquet footers prove, and local files read by Arrow without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from snaploom.parquet import batches, statistics
from snaploom.parquet.footers import END, footer_bytes, local_footer_bytes, parse_footer
from snaploom.skipping.core.definition import IndexDefinition, Term, arrow_type
from snaploom.skipping.core.filetable import whole_column
from snaploom.skipping.core.hashes import is_hashable, xxhash64_of
from snaploom.skipping.indexes.base import FooterColumn, is_hashed
from snaploom.skipping.spark.builds.scan import Collected, Feeding, Scanned, as_kept
from snaploom.skipping.spark.relations.hadoop import FileState, JavaRule, local_path, opened_state

# Rows about local Parquet files, read by Arrow without Spark: several times faster than a scan.

_BATCH_ROWS = 65_536
_BATCH_BYTES = 16 << 20
"""Rows that are read at once, and about how many bytes they may have."""
_BUFFER = 1 << 20
"""Bytes that are read of a column at once."""


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


@dataclass(frozen=True)
class DirectReader:
    """Reads files and builds indexes."""

    indexes: tuple[IndexDefinition, ...]
    """Indexes to build; all of their terms are in `terms`."""
    terms: Mapping[str, FooterTerm]
    is_case_sensitive: bool

    @classmethod
    def of(
        cls,
        indexes: Sequence[IndexDefinition],
        terms: Mapping[str, FooterTerm],
        *,
        is_case_sensitive: bool,
    ) -> DirectReader | None:
        """A reader for all of some indexes; None where one of them needs Spark."""
        for definition in indexes:
            by_hash = is_hashed(definition)
            for term in definition.terms:
                if term.key not in terms or (by_hash and not is_hashable(term.data_type)):
                    return None
        used = {term.key for definition in indexes for term in definition.terms}
        wanted = {key: term for key, term in terms.items() if key in used}
        return cls(tuple(indexes), wanted, is_case_sensitive)

    def read(self, path: str, expected: FileState) -> tuple[Scanned, ...] | None:
        """Facts about one file, one for each index; None if Spark has to read it."""
        try:
            with pa.OSFile(path) as file:
                if not expected.agrees(opened_state(file.fileno())):
                    return None
                found = self._read(file)
                return found if expected.agrees(opened_state(file.fileno())) else None
        except (OSError, ValueError, pa.ArrowException):
            return None

    def read_all(
        self, files: Mapping[str, FileState], threads: int
    ) -> Iterator[tuple[str, tuple[Scanned, ...]]]:
        """Facts about files, by path; files that Spark has to read are left out."""
        with ThreadPoolExecutor(threads) as pool:
            found = pool.map(self.read, files, files.values())
            for path, scanned in zip(files, found, strict=True):
                if scanned is not None:
                    yield path, scanned

    def _read(self, file: pa.NativeFile) -> tuple[Scanned, ...] | None:
        size = file.size()
        end = footer_bytes(lambda count: file.read_at(count, size - count), size)
        metadata = parse_footer(end)
        source = pq.ParquetFile(file, metadata=metadata, buffer_size=_BUFFER, pre_buffer=False)
        leaves = [
            statistics.readable_leaf(
                metadata, term.names, term.data_type, is_case_sensitive=self.is_case_sensitive
            )
            for term in self.terms.values()
        ]
        columns = [metadata.schema.column(leaf).path for leaf in leaves if leaf is not None]
        if len(columns) != len(leaves) or _are_ambiguous(metadata, columns):
            return None
        hashed = {
            f"hash {term.key}": (term.key, term.data_type)
            for definition in self.indexes
            if is_hashed(definition)
            for term in definition.terms
        }
        collected = Collected(0, [self._feeding(definition) for definition in self.indexes])
        for batch in source.iter_batches(
            _batch_rows(metadata, columns), columns=columns, use_threads=False
        ):
            arrays = {key: self._values(batch, term) for key, term in self.terms.items()}
            known = {key: values for key, values in arrays.items() if values is not None}
            if len(known) != len(arrays):
                return None
            hashes = {name: xxhash64_of(known[key], kind) for name, (key, kind) in hashed.items()}
            collected.add({**known, **hashes})
        return collected.finish() if collected.rows == metadata.num_rows else None

    @staticmethod
    def _feeding(definition: IndexDefinition) -> Feeding:
        prefix = "hash " * is_hashed(definition)
        return Feeding(definition, tuple(f"{prefix}{term.key}" for term in definition.terms))

    def _values(self, batch: pa.RecordBatch, term: FooterTerm) -> pa.Array | None:
        """Values of a term in the Arrow type in which they are kept; None if in doubt."""
        values: pa.Array = batch.to_struct_array()
        for name in term.names:
            if not pa.types.is_struct(values.type):
                return None
            found = [
                position
                for position in range(values.type.num_fields)
                if statistics.same_name(
                    values.type.field(position).name, name, self.is_case_sensitive
                )
            ]
            if len(found) != 1:
                return None
            # A field of a struct that is NULL is NULL, whatever lies below.
            values = pc.struct_field(values, found)
        if not _holds(values.type, term.data_type):
            return None
        return as_kept(values, arrow_type(term.data_type))


def _are_ambiguous(metadata: pq.FileMetaData, columns: Sequence[str]) -> bool:
    """Whether Arrow, which takes columns by path, would read others too."""
    paths = [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)]
    return any(
        sum(path == column or path.startswith(f"{column}.") for path in paths) != 1
        for column in columns
    )


def _batch_rows(metadata: pq.FileMetaData, columns: Sequence[str]) -> int:
    """Rows of a batch, so that wide values take no more memory than many narrow ones."""
    wanted = set(columns)
    size: int = sum(
        column.total_uncompressed_size
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema in wanted
    )
    rows: int = metadata.num_rows
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * max(1, rows) // max(1, size)))


def _holds(found: pa.DataType, data_type: str) -> bool:
    """Whether an Arrow type that the file asks for means what Spark's type means.

    Files may carry an Arrow schema of their own, in which 64-bit integers may be durations.
    """
    if data_type in ("string", "binary"):
        return found in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    if data_type == "date":
        return bool(found == pa.date32())
    if data_type in ("timestamp", "timestamp_ntz"):
        is_instant = data_type == "timestamp"
        is_same = pa.types.is_timestamp(found) and found.unit == "us"
        return bool(is_same and (found.tz is not None) is is_instant)
    return bool(found == arrow_type(data_type))


# Facts that Parquet footers prove about terms, of many files at once, by columns.

_THREADS = 4
"""Threads that read local files; more of them wait for each other's Python."""

_FILES_OF_A_CALL = 500
"""Files that the JVM reads at once; one may interrupt between two calls."""
_FIRST_BYTES = 1 << 15
"""Bytes that are asked of a remote file at once: most footers are shorter, and a second request
costs more than they do."""

Item = TypeVar("Item")
_COUNT = pa.int64()


@dataclass(frozen=True)
class Footers:
    """Facts of footers, one entry per file."""

    facts: pa.Table
    """`rows` (null where the footer cannot be read), `length` (bytes that were read), `zoned`
    (whether timestamps in the file are other ones when the reader's time zone is another),
    `failure` (why it cannot be read, else null), and four columns for each term."""

    @property
    def rows(self) -> pa.Array:
        """Rows in each file; null where the footer cannot be read."""
        return whole_column(self.facts.column("rows"))

    def column(self, place: int) -> FooterColumn:
        """Facts about the term at a place."""
        return FooterColumn(*(whole_column(self.facts.column(name)) for name in _names(place)))

    def slice(self, start: int, count: int) -> Footers:
        """The same facts about some of the files."""
        return Footers(self.facts.slice(start, count))


def _names(place: int) -> tuple[str, str, str, str]:
    return (f"values{place}", f"nulls{place}", f"min{place}", f"max{place}")


@dataclass(frozen=True)
class FooterReader:
    """Reader of some terms' facts in footers."""

    terms: tuple[FooterTerm, ...]
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
            return self._joined(pool.map(self._read_some, _parts(names, batches.FILES_OF_A_BATCH)))

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
            statistics.trusted_leaf(
                metadata, term.names, term.data_type, is_case_sensitive=self.is_case_sensitive
            )
            for term in self.terms
        ]


class _End(NamedTuple):
    content: bytes
    """From where its footer begins, or from before it."""
    length: int


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
        self._parser = batches.FooterParser()
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
            if isinstance(parsed, batches.FailedFooter):
                self._columns[_FAILURE][read[parsed.place]] = parsed.why
            else:
                self._take(parsed, read)

    @property
    def _unread(self) -> list[object]:
        return [None, 0, False, None, *[None] * (len(self._columns) - _FACTS)]

    def _take(self, parsed: batches.ParsedFooters, places: Sequence[int]) -> None:
        metadata = parsed.metadata
        leaves, zoned = self._reader.leaves(metadata), statistics.depends_on_zone(metadata)
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
    metadata: pq.FileMetaData, term: FooterTerm, leaf: int | None, file: batches.FileFooter
) -> Sequence[object]:
    if leaf == statistics.ABSENT:
        return _NOTHING if term.has_default else (0, file.rows, None, None)
    if leaf is None:
        return _NOTHING
    found = statistics.leaf_statistics(metadata, leaf, term.data_type, file.rows, file.groups)
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

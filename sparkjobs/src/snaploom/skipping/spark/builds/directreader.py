"""Rows about local Parquet files, read by Arrow without Spark: several times faster than a scan.

Only where what Arrow reads is surely what Spark reads: the rules are those of `footers`, and the
Arrow type must be one that means the same. Everything else is left to the scan, file by file. This
module knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from snaploom.skipping.core.columnhashes import is_hashable, xxhash64_of
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.indexes.base import Feed, FileBuilder
from snaploom.skipping.indexes.registry import index_type
from snaploom.skipping.spark.builds.footers import FooterTerm
from snaploom.skipping.spark.builds.statecollector import Scanned, as_kept
from snaploom.skipping.spark.relations.hadoop import FileState, opened_state
from snaploom.storage.parquetfooters import footer_bytes, parse_footer
from snaploom.storage.parquetstatistics import readable_leaf, same_name

_BATCH_ROWS = 65_536
_BATCH_BYTES = 16 << 20
"""Rows that are read at once, and about how many bytes they may have."""
_BUFFER = 1 << 20
"""Bytes that are read of a column at once."""


@dataclass(frozen=True)
class DirectReader:
    """Reads files and builds indexes."""

    indexes: tuple[IndexDefinition, ...]
    """Indexes to build; all of their terms are in `terms`."""
    terms: Mapping[str, FooterTerm]
    """Columns by key of term."""
    is_case_sensitive: bool
    """Whether Spark distinguishes names by case."""

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
            is_hashed = index_type(definition.type).feed(definition) is Feed.HASHES
            for term in definition.terms:
                if term.key not in terms or (is_hashed and not is_hashable(term.data_type)):
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
            readable_leaf(
                metadata, term.names, term.data_type, is_case_sensitive=self.is_case_sensitive
            )
            for term in self.terms.values()
        ]
        columns = [metadata.schema.column(leaf).path for leaf in leaves if leaf is not None]
        if len(columns) != len(leaves) or _are_ambiguous(metadata, columns):
            return None
        collected = _Collected(self.indexes)
        for batch in source.iter_batches(
            _batch_rows(metadata, columns), columns=columns, use_threads=False
        ):
            arrays = {key: self._values(batch, term) for key, term in self.terms.items()}
            known = {key: values for key, values in arrays.items() if values is not None}
            if len(known) != len(arrays):
                return None
            collected.add(known, batch.num_rows)
        return collected.finish() if collected.rows == metadata.num_rows else None

    def _values(self, batch: pa.RecordBatch, term: FooterTerm) -> pa.Array | None:
        """Values of a term in the Arrow type in which they are kept; None if in doubt."""
        values: pa.Array = batch.to_struct_array()
        for name in term.names:
            if not pa.types.is_struct(values.type):
                return None
            found = [
                position
                for position in range(values.type.num_fields)
                if same_name(values.type.field(position).name, name, self.is_case_sensitive)
            ]
            if len(found) != 1:
                return None
            # A field of a struct that is NULL is NULL, whatever lies below.
            values = pc.struct_field(values, found)
        if not _holds(values.type, term.data_type):
            return None
        return as_kept(values, arrow_type(term.data_type))


class _Collected:
    def __init__(self, indexes: Sequence[IndexDefinition]) -> None:
        self._indexes = indexes
        self._builders: list[FileBuilder] = [
            index_type(definition.type).builder(definition) for definition in indexes
        ]
        self.rows = 0
        self._nulls: dict[str, int] = {}

    def add(self, values: Mapping[str, pa.Array], rows: int) -> None:
        self.rows += rows
        for key, array in values.items():
            self._nulls[key] = self._nulls.get(key, 0) + array.null_count
        hashes: dict[str, pa.Array] = {}
        for definition, builder in zip(self._indexes, self._builders, strict=True):
            fed = values
            if index_type(definition.type).feed(definition) is Feed.HASHES:
                for term in definition.terms:
                    if term.key not in hashes:
                        hashes[term.key] = xxhash64_of(values[term.key], term.data_type)
                fed = hashes
            builder.add([fed[term.key] for term in definition.terms])

    def finish(self) -> tuple[Scanned, ...]:
        found = []
        for definition, builder in zip(self._indexes, self._builders, strict=True):
            nulls = tuple(self._nulls.get(term.key, 0) for term in definition.terms)
            values = tuple(self.rows - each for each in nulls)
            found.append(Scanned(values, nulls, builder.finish()))
        return tuple(found)


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

"""Functions for Spark's Python workers: batches of rows in, partial states of builders out.

Rows of one file come after each other, so there is one set of builders at a time. When the next
file begins, what was collected is emitted; a file that was split is merged in the driver. This
module knows no Spark, so that workers start quickly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.indexes.base import Feed, FileBuilder
from snaploom.skipping.indexes.registry import index_type

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
        current: _File | None = None
        emitted = _Emitted()
        for batch in batches:
            files = batch.column(FILE).to_numpy(zero_copy_only=False)
            starts = [0, *(np.flatnonzero(files[1:] != files[:-1]) + 1).tolist(), len(files)]
            arrays = self._arrays(batch)
            for start, stop in pairwise(starts):
                if start == stop:
                    continue
                if current is None or current.file != files[start]:
                    if current is not None:
                        emitted.take(current)
                    current = _File(int(files[start]), self.feedings)
                current.add({name: each[start:stop] for name, each in arrays.items()})
            if emitted.is_full:
                yield emitted.batch()
        if current is not None:
            emitted.take(current)
        if emitted.rows:
            yield emitted.batch()

    def _arrays(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        types = {
            name: pa.int64()
            if index_type(feeding.definition.type).feed(feeding.definition) is Feed.HASHES
            else arrow_type(term.data_type)
            for feeding in self.feedings
            for name, term in zip(feeding.columns, feeding.definition.terms, strict=True)
        }
        return {name: as_kept(batch.column(name), kind) for name, kind in types.items()}


def as_kept(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values from Spark or Parquet, in the Arrow type in which a term's values are kept.

    Dates and timestamps become the numbers that they are: days, and microseconds in UTC.
    """
    if values.type == kind:
        return values
    if pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type):
        return values.view(kind)
    return values.cast(kind)


class _File:
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


class _Emitted:
    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self._bytes = 0

    def take(self, file: _File) -> None:
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

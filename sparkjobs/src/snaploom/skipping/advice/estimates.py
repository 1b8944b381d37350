"""Estimates of the files that queries would skip, by the evaluation that skips them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.advice.boundaries import MOST_RANK_BITS, boundaries_of
from snaploom.skipping.advice.curves import MOST_BITS, Curve, position
from snaploom.skipping.advice.workload import Query
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, field_column, nulls_column, values_column
from snaploom.skipping.core.terms import Term
from snaploom.skipping.core.valueorder import Int64s, keys_of
from snaploom.skipping.evaluation import evaluate
from snaploom.skipping.indexes.registry import index_type

Shares = npt.NDArray[np.float64]
"""For each query, the share of the files that it skips."""

MIN_MAX = "MIN_MAX"
ROWS_PER_FILE = 20
"""Rows that a simulated file has at least; with fewer its bounds would be far too narrow."""
MOST_FILES = 256
"""Files that are simulated at most; the share that is skipped hardly changes with more."""


@dataclass(frozen=True)
class Order:
    """An order in which rows could lie."""

    curve: Curve
    """Along which curve."""
    terms: tuple[Term, ...]
    """By which columns."""


def shares(
    queries: Sequence[Query],
    definition: SkippingDefinition,
    indexes: Sequence[IndexDefinition],
    files: FileTable,
) -> Shares:
    """Shares of files that queries skip with some indexes of a definition."""
    used = replace(definition, indexes=tuple(indexes))
    dropped = [evaluate(query.predicate, used, files).dropped for query in queries]
    return np.array(dropped, dtype=np.float64) / max(files.count, 1)


def bytes_of(rows: pa.Table, index: IndexDefinition, files: int) -> int:
    """Uncompressed bytes of an index over a number of files."""
    own = [name for name in rows.column_names if name.startswith(f"{index.index_id}.")]
    size = sum(int(rows.column(name).nbytes) for name in own)
    return round(size * files / max(int(rows.num_rows), 1))


def simulated(
    sample: Mapping[Term, pa.Array], order: Order, files: int
) -> tuple[FileTable, tuple[IndexDefinition, ...]]:
    """Bounds of the `files` files if all rows lay in an order, and their MIN_MAX indexes."""
    rows = len(next(iter(sample.values())))
    files = max(1, min(files, MOST_FILES, rows // ROWS_PER_FILE))
    placed = pa.array(_placed(sample, order))
    bounds = [rows * number // files for number in range(files + 1)]
    columns: dict[str, pa.Array] = {}
    indexes = []
    for number, (term, values) in enumerate(sample.items()):
        index = IndexDefinition(f"i{number}", MIN_MAX, (term,))
        indexes.append(index)
        columns |= _columns(index, values.take(placed), bounds)
    return FileTable.of(pa.table(columns)), tuple(indexes)


def _columns(
    index: IndexDefinition, values: pa.Array, bounds: Sequence[int]
) -> dict[str, pa.Array]:
    kind = index_type(index.type)
    pieces = [values[start:stop] for start, stop in pairwise(bounds)]
    found = []
    for piece in pieces:
        builder = kind.builder(index)
        builder.add([piece])
        found.append(builder.finish())
    nulls = [piece.null_count for piece in pieces]
    counts = [len(piece) - piece.null_count for piece in pieces]
    return {
        values_column(index.index_id): pa.array(counts, pa.int64()),
        nulls_column(index.index_id): pa.array(nulls, pa.int64()),
        **{
            field_column(index.index_id, name): pa.array([row[name] for row in found], data_type)
            for name, data_type in kind.fields(index).items()
        },
    }


def _placed(sample: Mapping[Term, pa.Array], order: Order) -> Int64s:
    if order.curve is Curve.LINEAR:
        keys = [_dense_ranks(sample[term], term) for term in reversed(order.terms)]
        return np.lexsort(keys).astype(np.int64)
    bits = min(MOST_RANK_BITS, MOST_BITS // len(order.terms))
    ranks = [
        boundaries_of(sample[term], term.data_type, bits).ranks(sample[term])
        for term in order.terms
    ]
    return np.argsort(position(order.curve, ranks, bits), kind="stable").astype(np.int64)


def _dense_ranks(values: pa.Array, term: Term) -> Int64s:
    keys = pa.array(keys_of(values, term.data_type))
    dense = pc.rank(keys, sort_keys="ascending", tiebreaker="dense")
    found: Int64s = dense.to_numpy().astype(np.int64)
    found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found

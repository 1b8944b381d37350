"""Advice: indexes and orders of rows that would let queries skip more files."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core import predicates, valueorder
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, Term, Value
from snaploom.skipping.core.filetable import FileTable, field_column, nulls_column, values_column
from snaploom.skipping.indexes.base import evaluate, index_type

# Queries for which advice is given: those of a log, or some that are drawn from the data.

POINTS = 10
"""Point look-ups that are drawn for a column."""
RANGES = 10
"""Ranges that are drawn for a column."""
RANGE_SHARE = 0.01
"""Share of the rows that such a range holds."""


@dataclass(frozen=True)
class Query:
    """The condition of one query on the rows of the target."""

    text: str
    predicate: predicates.Predicate

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset(
            leaf.term for leaf in leaves(self.predicate) if isinstance(leaf, predicates.Leaf)
        )

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why parts of it are not understood."""
        opaque = [leaf for leaf in leaves(self.predicate) if isinstance(leaf, predicates.Unknown)]
        return tuple(dict.fromkeys(f"{leaf.text}: {leaf.reason}" for leaf in opaque))


@dataclass(frozen=True)
class Log:
    """Queries of a log that concern a target."""

    queries: tuple[Query, ...] = ()
    """Conditions of queries on it; one for each time that a query reads it."""
    doubts: tuple[str, ...] = ()
    """Lines that are left out, and why."""


def leaves(predicate: predicates.Predicate) -> Iterator[predicates.Predicate]:
    """Parts that concern one term, are constant, or are not understood."""
    match predicate:
        case predicates.And(parts) | predicates.Or(parts):
            for part in parts:
                yield from leaves(part)
        case predicates.Not(part):
            yield from leaves(part)
        case leaf:
            yield leaf


def drawn_queries(sample: Mapping[Term, pa.Array], seed: int) -> tuple[Query, ...]:
    """Point look-ups and short ranges with values of the data, repeatable for one seed."""
    queries = []
    for term, values in sample.items():
        random = np.random.default_rng([seed, zlib.crc32(term.key.encode())])
        known = values.drop_null()
        if not len(known):
            continue
        queries += [
            _query(predicates.Comparison(term, predicates.Operator.EQ, value))
            for value in known.take(random.integers(0, len(known), POINTS)).to_pylist()
        ]
        if term.data_type != "boolean":
            queries += [
                _query(
                    predicates.And(
                        (
                            predicates.Comparison(term, predicates.Operator.GE, low),
                            predicates.Comparison(term, predicates.Operator.LE, high),
                        )
                    )
                )
                for low, high in _ranges(term, known, random)
            ]
    return tuple(queries)


def _query(predicate: predicates.Predicate) -> Query:
    return Query(predicates.predicate_text(predicate), predicate)


def _ranges(
    term: Term, values: pa.Array, random: np.random.Generator
) -> Iterator[tuple[Value, Value]]:
    keys = valueorder.keys_of(values, term.data_type)
    order = np.argsort(
        keys if isinstance(keys, np.ndarray) else np.array(keys.to_pylist(), dtype=object),
        kind="stable",
    )
    length = int(len(values) * RANGE_SHARE)
    for start in random.integers(0, len(values) - length, RANGES).tolist():
        low, high = values.take(order[[start, start + length]]).to_pylist()
        yield low, high


# Estimates of the files that queries would skip, by the evaluation that skips them.

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

    curve: valueorder.Curve
    terms: tuple[Term, ...]


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


def _placed(sample: Mapping[Term, pa.Array], order: Order) -> valueorder.Int64s:
    if order.curve is valueorder.Curve.LINEAR:
        keys = [_dense_ranks(sample[term], term) for term in reversed(order.terms)]
        return np.lexsort(keys).astype(np.int64)
    bits = min(valueorder.MOST_RANK_BITS, valueorder.MOST_BITS // len(order.terms))
    ranks = [
        valueorder.boundaries_of(sample[term], term.data_type, bits).ranks(sample[term])
        for term in order.terms
    ]
    return np.argsort(valueorder.position(order.curve, ranks, bits), kind="stable").astype(np.int64)


def _dense_ranks(values: pa.Array, term: Term) -> valueorder.Int64s:
    keys = pa.array(valueorder.keys_of(values, term.data_type))
    dense = pc.rank(keys, sort_keys="ascending", tiebreaker="dense")
    found: valueorder.Int64s = dense.to_numpy().astype(np.int64)
    found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


# Advice: the indexes and the order of rows that let queries skip most files, with reasons.

WORTH_AN_INDEX = 0.05
"""Share of the files that an index must skip on top of what others skip, on average, of queries
that speak of its column."""
WORTH_A_SORT = 0.1
"""Share of the files that an order must skip on top, over all queries: a rewrite is expensive."""
AS_GOOD = 0.02
"""Difference of shares that decides nothing: then the simpler one is taken."""
_SORTED_BY = 4
"""Columns of which orders by several are made."""


@dataclass(frozen=True)
class Observed:
    """Facts about a target."""

    definition: SkippingDefinition
    """Its candidates: every index that might be kept."""
    rows: pa.Table
    """Rows about some of the files, with all candidates, as `build` gives them."""
    files: int
    sample: Mapping[Term, pa.Array]
    """Random rows by term, aligned, in the Arrow types in which values are kept."""


@dataclass(frozen=True)
class IndexEstimate:
    """One candidate."""

    index: IndexDefinition
    share: float
    """Share of the files that only it skips, on average, of queries with its column."""
    bytes: int
    """Its size for all files, before it is compressed."""
    is_advised: bool
    """Whether it is worth its keep."""


@dataclass(frozen=True)
class ColumnAdvice:
    """Advice about one column or expression."""

    term: Term
    queries: int
    """Queries that speak of it."""
    estimates: tuple[IndexEstimate, ...]
    sorted_share: float
    """Share that MIN_MAX would skip if rows were sorted only by this column."""
    why: str
    """Reason why no index is advised; empty if one is."""


@dataclass(frozen=True)
class OrderEstimate:
    """One order of the rows, with MIN_MAX on every column."""

    order: Order
    share: float
    """Share of the files that is skipped, on average over all queries."""


@dataclass(frozen=True)
class Advice:
    """Recommended indexes and order."""

    columns: tuple[ColumnAdvice, ...]
    """For each column that queries speak of."""
    indexes: tuple[IndexDefinition, ...]
    """Those that are advised for the files as they are."""
    share: float
    """Share of the files that they skip together, on average over all queries."""
    orders: tuple[OrderEstimate, ...]
    """Orders by the share of files that they would skip, the best first."""
    order: Order | None
    """The one that is advised, if any is worth a rewrite."""
    indexes_after_sorting: tuple[IndexDefinition, ...]
    """Those that are advised once rows lie in that order; else `indexes`."""


def advise(observed: Observed, queries: Sequence[Query]) -> Advice:
    """Estimate every candidate and some orders for some queries."""
    files = FileTable.of(observed.rows)
    columns: list[ColumnAdvice] = []
    advised: list[IndexDefinition] = []
    for term in observed.sample:
        own = [query for query in queries if term in query.terms]
        found = _column(observed, files, term, own, advised)
        columns.append(found)
        advised += [each.index for each in found.estimates if each.is_advised]
    share = _mean(shares(queries, observed.definition, advised, files))
    orders = _orders(observed, queries, columns)
    best = _best(orders)
    is_worth = best is not None and best.share >= share + WORTH_A_SORT
    order = best.order if best is not None and is_worth else None
    return Advice(
        columns=tuple(columns),
        indexes=tuple(advised),
        share=share,
        orders=orders,
        order=order,
        indexes_after_sorting=_with_bounds(observed, advised, order),
    )


def _column(
    observed: Observed,
    files: FileTable,
    term: Term,
    queries: Sequence[Query],
    others: Sequence[IndexDefinition],
) -> ColumnAdvice:
    """Choose indexes of a column one by one, each time the one that adds most."""
    candidates = [index for index in observed.definition.indexes if index.term == term]
    own_share = {
        index.index_id: _mean(shares(queries, observed.definition, [index], files))
        for index in candidates
    }
    sizes = {index.index_id: bytes_of(observed.rows, index, observed.files) for index in candidates}
    taken: list[IndexDefinition] = []
    reached = _mean(shares(queries, observed.definition, others, files))
    while True:
        left = [index for index in candidates if index not in taken]
        gains = {
            index.index_id: _mean(
                shares(queries, observed.definition, [*others, *taken, index], files)
            )
            - reached
            for index in left
        }
        worth = [index for index in left if gains[index.index_id] >= WORTH_AN_INDEX]
        if not worth:
            break
        most = max(gains.values())
        good = [index for index in worth if gains[index.index_id] >= most - AS_GOOD]
        chosen = min(good, key=lambda index: sizes[index.index_id])
        taken.append(chosen)
        reached += gains[chosen.index_id]
    order = Order(valueorder.Curve.LINEAR, (term,))
    sorted_share = _mean(_after(observed, queries, order)) if queries else 0.0
    return ColumnAdvice(
        term=term,
        queries=len(queries),
        estimates=tuple(
            IndexEstimate(index, own_share[index.index_id], sizes[index.index_id], index in taken)
            for index in candidates
        ),
        sorted_share=sorted_share,
        why=""
        if taken
        else _why(observed, term, queries, max(own_share.values(), default=0.0), sorted_share),
    )


def _why(
    observed: Observed, term: Term, queries: Sequence[Query], own_share: float, sorted_share: float
) -> str:
    values = observed.sample[term].drop_null()
    if not len(values):
        return "it is NULL in every row that was seen"
    if not queries:
        return "no query speaks of it"
    if observed.files < 2:
        return "there is only one file, which every query must read"
    distinct = len(values.unique())
    if distinct == 1:
        return "it has the same value everywhere"
    if own_share >= WORTH_AN_INDEX:
        return "the indexes of other columns skip the same files"
    if sorted_share >= WORTH_AN_INDEX:
        return "every file holds values from its whole range; sorting by it would help"
    if distinct < observed.files:
        return f"its {distinct} values are so frequent that most files hold each of them"
    return "what the queries demand of it may be met in every file"


def _orders(
    observed: Observed, queries: Sequence[Query], columns: Sequence[ColumnAdvice]
) -> tuple[OrderEstimate, ...]:
    partitions = {name for name, _ in observed.definition.partition_columns}
    useful = sorted(
        (
            column
            for column in columns
            if column.term.names is not None
            and column.term.names[0] not in partitions
            and column.sorted_share >= WORTH_AN_INDEX
        ),
        key=lambda column: (-column.queries * column.sorted_share, column.term.key),
    )
    terms = [column.term for column in useful[:_SORTED_BY]]
    found = [
        OrderEstimate(order, _mean(_after(observed, queries, order))) for order in _possible(terms)
    ]
    return tuple(sorted(found, key=lambda each: (-each.share, _effort(each.order))))


def _possible(terms: Sequence[Term]) -> Iterator[Order]:
    for count in range(1, len(terms) + 1):
        for chosen in combinations(terms, count):
            curves = [valueorder.Curve.LINEAR] if count == 1 else list(valueorder.Curve)
            yield from (Order(curve, chosen) for curve in curves)


def _best(orders: Sequence[OrderEstimate]) -> OrderEstimate | None:
    if not orders:
        return None
    good = [each for each in orders if each.share >= orders[0].share - AS_GOOD]
    return min(good, key=lambda each: (*_effort(each.order), -each.share))


def _effort(order: Order) -> tuple[int, int]:
    return len(order.terms), list(valueorder.Curve).index(order.curve)


def _after(observed: Observed, queries: Sequence[Query], order: Order) -> Shares:
    files, indexes = simulated(observed.sample, order, observed.files)
    return shares(queries, observed.definition, indexes, files)


def _with_bounds(
    observed: Observed, advised: Sequence[IndexDefinition], order: Order | None
) -> tuple[IndexDefinition, ...]:
    more = [
        index
        for index in observed.definition.indexes
        if order is not None and index.type == MIN_MAX and index.term in order.terms
    ]
    return tuple(dict.fromkeys((*advised, *more)))


def _mean(found: Shares) -> float:
    return float(found.mean()) if len(found) else 0.0

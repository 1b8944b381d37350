"""Advice: the indexes and the order of rows that let queries skip most files, with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from snaploom.skipping.advice.curves import Curve
from snaploom.skipping.advice.estimates import (
    MIN_MAX,
    Order,
    Shares,
    bytes_of,
    shares,
    simulated,
)
from snaploom.skipping.advice.workload import Query
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.core.terms import Term

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
    """Files that there are."""
    sample: Mapping[Term, pa.Array]
    """Random rows by term, aligned, in the Arrow types in which values are kept."""


@dataclass(frozen=True)
class IndexEstimate:
    """One candidate."""

    index: IndexDefinition
    """Which."""
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
    """Which."""
    queries: int
    """Queries that speak of it."""
    estimates: tuple[IndexEstimate, ...]
    """Its candidates."""
    sorted_share: float
    """Share that MIN_MAX would skip if rows were sorted only by this column."""
    why: str
    """Why no index is advised; empty where one is."""


@dataclass(frozen=True)
class OrderEstimate:
    """One order of the rows, with MIN_MAX on every column."""

    order: Order
    """Which."""
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
    order = Order(Curve.LINEAR, (term,))
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
            curves = [Curve.LINEAR] if count == 1 else list(Curve)
            yield from (Order(curve, chosen) for curve in curves)


def _best(orders: Sequence[OrderEstimate]) -> OrderEstimate | None:
    if not orders:
        return None
    good = [each for each in orders if each.share >= orders[0].share - AS_GOOD]
    return min(good, key=lambda each: (*_effort(each.order), -each.share))


def _effort(order: Order) -> tuple[int, int]:
    return len(order.terms), list(Curve).index(order.curve)


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

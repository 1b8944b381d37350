"""Queries for which advice is given: those of a log, or some that are drawn from the data."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Leaf,
    Not,
    Operator,
    Or,
    Predicate,
    Unknown,
)
from snaploom.skipping.core.terms import Term, Value
from snaploom.skipping.core.text import predicate_text
from snaploom.skipping.core.valueorder import keys_of

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
    """For people."""
    predicate: Predicate
    """In normal form."""

    @property
    def terms(self) -> frozenset[Term]:
        """Terms in its understood parts."""
        return frozenset(leaf.term for leaf in leaves(self.predicate) if isinstance(leaf, Leaf))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why parts of it are not understood."""
        opaque = [leaf for leaf in leaves(self.predicate) if isinstance(leaf, Unknown)]
        return tuple(dict.fromkeys(f"{leaf.text}: {leaf.reason}" for leaf in opaque))


@dataclass(frozen=True)
class Log:
    """Queries of a log that concern a target."""

    queries: tuple[Query, ...] = ()
    """Conditions of queries on it; one for each time that a query reads it."""
    doubts: tuple[str, ...] = ()
    """Lines that are left out, and why."""


def leaves(predicate: Predicate) -> Iterator[Predicate]:
    """Parts that concern one term, are constant, or are not understood."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
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
            _query(Comparison(term, Operator.EQ, value))
            for value in known.take(random.integers(0, len(known), POINTS)).to_pylist()
        ]
        if term.data_type != "boolean":
            queries += [
                _query(
                    And((Comparison(term, Operator.GE, low), Comparison(term, Operator.LE, high)))
                )
                for low, high in _ranges(term, known, random)
            ]
    return tuple(queries)


def _query(predicate: Predicate) -> Query:
    return Query(predicate_text(predicate), predicate)


def _ranges(
    term: Term, values: pa.Array, random: np.random.Generator
) -> Iterator[tuple[Value, Value]]:
    keys = keys_of(values, term.data_type)
    order = np.argsort(
        keys if isinstance(keys, np.ndarray) else np.array(keys.to_pylist(), dtype=object),
        kind="stable",
    )
    length = int(len(values) * RANGE_SHARE)
    for start in random.integers(0, len(values) - length, RANGES).tolist():
        low, high = values.take(order[[start, start + length]]).to_pylist()
        yield low, high

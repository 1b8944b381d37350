"""Detects indexes over expressions that no query can use, by trying conditions on Spark.

Spark's optimizer rewrites conditions: of `CAST(i AS BIGINT) = 5` it makes `i = 5`. No query then
asks an index over the cast, and its rows would be kept for nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import Index
from snaploom.skipping.core.predicates import And, Constant, Not, Or, Predicate, Unknown
from snaploom.skipping.core.terms import Term
from snaploom.skipping.core.text import predicate_text
from snaploom.skipping.spark.optimizer.translation.conditions import IndexedConditions
from snaploom.skipping.spark.targets.sparktarget import SparkTarget

_LOG = logging.getLogger("snaploom.skipping")

_LITERALS = {
    "boolean": "",
    "string": "'a'",
    "binary": "X'61'",
    "date": "date'2024-01-01'",
    "timestamp": "timestamp'2024-01-01 00:00:00'",
    "timestamp_ntz": "timestamp_ntz'2024-01-01 00:00:00'",
}
"""Values to compare with, by type; of numbers it is 1."""


def warn_of_unasked(target: SparkTarget, indexes: Iterable[Index]) -> None:
    """Warn of each declared index over an expression that no query can use."""
    for index in indexes:
        if index.expression is not None:
            reason = why_unasked(target, index.expression)
            if reason:
                label = f"{index.type}({index.expression})"
                _LOG.warning("no query can use %s: %s", label, reason)


def why_unasked(target: SparkTarget, expression: str) -> str:
    """Reason why no condition on an expression asks an index over it; empty if one does."""
    try:
        term = target.expression(expression)
        if term.names is not None:
            return ""
        tried = [(text, _demand(target, text, term)) for text in _conditions(expression, term)]
    except IndexNotPossible:
        return ""
    if any(term in _terms(demand) for _, demand in tried):
        return ""
    text, demand = tried[0]
    return f"Spark reads {text} as {predicate_text(demand)}; keep an index about what stands there"


def _demand(target: SparkTarget, condition: str, term: Term) -> Predicate:
    is_condition = term.data_type == "boolean"
    known = IndexedConditions(frozenset({term} if is_condition else ()))
    return target.predicate(condition, known)


def _conditions(expression: str, term: Term) -> Iterator[str]:
    value = _LITERALS.get(term.data_type, f"CAST(1 AS {term.data_type})")
    if not value:
        yield f"({expression})"
        yield f"NOT ({expression})"
        return
    yield f"({expression}) = {value}"
    yield f"({expression}) > {value}"
    if term.data_type == "string":
        yield f"({expression}) LIKE 'a%'"


def _terms(predicate: Predicate) -> Iterator[Term]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _terms(part)
        case Not(part):
            yield from _terms(part)
        case Constant() | Unknown():
            return
        case leaf:
            yield leaf.term

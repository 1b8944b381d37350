"""What each part of a condition did: for explanations and for Spark's EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from snaploom.skipping.core.normalform import conjuncts
from snaploom.skipping.core.predicates import And, Constant, Not, Or, Predicate, Unknown
from snaploom.skipping.evaluation import Evaluation, evaluate
from snaploom.skipping.spark.outcomes import ClauseOutcome
from snaploom.skipping.spark.partitions import Known
from snaploom.skipping.spark.subjects import hint_of


def labels_of(evaluation: Evaluation) -> tuple[str, ...]:
    """Indexes that proved something, or else those that were asked."""
    clauses = [clause for clause in evaluation.clauses if clause.dropped] or evaluation.clauses
    return tuple(dict.fromkeys(label for clause in clauses for label in clause.served_by))


def clauses_of(predicate: Predicate, known: Known) -> tuple[ClauseOutcome, ...]:
    """Part by part, what only it would drop; evaluates each anew."""
    outcomes = []
    for part in conjuncts(predicate):
        evaluation = evaluate(part, known.definition, known.files)
        keep = known.keep(evaluation)
        dropped = int(len(keep) - np.count_nonzero(keep))
        (report,) = evaluation.clauses
        hints = () if report.served_by else tuple(dict.fromkeys(_hints(part)))
        outcomes.append(ClauseOutcome(report.text, report, dropped, hints))
    return tuple(outcomes)


def _hints(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _hints(part)
        case Constant() | Not() | Unknown():
            return
        case leaf:
            yield hint_of(leaf.term)

"""Outcomes of one request and of each part of its condition, for statistics and people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snaploom.skipping.core.normalform import conjuncts
from snaploom.skipping.core.predicates import And, Constant, Not, Or, Predicate, Unknown
from snaploom.skipping.evaluation import ClauseReport, Evaluation, evaluate
from snaploom.skipping.spark.optimizer.partitions import Known
from snaploom.skipping.spark.optimizer.translation.subjects import hint_of


@dataclass(frozen=True)
class ClauseOutcome:
    """Effect of one part of the condition on the files of this query."""

    text: str
    """The part, as people write it."""
    report: ClauseReport
    """Which indexes served it, and why others did not."""
    dropped: int
    """Files of the listing that only it would drop."""
    hints: tuple[str, ...] = ()
    """A change that would let an index serve it."""


@dataclass(frozen=True)
class IndexOutcome:
    """Outcome of one skipping index."""

    uri: str
    """Where it is kept."""
    target: str
    """Target of the index."""
    labels: tuple[str, ...] = ()
    """Its indexes: `MIN_MAX(price)`."""
    unused: tuple[str, ...] = ()
    """Why it, or a part of it, was not used."""
    is_used: bool = False
    stale: int = 0
    """Files that it knows otherwise than they are: read."""
    missing: int = 0
    """Files that it does not know: read."""
    dropped: int = 0
    """Files that it proves are not needed."""
    dropped_bytes: int = 0
    """Their size."""
    seconds: float = 0.0
    """Seconds that asking it took."""
    clauses: tuple[ClauseOutcome, ...] = ()
    """Part by part; only when explaining."""


@dataclass(frozen=True)
class RelationOutcome:
    """Decision about one relation of files."""

    name: str
    """The table, or where the files are."""
    mode: str
    """`estimate` while the plan is optimised, `list` when it is run."""
    files: int = 0
    """Files that would be read without skipping."""
    bytes: int = 0
    """Their size."""
    kept_files: int = 0
    kept_bytes: int = 0
    seconds: float = 0.0
    """Seconds that the decision took."""
    condition: str = ""
    """Condition on each row; only when explaining."""
    indexes: tuple[IndexOutcome, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why no index was asked."""
    is_evaluated_only: bool = False
    """Whether every file was read nevertheless."""

    @property
    def dropped_files(self) -> int:
        """Files that are not needed."""
        return self.files - self.kept_files

    @property
    def dropped_bytes(self) -> int:
        """Their size."""
        return self.bytes - self.kept_bytes


def labels_of(evaluation: Evaluation) -> tuple[str, ...]:
    """Indexes that proved something, or else those that were asked."""
    clauses = [clause for clause in evaluation.clauses if clause.dropped] or evaluation.clauses
    return tuple(dict.fromkeys(label for clause in clauses for label in clause.served_by))


def clauses_of(predicate: Predicate, known: Known) -> tuple[ClauseOutcome, ...]:
    """Separate effect of each part of a condition; evaluates each anew."""
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

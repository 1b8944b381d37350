"""Evaluation of a condition against all known facts about files.

A file is dropped only on proof. A condition that no index serves may be TRUE for any row, and has
the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snaploom.errors import SkippingError
from snaploom.skipping.core import predicates
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, Mask, nulls_column, values_column
from snaploom.skipping.core.terms import Term
from snaploom.skipping.indexes.base import index_type

_LEAVES = (
    predicates.Comparison,
    predicates.In,
    predicates.Residue,
    predicates.StartsWith,
    predicates.Contains,
    predicates.EndsWith,
    predicates.IsNull,
    predicates.IsNotNull,
)


@dataclass(frozen=True)
class ClauseReport:
    """Result for one part of a condition."""

    text: str
    """The part, as people write it."""
    served_by: tuple[str, ...]
    """Labels of the indexes that answered it, in order of declaration."""
    dropped: int
    """Rows of the table that only it would drop."""
    unserved: tuple[str, ...]
    """Reasons why indexes, or none, did not answer; empty where one did and none failed."""
    parts: tuple[ClauseReport, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Files that a query needs, with reasons."""

    keep: Mask
    """For each row of the table."""
    clauses: tuple[ClauseReport, ...]
    """One for each part that the condition demands all at once."""

    @property
    def dropped(self) -> int:
        """Number of rows whose files are not needed."""
        return int(len(self.keep) - np.count_nonzero(self.keep))


def evaluate(
    predicate: predicates.Predicate, definition: SkippingDefinition, files: FileTable
) -> Evaluation:
    """Decide for each row of the table whether its file may hold a row that the condition keeps."""
    evaluator = _Evaluator(definition, files)
    keep = np.ones(files.count, dtype=np.bool_)
    clauses = []
    for part in predicates.conjuncts(predicates.normal_form(predicate)):
        needed, report = evaluator.clause(part)
        keep &= needed
        clauses.append(report)
    return Evaluation(keep, tuple(clauses))


@dataclass(frozen=True)
class _Evaluator:
    definition: SkippingDefinition
    files: FileTable

    def clause(self, predicate: predicates.Predicate) -> tuple[Mask, ClauseReport]:
        match predicate:
            case predicates.And(parts) | predicates.Or(parts):
                return self._joined(predicate, parts)
            case predicates.Constant(is_true):
                return self._reported(predicate, np.full(self.files.count, is_true))
            case predicates.Unknown(_, reason):
                why = reason or "the condition is not understood"
                return self._reported(predicate, self._all(), unserved=(why,))
            case leaf if isinstance(leaf, _LEAVES):
                return self._leaf(leaf)
            case _:
                raise TypeError(f"not in normal form: {predicates.predicate_text(predicate)}")

    def _joined(
        self, predicate: predicates.Predicate, parts: Sequence[predicates.Predicate]
    ) -> tuple[Mask, ClauseReport]:
        is_and = isinstance(predicate, predicates.And)
        keep, reports = np.full(self.files.count, is_and), []
        # One mask at a time: conditions may have thousands of parts, and tables a million rows.
        for part in parts:
            needed, report = self.clause(part)
            keep = keep & needed if is_and else keep | needed
            reports.append(report)
        served = dict.fromkeys(label for report in reports for label in report.served_by)
        unserved = dict.fromkeys(reason for report in reports for reason in report.unserved)
        return self._reported(predicate, keep, tuple(served), tuple(unserved), tuple(reports))

    def _leaf(self, leaf: predicates.Leaf) -> tuple[Mask, ClauseReport]:
        candidates = [index for index in self.definition.indexes if leaf.term in index.terms]
        usable = [index for index in candidates if index.enabled and self.definition.enabled]
        keep, served = self._all(), []
        unserved = [f"{index.label} is disabled" for index in candidates if index not in usable]
        for index in usable:
            answer = self._answer(index, leaf)
            if isinstance(answer, str):
                unserved.append(f"{index.label}: {answer}")
            else:
                keep &= answer
                served.append(index.label)
        if not candidates:
            unserved.append(_no_index(leaf.term, self.definition.indexes))
        return self._reported(leaf, keep, tuple(served), tuple(unserved))

    def _answer(self, index: IndexDefinition, leaf: predicates.Leaf) -> Mask | str:
        try:
            return self._needed(index, leaf)
        except KeyError as absent:
            return f"it is not built yet: no column {absent.args[0]}"
        except SkippingError as refused:
            return refused.message
        except Exception as failure:  # noqa: BLE001
            # Types come from anywhere; a query of a user never fails by one (rule S14).
            return f"it failed with {type(failure).__name__}: {failure}"

    def _needed(self, index: IndexDefinition, leaf: predicates.Leaf) -> Mask | str:
        position = index.terms.index(leaf.term)
        if isinstance(leaf, predicates.IsNull):
            return self._has_rows(nulls_column(index.index_id, position))
        some_value = self._has_rows(values_column(index.index_id, position))
        if isinstance(leaf, predicates.IsNotNull):
            return some_value
        kind = index_type(index.type)
        answer = kind.may_match(index, self.files, leaf)
        if answer is None:
            return kind.unserved(index, leaf)
        if answer.shape != some_value.shape or answer.dtype != np.bool_:
            return "it did not answer for every file"
        known = self._known(values_column(index.index_id, position))
        return some_value & (answer | ~known)

    def _has_rows(self, column: str) -> Mask:
        def find() -> Mask:
            counts = self.files.column(column)
            known: Mask = counts.fill_null(1).to_numpy(zero_copy_only=False) != 0
            return known

        return self.files.derived(f"{column} is not nought", find)

    def _known(self, column: str) -> Mask:
        def find() -> Mask:
            known: Mask = self.files.column(column).is_valid().to_numpy(zero_copy_only=False)
            return known

        return self.files.derived(f"{column} is known", find)

    def _all(self) -> Mask:
        return np.ones(self.files.count, dtype=np.bool_)

    def _reported(
        self,
        predicate: predicates.Predicate,
        keep: Mask,
        served_by: tuple[str, ...] = (),
        unserved: tuple[str, ...] = (),
        parts: tuple[ClauseReport, ...] = (),
    ) -> tuple[Mask, ClauseReport]:
        dropped = int(len(keep) - np.count_nonzero(keep))
        text = predicates.predicate_text(predicate)
        return keep, ClauseReport(text, served_by, dropped, unserved, parts)


def _no_index(term: Term, indexes: Sequence[IndexDefinition]) -> str:
    others = {
        other.data_type for index in indexes for other in index.terms if other.key == term.key
    }
    if others:
        types = ", ".join(sorted(others))
        return f"{term.label} is read as {term.data_type} and indexed as {types}"
    return f"no index on {term.label}"

"""Conditions as a whole: lookup of indexes over boolean expressions.

A condition is taken apart for indexes over columns. An index over the condition itself knows more:
of `a > b` no index over columns knows anything. So the whole is looked for before its parts are.
One condition has many forms (`a > b`, `b < a`, NOT `a <= b`, parts of AND in any order), of which
Spark's optimizer leaves several; they are brought into one here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.predicates import Comparison, Operator, Predicate
from snaploom.skipping.core.terms import Term
from snaploom.skipping.spark.optimizer.translation.subjects import term_of
from snaploom.skipping.spark.relations.columns import Columns
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Expression,
    Literal,
    parse,
    serialised,
)

_CHAINS = ("And", "Or")
_TURNED = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
"""Comparisons when the sides change places."""
_OPPOSITES = {
    "LessThan": "GreaterThanOrEqual",
    "LessThanOrEqual": "GreaterThan",
    "GreaterThan": "LessThanOrEqual",
    "GreaterThanOrEqual": "LessThan",
}
"""Under NOT: exact, since Spark's order is total and both are NULL for the same rows."""


@dataclass(frozen=True)
class IndexedConditions:
    """Conditions with an index."""

    terms: frozenset[Term] = frozenset()

    @cached_property
    def _conjunctions(self) -> tuple[tuple[Term, frozenset[str]], ...]:
        found = []
        for term in self.terms:
            (_, expression) = json.loads(term.key)
            whole = parse(expression)
            if isinstance(whole, Call) and whole.name == "And":
                found.append((term, frozenset(map(_text, whole.children))))
        return tuple(found)

    def of_whole(self, whole: Expression, columns: Columns, *, negated: bool) -> list[Predicate]:
        """Conditions implied by a TRUE condition, or a FALSE one if negated; empty if unknown."""
        found: list[Predicate] = []
        for form, is_opposite in ((whole, False), (_opposite(whole), True)):
            term = condition_term(form, columns)
            if term in self.terms and isinstance(term, Term):
                found.append(Comparison(term, Operator.EQ, negated is is_opposite))
        return found

    def of_parts(self, parts: Sequence[Expression], columns: Columns) -> list[Predicate]:
        """Conditions implied by several conditions that are TRUE at once."""
        if not self._conjunctions:
            return []
        known = {_text(_spelt(part, columns)) for part in _members("And", parts)}
        return [
            Comparison(term, Operator.EQ, True)
            for term, members in self._conjunctions
            if members <= known
        ]


def indexed_conditions(definitions: Iterable[SkippingDefinition]) -> IndexedConditions:
    """Conditions indexed by some definitions."""
    return IndexedConditions(
        frozenset(
            term
            for definition in definitions
            for index in definition.indexes
            for term in index.terms
            if term.data_type == "boolean" and term.names is None
        )
    )


def condition_term(condition: Expression, columns: Columns) -> Term | str:
    """Term of a condition, the same for all of its forms; or the reason why there is none."""
    return term_of(_one_form(condition), columns, "boolean")


def _spelt(condition: Expression, columns: Columns) -> Expression:
    """Form of a condition in a term's key; unchanged if it is no term."""
    term = condition_term(condition, columns)
    if isinstance(term, str) or term.names is not None:
        return condition
    (_, expression) = json.loads(term.key)
    return parse(expression)


def _opposite(condition: Expression) -> Expression:
    match condition:
        case Call("Not", _, (child,)):
            return child
        case Call(name, arguments, children) if name in _OPPOSITES:
            return Call(_OPPOSITES[name], arguments, children)
    return Call("Not", {}, (condition,))


def _one_form(condition: Expression) -> Expression:
    match condition:
        case Call(name, arguments, children) if name in _CHAINS:
            members = sorted(map(_one_form, _members(name, children)), key=_text)
            return Call(name, arguments, tuple(members))
        case Call("Not", arguments, (child,)):
            return Call("Not", arguments, (_one_form(child),))
        case Call(name, arguments, (left, right)) if name in _TURNED:
            if isinstance(left, Literal) or (
                not isinstance(right, Literal) and _text(right) < _text(left)
            ):
                return Call(_TURNED[name], arguments, (right, left))
    return condition


def _members(name: str, parts: Sequence[Expression]) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, Call) and part.name == name:
            yield from _members(name, part.children)
        else:
            yield part


def _text(expression: Expression) -> str:
    return json.dumps(serialised(expression), ensure_ascii=False, separators=(",", ":"))

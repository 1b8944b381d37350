"""Expressions with the value of one of several parts: CASE, IF, coalesce."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from snaploom.skipping.core.predicates import And, Constant, Or, Predicate
from snaploom.skipping.spark.relations.expressions import Call, Expression, Literal

Holds = Callable[[Expression, bool], Predicate]
"""Predicate implied by a TRUE condition, or a FALSE one if negated."""
IsNull = Callable[[Expression, str], Predicate]
"""Predicate implied where an expression of a Spark type is NULL."""

_BRANCHING = ("If", "CaseWhen", "Coalesce", "Greatest", "Least")
_MOST_EXCLUDED = 20
"""Of a longer CASE, what earlier conditions leave for later parts is not followed: it would grow
with the square of the length."""

_ANY_ROW = Constant(is_true=True)


@dataclass(frozen=True)
class Branch:
    """One part that may give the value of an expression."""

    value: Expression
    given: Predicate
    """Predicate of the rows in which the part gives the value."""


def branches_of(
    subject: Expression, data_type: str, holds: Holds, is_null: IsNull
) -> tuple[Branch, ...]:
    """Parts of which one gives an expression's value; empty for expressions of other kinds."""
    match subject:
        case Call("If", _, (condition, first, second)):
            return tuple(_chosen([(condition, first)], second, holds, is_null))
        case Call("CaseWhen", _, children):
            conditions = children[: len(children) - len(children) % 2 : 2]
            *values, otherwise = values_of(subject)
            chosen = list(zip(conditions, values, strict=True))
            return tuple(_chosen(chosen, otherwise, holds, is_null))
        case Call("Coalesce", _, children):
            return tuple(_first_present(children, data_type, is_null))
    return ()


def values_of(subject: Call) -> tuple[Expression, ...]:
    """Parts of an IF or CASE of which one gives its value."""
    if subject.name == "If":
        return subject.children[1:]
    rest = len(subject.children) % 2
    otherwise = subject.children[-1:] if rest else (Literal(None, "", is_null=True),)
    return (*subject.children[1 : len(subject.children) - rest : 2], *otherwise)


def _chosen(
    pairs: Sequence[tuple[Expression, Expression]],
    otherwise: Expression,
    holds: Holds,
    is_null: IsNull,
) -> Iterator[Branch]:
    before: list[Predicate] = []
    for condition, value in pairs:
        yield Branch(value, And((*before, holds(condition, False))))
        if len(pairs) <= _MOST_EXCLUDED and not has_branches(condition):
            before.append(Or((holds(condition, True), is_null(condition, "boolean"))))
    yield Branch(otherwise, And(tuple(before)))


def has_branches(expression: Expression) -> bool:
    """Whether one of several parts gives a value in it.

    Translated twice at each level, such expressions would take exponential time.
    """
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call):
            if each.name in _BRANCHING:
                return True
            waiting.extend(each.children)
    return False


def _first_present(
    children: Sequence[Expression], data_type: str, is_null: IsNull
) -> Iterator[Branch]:
    before: list[Predicate] = []
    for child in children:
        yield Branch(child, And(tuple(before)) if before else _ANY_ROW)
        if len(children) <= _MOST_EXCLUDED:
            before.append(is_null(child, data_type))

"""Negation normal form: NOT only inside leaves, And and Or flat, constants folded.

What comes out is TRUE for every row for which the condition is TRUE (and, but for what became
`Unknown`, for no other): all that skipping asks. So NOT is pushed down by rules that are exact
under NULL: De Morgan's, and for leaves the opposite operator, which is NULL where the leaf is.
Spark orders floating-point numbers totally (NaN equals itself and is greatest, -0.0 equals 0.0),
hence NOT (a < b) is a >= b for them too.
"""

from __future__ import annotations

from dataclasses import replace

from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Constant,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from snaploom.skipping.core.text import predicate_text

_OPPOSITES = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
}

_TRUE = Constant(True)
_FALSE = Constant(False)


def normal_form(predicate: Predicate) -> Predicate:
    """A condition without `Not`, with flat `And` and `Or` and constants folded.

    Returns:
        A condition that is TRUE wherever the given one is. One that is nested too deeply to be
        taken apart becomes `Unknown`.
    """
    try:
        return _normal(predicate, False)
    except RecursionError:
        return Unknown("a deeply nested condition", "write it with fewer levels of AND, OR and NOT")


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Members of the conjunction that a condition in normal form is."""
    return predicate.parts if isinstance(predicate, And) else (predicate,)


def _normal(predicate: Predicate, negated: bool) -> Predicate:
    match predicate:
        case Not(part):
            return _normal(part, not negated)
        case And() | Or():
            is_and = isinstance(predicate, And) != negated
            return _joined(is_and, _members(is_and, predicate, negated))
        case Constant(is_true):
            # FALSE may stand for NULL, whose negation is not TRUE: TRUE is the safe answer.
            return Constant(is_true != negated)
        case _:
            return _negated_leaf(predicate) if negated else _leaf(predicate)


def _members(is_and: bool, predicate: Predicate, negated: bool) -> list[Predicate]:
    # Long chains nest thousands deep on one side, so they are unrolled, not recursed into.
    members: list[Predicate] = []
    waiting = [(predicate, negated)]
    while waiting:
        part, flipped = waiting.pop()
        while isinstance(part, Not):
            part, flipped = part.part, not flipped
        if isinstance(part, And | Or) and (isinstance(part, And) != flipped) == is_and:
            waiting += [(child, flipped) for child in reversed(part.parts)]
        else:
            members.append(_normal(part, flipped))
    return members


def _joined(is_and: bool, members: list[Predicate]) -> Predicate:
    neutral, absorbing = (_TRUE, _FALSE) if is_and else (_FALSE, _TRUE)
    kind = And if is_and else Or
    parts: dict[Predicate, None] = {}
    for member in members:
        inner = member.parts if isinstance(member, kind) else (member,)
        parts.update(dict.fromkeys(part for part in inner if part != neutral))
    if absorbing in parts:
        return absorbing
    if len(parts) <= 1:
        return next(iter(parts), neutral)
    return kind(tuple(parts))


def _leaf(leaf: Predicate) -> Predicate:
    match leaf:
        case In(term, values, is_negated) if not values:
            # NOT IN () is TRUE even for NULL; IN () never is.
            return Constant(is_negated)
        case In(term, (value,), is_negated):
            return Comparison(term, Operator.NE if is_negated else Operator.EQ, value)
        case StartsWith(term, b"", False) | Contains(term, b"") | EndsWith(term, b""):
            return IsNotNull(term)
        case StartsWith(_, b"", True):
            return _FALSE
        case _:
            return leaf


def _negated_leaf(leaf: Predicate) -> Predicate:
    match leaf:
        case Comparison(term, operator, value):
            return Comparison(term, _OPPOSITES[operator], value)
        case In() | StartsWith():
            return _leaf(replace(leaf, is_negated=not leaf.is_negated))
        case IsNull(term):
            return IsNotNull(term)
        case IsNotNull(term):
            return IsNull(term)
        case Contains(term) | EndsWith(term):
            # No leaf means "does not contain"; that it is TRUE for no NULL is kept.
            reason = "no index proves that every value contains a piece"
            return And((IsNotNull(term), Unknown(f"NOT ({predicate_text(leaf)})", reason)))
        case Unknown(text, reason):
            return Unknown(f"NOT ({text})" if text else "", reason)
        case _:
            return Unknown(f"NOT ({predicate_text(leaf)})")

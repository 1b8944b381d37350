"""Conditions as a whole: ranges, LIKE and NULL of expressions over columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Constant,
    Contains,
    EndsWith,
    IsNotNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from snaploom.skipping.core.terms import Term, Value
from snaploom.skipping.spark.optimizer.translation import preimages
from snaploom.skipping.spark.optimizer.translation.casts import number_of
from snaploom.skipping.spark.optimizer.translation.spans import Span, Spans, compared, demanded
from snaploom.skipping.spark.optimizer.translation.subjects import term_of
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Columns,
    Expression,
    Literal,
    names_of,
    parse,
    serialised,
)

# Translates LIKE to conditions on the text's bytes.

_REPLACEMENT = "\ufffd"
"""Text that LIKE sees for bytes that are not UTF-8: the bytes themselves do not have it."""


def like(term: Term, value: bytes, escape: str, *, negated: bool) -> Predicate:
    """`term LIKE value ESCAPE escape`, exact for plain text and `text%`, else necessary."""
    pattern = value.decode(errors="replace")
    text = f"{term.label} {'NOT ' * negated}LIKE '{pattern}'"
    pieces = _pieces(pattern, escape)
    if pieces is None or _REPLACEMENT in pattern:
        return Unknown(text, "the pattern is not understood")
    texts = [piece.text.encode() for piece in pieces]
    if len(pieces) == 1:
        return Comparison(term, Operator.NE if negated else Operator.EQ, texts[0])
    if len(pieces) == 2 and not texts[1] and not pieces[0].is_counted:
        return StartsWith(term, texts[0], negated)
    if negated:
        return Unknown(text, "NOT LIKE implies nothing that an index could disprove")
    needs: list[Predicate] = [IsNotNull(term)]
    if texts[0]:
        needs.append(StartsWith(term, texts[0]))
    needs.extend(Contains(term, text) for text in dict.fromkeys(texts[1:-1]) if text)
    if texts[-1]:
        needs.append(EndsWith(term, texts[-1]))
    return And(tuple(needs))


@dataclass(frozen=True)
class _Piece:
    text: str
    """Literal text between two wildcards, or before the first, or after the last."""
    is_counted: bool
    """Whether the wildcard after it is `_`, which stands for exactly one character."""


def _pieces(pattern: str, escape: str) -> list[_Piece] | None:
    """Literal texts between wildcards; None where Spark itself would refuse the pattern."""
    pieces: list[_Piece] = []
    text = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following not in ("_", "%", escape):
                return None
            text += following or ""
        elif character in "_%":
            pieces.append(_Piece(text, character == "_"))
            text = ""
        else:
            text += character
    return [*pieces, _Piece(text, False)]


# Conditions on a column that follow from a condition on an expression over it.

MOST_STEPS = 20
"""Expressions that are nested deeper than a person writes them are not followed: each step may
multiply the spans."""
_EVERY_ROW = Constant(is_true=True)


@dataclass(frozen=True)
class Surroundings:
    """Columns of expressions, and the translation of conditions within them."""

    columns: Columns
    """The relation's columns as they are now."""
    holds: preimages.Holds
    is_null: preimages.IsNull


def implied(
    subject: Expression,
    operator: Operator,
    value: Value,
    around: Surroundings,
    data_type: str,
) -> tuple[Predicate, ...]:
    """Conditions of `subject operator value` on the column inside; empty if there is no rule."""
    match subject:
        case Call("Substring", _, (child, Literal(int(start)), _)) if start in (0, 1):
            return _of_beginning(child, operator, value, around.columns)
        case Call("StringTrimRight", _, (child,)):
            return _of_beginning(child, operator, value, around.columns)
    written = preimages.days_of(subject, operator, value, around.columns.type_of)
    if written is not None:
        subject, spans, data_type = written
        found = _within(subject, spans, data_type, around, MOST_STEPS)
    else:
        wanted = compared(operator, value, data_type)
        found = None if wanted is None else _within(subject, wanted, data_type, around, MOST_STEPS)
    return () if found is None else (found,)


def _within(
    subject: Expression, spans: Spans, data_type: str, around: Surroundings, steps: int
) -> Predicate | None:
    for left in range(steps, 0, -1):
        names = names_of(subject)
        if names is not None:
            term = term_of(subject, around.columns, around.columns.type_of(names))
            return None if isinstance(term, str) else demanded(term, spans)
        match subject:
            case Literal():
                if subject.is_null:
                    return Constant(is_true=False)
                if isinstance(subject.value, float) and math.isnan(subject.value):
                    return Constant(spans.has_nan)
                number = number_of(subject)
                return (
                    None
                    if number is None
                    else Constant(any(_holds(span, number) for span in spans.spans))
                )
            case Call("Greatest" | "Least" as name, _, parts):
                return _extreme_within(name, parts, spans, data_type, around, left - 1)
        branches = preimages.branches_of(subject, data_type, around.holds, around.is_null)
        if branches:
            return Or(
                tuple(
                    And((each.given, _needed(each.value, spans, data_type, around, left - 1)))
                    for each in branches
                )
            )
        moved = preimages.step(subject, spans, data_type, around.columns.type_of)
        if moved is None:
            return None
        subject, spans, data_type = moved
    return None


def _needed(
    subject: Expression, spans: Spans, data_type: str, around: Surroundings, steps: int
) -> Predicate:
    return _within(subject, spans, data_type, around, steps) or _EVERY_ROW


def _holds(span: Span, number: Fraction) -> bool:
    is_above = span.low is None or span.low <= number
    return is_above and (span.high is None or number <= span.high)


def _extreme_within(
    name: str,
    parts: Sequence[Expression],
    spans: Spans,
    data_type: str,
    around: Surroundings,
    steps: int,
) -> Predicate:
    """Condition that one part is in the spans and no other non-NULL part is beyond them.

    The second is left open for parts that have parts themselves.
    """
    one = Or(tuple(_needed(part, spans, data_type, around, steps) for part in parts))
    limit = _upto(spans) if name == "Greatest" else _from(spans)
    if limit is None:
        return one
    others = (
        Or((around.is_null(part, data_type), _needed(part, limit, data_type, around, steps)))
        for part in parts
        if not preimages.has_branches(part)
    )
    return And((one, *others))


def _upto(spans: Spans) -> Spans | None:
    highs = [span.high for span in spans.spans]
    if spans.has_nan or not highs or None in highs:
        return None
    return Spans((Span(high=max(high for high in highs if high is not None)),))


def _from(spans: Spans) -> Spans | None:
    lows = [span.low for span in spans.spans]
    if not lows or None in lows:
        return None
    return Spans((Span(low=min(low for low in lows if low is not None)),), has_nan=True)


def _of_beginning(
    child: Expression, operator: Operator, value: Value, columns: Columns
) -> tuple[Predicate, ...]:
    """Condition on a text from one on its beginning of any length."""
    term = term_of(child, columns, "string")
    if operator is not Operator.EQ or not isinstance(value, bytes) or isinstance(term, str):
        return ()
    return (StartsWith(term, value),)


# Conditions as a whole: lookup of indexes over boolean expressions.

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

"""Conditions on a column that follow from a condition on an expression over it.

Each rule gives *necessary* conditions on the column: a row for which one is not TRUE cannot satisfy
the condition. None is exact, so none is ever negated. They matter because people write them:
PySpark makes 5.1 a double, so `price > 5.1` on a decimal column arrives as
`cast(price as double) > 5.1`, which Spark's optimizer does not unwrap (measured on 4.3); nor does
it unwrap `year(ts) = 2024`, `i + 1 < 5` or `date_add(d, 3) > x`.

Rules are turned around from the outside inwards: from the numbers that an expression may be to
those that its one part with a column may be (`preimages`), down to the column. CASE, IF, coalesce,
greatest and least have several parts, of which one gives the value. Where no rule is known, nothing
is implied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from snaploom.skipping.core.predicates import And, Constant, Operator, Or, Predicate, StartsWith
from snaploom.skipping.core.terms import Value
from snaploom.skipping.spark.optimizer.translation.branches import (
    Holds,
    IsNull,
    branches_of,
    has_branches,
)
from snaploom.skipping.spark.optimizer.translation.dateformats import days_of
from snaploom.skipping.spark.optimizer.translation.operands import number_of
from snaploom.skipping.spark.optimizer.translation.preimages import step
from snaploom.skipping.spark.optimizer.translation.spans import Span, Spans, compared, demanded
from snaploom.skipping.spark.optimizer.translation.subjects import term_of
from snaploom.skipping.spark.relations.columns import Columns
from snaploom.skipping.spark.relations.expressions import Call, Expression, Literal, names_of

MOST_STEPS = 20
"""Expressions that are nested deeper than a person writes them are not followed: each step may
multiply the spans."""
_EVERY_ROW = Constant(is_true=True)


@dataclass(frozen=True)
class Surroundings:
    """Columns of expressions, and the translation of conditions within them."""

    columns: Columns
    """The relation's columns as they are now."""
    holds: Holds
    is_null: IsNull


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
    written = days_of(subject, operator, value, around.columns.type_of)
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
    """Condition on the columns of an expression to be one of some numbers; None if unknown."""
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
        branches = branches_of(subject, data_type, around.holds, around.is_null)
        if branches:
            return Or(
                tuple(
                    And((each.given, _needed(each.value, spans, data_type, around, left - 1)))
                    for each in branches
                )
            )
        moved = step(subject, spans, data_type, around.columns.type_of)
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
        if not has_branches(part)
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

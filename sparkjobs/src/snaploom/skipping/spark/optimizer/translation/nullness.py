"""NULL-ness of an expression over columns as conditions on the columns.

Most functions are NULL where an operand is. Some are NULL for nothing else: they fail on what they
cannot do, or go on at the other end of their type. Both kinds are listed; what is in neither list
may be NULL whenever it likes.
"""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.skipping.core.predicates import And, Constant, IsNotNull, IsNull, Or, Predicate
from snaploom.skipping.core.terms import Term
from snaploom.skipping.spark.optimizer.translation.branches import values_of
from snaploom.skipping.spark.optimizer.translation.operands import (
    DECIMAL,
    FLOATING,
    mode_of,
    split,
    type_of,
)
from snaploom.skipping.spark.optimizer.translation.spans import INTEGER_BITS
from snaploom.skipping.spark.optimizer.translation.subjects import term_of
from snaploom.skipping.spark.relations.columns import Columns
from snaploom.skipping.spark.relations.expressions import Call, Expression, Literal, names_of

_OF_DATES = (
    *("Year", "UnixDate", "DateAdd", "DateSub", "DateDiff", "AddMonths"),
    *("LastDay", "DayOfWeek", "WeekDay"),
)
_COMPARISONS = ("EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In")
_NEVER_NULL = ("IsNull", "IsNotNull", "EqualNullSafe", "IsNaN")
_PRESENT = ("Coalesce", "Greatest", "Least")
"""NULL where all parts are."""
_STRICT = frozenset(
    {
        *("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod"),
        *("UnaryMinus", "Abs", "Ceil", "Floor", "Round", "BRound", "Cast", "Not"),
        *_OF_DATES,
        *(name for name in _COMPARISONS if name != "In"),
    }
)
"""NULL wherever an operand is."""
_MODES = ("ANSI", "LEGACY")
"""In which overflow is no NULL, but for decimals as before ANSI."""


def null(subject: Expression, columns: Columns) -> Predicate | None:
    """Condition on the columns in every row where an expression is NULL; None if unknown."""
    match subject:
        case Literal():
            return Constant(subject.is_null)
        case Call(name) if name in _NEVER_NULL:
            return Constant(is_true=False)
        case Call(name, _, children) if name in _PRESENT:
            return And(tuple(part for child in children if (part := null(child, columns))))
        case Call("If" | "CaseWhen"):
            return _any(null(value, columns) for value in values_of(subject))
        case Call(_, _, children) if _is_null_by_operands(subject, columns):
            return _any(null(child, columns) for child in children)
    term = _column(subject, columns)
    return None if term is None else IsNull(term)


def not_null(subject: Expression, columns: Columns) -> Predicate | None:
    """Condition on the columns in every row where an expression is not NULL."""
    match subject:
        case Literal():
            return Constant(not subject.is_null)
        case Call(name, _, children) if name in _PRESENT:
            return _any(not_null(child, columns) for child in children)
        case Call("If" | "CaseWhen"):
            return _any(not_null(value, columns) for value in values_of(subject))
        case Call(name, _, children) if name in _STRICT:
            return And(tuple(part for child in children if (part := not_null(child, columns))))
    term = _column(subject, columns)
    return None if term is None else IsNotNull(term)


def _any(parts: Iterable[Predicate | None]) -> Predicate | None:
    found = list(parts)
    known = tuple(part for part in found if part is not None)
    return Or(known) if len(known) == len(found) else None


def _column(subject: Expression, columns: Columns) -> Term | None:
    names = names_of(subject)
    if names is None:
        return None
    term = term_of(subject, columns, columns.type_of(names))
    return term if isinstance(term, Term) else None


def _is_null_by_operands(call: Call, columns: Columns) -> bool:
    """Whether a call is NULL only if an operand is."""
    numbers = (*INTEGER_BITS, *FLOATING)
    kinds = {
        type_of(child, columns.type_of) for child in call.children if not isinstance(child, Literal)
    }
    match call.name:
        case "And" | "Or" | "Not":
            return True
        case name if name in _COMPARISONS:
            return True
        case "Add" | "Subtract" | "Multiply":
            if mode_of(call) == "ANSI" and _is_decimal(call, columns):
                return True
            return kinds <= set(numbers) and mode_of(call) in _MODES
        case "Divide" | "IntegralDivide" | "Remainder" | "Pmod":
            found = split(call)
            by_number = found is not None and found[1] != 0 and not found[2]
            return by_number and kinds <= set(numbers) and mode_of(call) in _MODES
        case "UnaryMinus" | "Abs" | "Ceil" | "Floor":
            return kinds <= set(numbers) or _is_decimal(call.children[0], columns)
        case "Round" | "BRound":
            return kinds <= set(numbers) and isinstance(call.children[1], Literal)
        case "Cast":
            to = str(call.arguments.get("dataType"))
            if mode_of(call) == "ANSI" and DECIMAL.fullmatch(to):
                return _is_decimal(call.children[0], columns)
            (kind,) = kinds or {""}
            if to in FLOATING:
                return kind in INTEGER_BITS or kind in FLOATING
            return kind in INTEGER_BITS and INTEGER_BITS.get(to, 0) >= INTEGER_BITS[kind]
    return call.name in _OF_DATES and kinds <= {"date", "int"}


def _is_decimal(expression: Expression, columns: Columns) -> bool:
    """Whether an expression is a decimal of known digits, or arithmetic over such ones."""
    if isinstance(expression, Call) and expression.name in ("Add", "Subtract", "Multiply"):
        return all(_is_decimal(child, columns) for child in expression.children)
    return DECIMAL.fullmatch(type_of(expression, columns.type_of)) is not None

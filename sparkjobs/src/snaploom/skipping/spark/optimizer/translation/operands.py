"""Operands, types and overflow modes of expressions, for translation rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from snaploom.skipping.spark.optimizer.translation.spans import INTEGER_BITS, Spans
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    names_of,
)

Step = tuple[Expression, Spans, str]
"""The part with the column, the numbers that it may be, and its Spark type."""
ColumnTypes = Callable[[Sequence[str]], str]
"""Type of a column or field by its names; empty for none."""

Rule = Callable[[Call, Spans, str, ColumnTypes], Step | None]
"""Takes one expression off: the call, the numbers that it may be, its type, types of columns."""

FLOATING = ("float", "double")
DECIMAL = re.compile(r"decimal\((\d+),\s?(-?\d+)\)")
ZERO = Fraction(0)


def type_of(expression: Expression, types: ColumnTypes) -> str:
    """Spark type of an expression if it is certain; else empty."""
    match expression:
        case Column() | Call("GetStructField"):
            names = names_of(expression)
            return "" if names is None else types(names)
        case Literal(_, data_type):
            return data_type
        case Call("Cast", {"dataType": str(data_type)}, _):
            return data_type
        case Call("Add" | "Subtract" | "Multiply" | "Remainder" | "Pmod", _, (left, right)):
            both = {type_of(left, types), type_of(right, types)}
            found = both.pop()
            return found if not both and (found in INTEGER_BITS or found in FLOATING) else ""
        case Call("UnaryMinus" | "Abs", _, (child,)):
            return type_of(child, types)
        case Call("Round" | "BRound", _, (child, _)):
            found = type_of(child, types)
            return found if found in INTEGER_BITS or found in FLOATING else ""
        case Call("Ceil" | "Floor", _, (child,)):
            return "bigint" if type_of(child, types) in FLOATING else ""
        case Call("IntegralDivide" | "UnixSeconds" | "UnixMillis" | "UnixMicros"):
            return "bigint"
        case Call("Year" | "DateDiff" | "UnixDate" | "DayOfWeek" | "WeekDay"):
            return "int"
        case Call("DateAdd" | "DateSub" | "AddMonths" | "DateAddYMInterval" | "TruncDate"):
            return "date"
        case Call("LastDay" | "NextDay"):
            return "date"
        case Call("TruncTimestamp" | "FromUTCTimestamp" | "ToUTCTimestamp"):
            return "timestamp"
        case Call("TimestampAddInterval" | "TimestampAddYMInterval", _, (child, _)):
            return type_of(child, types)
        case Call("If", _, (_, *values)) | Call("Coalesce" | "Greatest" | "Least", _, values):
            return _type_of_all(values, types)
        case Call("CaseWhen", _, children):
            pairs = len(children) - len(children) % 2
            return _type_of_all([*children[1:pairs:2], *children[pairs:]], types)
    return ""


def _type_of_all(values: Sequence[Expression], types: ColumnTypes) -> str:
    found = {type_of(value, types) for value in values}
    return found.pop() if len(found) == 1 else ""


def number_of(expression: Expression) -> Fraction | None:
    """The value of a finite literal."""
    if not isinstance(expression, Literal):
        return None
    match expression.value:
        case bool() | None | bytes():
            return None
        case float() as value:
            return Fraction(value) if math.isfinite(value) else None
        case int() | Decimal() as value:
            return Fraction(value)
    return None


def mode_of(call: Call) -> str:
    """Overflow mode: ANSI (it fails), TRY (NULL) or LEGACY; empty if it is not given."""
    context = call.arguments.get("evalContext")
    mode: object = call.arguments.get("evalMode")
    if isinstance(context, Mapping):
        mode = context.get("evalMode")
    fails = call.arguments.get("failOnError")
    if isinstance(fails, bool):
        mode = "ANSI" if fails else "LEGACY"
    return str(mode) if mode in ("ANSI", "TRY", "LEGACY") else ""


def split(call: Call) -> tuple[Expression, Fraction, bool] | None:
    """The non-literal operand, the literal, and whether the literal stands on the left."""
    if len(call.children) < 2:
        return None
    left, right = call.children[:2]
    for part, other, is_left in ((left, right, False), (right, left, True)):
        number = number_of(other)
        if number is not None and not isinstance(part, Literal):
            return part, number, is_left
    return None

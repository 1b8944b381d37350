"""Rules of `preimages` for casts and rounding, and what they ask of operands."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from snaploom.skipping.spark.optimizer.translation.spans import (
    Period,
    Span,
    Spans,
    clipped,
    limited,
    limits,
    rounded_from,
    scaled,
    shifted,
    unit_of,
    widened,
)
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    names_of,
)
from snaploom.types.schemas import INTEGER_BITS

# Operands, types and overflow modes of expressions, for translation rules.

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


# Rules of `preimages` for rounding and for remainders of division.


def remainder(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Numbers before a remainder, which has the dividend's sign and is less than the divisor."""
    found = split(call)
    unit = unit_of(data_type)
    kind = "" if found is None else type_of(found[0], types)
    if found is None or found[2] or found[1] == 0 or unit is None:
        return None
    if (kind != data_type or kind not in INTEGER_BITS) and not _is_exact_rest(kind, data_type):
        return None
    part, number, _ = found
    divisor, most = abs(number), abs(number) - unit
    if call.name == "Pmod" and number > 0:
        rests = spans.mapped(lambda span: limited(span, ZERO, most))
        return part, rests.mapped(lambda span: _repeated_by_divisor(span, divisor)), kind
    if call.name == "Pmod" and (kind not in INTEGER_BITS or 2 * divisor > limits(kind)[1]):
        # A negative divisor is added to the rest, which may overflow.
        return None
    above = spans.mapped(lambda span: limited(span, ZERO, most))
    below = spans.mapped(lambda span: limited(span, -most, ZERO))
    after = above.mapped(lambda span: replace(_repeated_by_divisor(span, divisor), low=span.low))
    down = (replace(_repeated_by_divisor(span, divisor), high=span.high) for span in below.spans)
    return part, after.joined(down), kind


def _is_exact_rest(kind: str, data_type: str) -> bool:
    before, after = unit_of(kind), unit_of(data_type)
    is_decimal = DECIMAL.fullmatch(kind) is not None and DECIMAL.fullmatch(data_type) is not None
    return is_decimal and before is not None and after is not None and after <= before


def _repeated_by_divisor(span: Span, divisor: Fraction) -> Span:
    """Numbers whose remainders lie in a span with two bounds; a period of them is dropped."""
    low, high = span.low or ZERO, span.high or ZERO
    return Span(period=Period(divisor, low, high - low))


def rounded(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """`ceil`, `floor` and `round`, also to some digits."""
    part = call.children[0]
    kind = type_of(part, types)
    unit = _rounded_to(call)
    is_exact = kind in INTEGER_BITS or DECIMAL.fullmatch(kind) is not None
    if unit is None or not (is_exact or kind in FLOATING):
        return None
    if kind in INTEGER_BITS:
        return _rounded_whole(call, spans, data_type, part, unit) if kind == data_type else None
    if is_exact:
        spans = spans.mapped(lambda span: _multiples(span, unit))
    way = call.name.removeprefix("Round") or call.name
    down = {"Floor": Fraction(0), "Ceil": unit}.get(way, unit / 2)
    up = {"Ceil": Fraction(0), "Floor": unit}.get(way, unit / 2)
    after = spans.mapped(lambda span: widened(span, down, up))
    if data_type == "bigint":
        low, high = limits(data_type)
        # A double beyond the type becomes its end, and NaN becomes 0.
        after = replace_ends(spans, after, low, high)
    elif kind in FLOATING:
        after = after.mapped(lambda span: rounded_from(span, kind))
    return part, after, kind


def _rounded_whole(
    call: Call, spans: Spans, kind: str, part: Expression, unit: Fraction
) -> Step | None:
    """`round` of whole numbers, which without ANSI goes on at the other end of the type."""
    if unit <= 1:
        return part, spans, kind
    if call.name not in ("Round", "BRound"):
        return None
    low, high = limits(kind)
    size, half = high - low + 1, unit / 2
    inside = spans.mapped(lambda span: clipped(span, low, high))
    # What is rounded is less than twice as far from nought, so that one turn is enough.
    turned = (shifted(span, turn * size) for span in inside.spans for turn in (-1, 0, 1))
    rounded_to = Spans(()).joined(_multiples(span, unit) for span in turned)
    before = rounded_to.mapped(lambda span: widened(span, half, half))
    return part, before.mapped(lambda span: clipped(span, low, high)), kind


def _multiples(span: Span, unit: Fraction) -> Span:
    return replace(
        span,
        low=None if span.low is None else math.ceil(span.low / unit) * unit,
        high=None if span.high is None else math.floor(span.high / unit) * unit,
    )


def replace_ends(spans: Spans, after: Spans, low: int, high: int) -> Spans:
    """Spans that reach an end of a type reach beyond it; NaN goes where 0 may be."""
    ends = [
        Span(
            None if span.low is None or span.low <= low else moved.low,
            None if span.high is None or span.high >= high else moved.high,
        )
        for span, moved in zip(spans.spans, after.spans, strict=True)
    ]
    has_zero = any(
        (span.low is None or span.low <= 0) and (span.high is None or span.high >= 0)
        for span in spans.spans
    )
    return Spans(tuple(ends), has_nan=has_zero)


def _rounded_to(call: Call) -> Fraction | None:
    if call.name in ("Ceil", "Floor"):
        return Fraction(1)
    digits = number_of(call.children[1]) if len(call.children) == 2 else None
    if digits is None or abs(digits) > 400:
        return None
    return Fraction(10) ** -int(digits)


# Rules of `preimages` for casts, wider and narrower ones.

DAY = 86_400_000_000
"""Microseconds."""
ZONE = DAY
"""Maximum distance of a local time from UTC: Java's zones stay within 18 hours, and a day also
covers clocks that are turned back over midnight."""
_INSTANTS = ("timestamp", "timestamp_ntz")
_WHOLE_DIGITS = {"tinyint": 2, "smallint": 4, "int": 9, "bigint": 18}
"""Digits before the point with which every decimal fits into a type."""


def cast(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Values before a cast, from those after it; None for unknown types."""
    (part,) = call.children
    kind = type_of(part, types)
    after = _before(call, spans, kind, data_type)
    return None if after is None else (part, after, kind)


def _before(call: Call, spans: Spans, kind: str, data_type: str) -> Spans | None:
    if data_type in FLOATING:
        if kind == "float" and data_type == "double":
            return spans
        if kind in FLOATING or kind in INTEGER_BITS or DECIMAL.fullmatch(kind):
            return spans.mapped(lambda span: rounded_from(span, data_type))
        return None
    if data_type in INTEGER_BITS:
        return _from_whole(call, spans, kind, data_type)
    if DECIMAL.fullmatch(data_type):
        return _from_decimal(spans, kind, data_type)
    if data_type == "date" and kind in _INSTANTS:
        zone = ZONE if kind == "timestamp" else 0
        return spans.mapped(lambda s: widened(scaled(s, Fraction(DAY)), zone, DAY - 1 + zone))
    if data_type in _INSTANTS and kind == "date":
        zone = ZONE if data_type == "timestamp" else 0
        return spans.mapped(lambda s: scaled(widened(s, zone, zone), Fraction(1, DAY)))
    return None


def _from_whole(call: Call, spans: Spans, kind: str, data_type: str) -> Spans | None:
    low, high = limits(data_type)
    inside = spans.mapped(lambda span: clipped(span, low, high))
    fails = mode_of(call) in ("ANSI", "TRY")
    if kind in INTEGER_BITS:
        if INTEGER_BITS[data_type] >= INTEGER_BITS[kind]:
            return spans
        return inside if fails else inside.mapped(lambda span: _repeated(span, data_type))
    found = DECIMAL.fullmatch(kind)
    if found:
        fits = int(found[1]) - int(found[2]) <= _WHOLE_DIGITS[data_type]
        # Whether it fits is asked of it as a double, which is what is cut off then.
        cut = inside.mapped(lambda span: rounded_from(widened(span, 1, 1), "double"))
        return cut if fits or fails else None
    if kind in FLOATING and data_type in ("int", "bigint"):
        cut = inside.mapped(lambda span: widened(span, 1, 1))
        # A number beyond the type becomes its end, and NaN becomes 0.
        return replace_ends(inside, cut, low, high)
    return None


def _repeated(span: Span, data_type: str) -> Span:
    low, high = limits(data_type)
    start, end = (low if span.low is None else span.low), (high if span.high is None else span.high)
    return Span(period=Period(Fraction(high - low + 1), Fraction(start), Fraction(end - start)))


def _from_decimal(spans: Spans, kind: str, data_type: str) -> Spans | None:
    """Values before a cast from decimal; excess digits are rounded, overflow is NULL or fails."""
    unit, digits = unit_of(data_type), unit_of(kind)
    if unit is None:
        return None
    if kind in INTEGER_BITS or DECIMAL.fullmatch(kind):
        is_exact = digits is not None and (digits / unit).denominator == 1
        half = Fraction(0) if is_exact else unit / 2
        return spans.mapped(lambda span: widened(span, half, half))
    if kind in FLOATING:
        rounded = spans.mapped(lambda span: widened(span, unit, unit))
        return rounded.mapped(lambda span: rounded_from(span, kind))
    return None

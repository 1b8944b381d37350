"""Sets of numbers as spans with exact bounds, and what casts and rounding make of them.

Numbers are exact (`Fraction`); dates are days and instants microseconds. NaN, which Spark orders
above everything, is kept apart, since no arithmetic keeps it above everything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from snaploom.skipping.core import predicates
from snaploom.skipping.core.definition import Term, Value
from snaploom.skipping.core.predicates import And as Both
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    names_of,
)
from snaploom.types.schemas import INTEGER_BITS


@dataclass(frozen=True)
class Period:
    """All numbers x for which `(x - start) modulo distance` is at most `length`."""

    distance: Fraction
    start: Fraction
    length: Fraction
    """Not negative; with `distance` or more, every number belongs to it."""

    def shifted(self, by: Fraction | int) -> Period:
        return Period(self.distance, self.start + by, self.length)

    def scaled(self, factor: Fraction) -> Period:
        """Every number times another one, which is not zero."""
        end = self.start + self.length
        start = self.start * factor if factor > 0 else end * factor
        return Period(self.distance * abs(factor), start, self.length * abs(factor))

    def widened(self, down: Fraction | int, up: Fraction | int) -> Period:
        """Numbers up to `down` below and `up` above, too."""
        return Period(self.distance, self.start - down, self.length + down + up)


COUNTED_BITS = {**INTEGER_BITS, "date": 32, "timestamp": 64, "timestamp_ntz": 64}
"""Types whose values are whole numbers of so many bits inside Spark."""


@dataclass(frozen=True)
class Span:
    """All numbers from `low` to `high`, inclusive, that belong to the period; None is unbounded."""

    low: Fraction | None = None
    high: Fraction | None = None
    period: Period | None = None

    @property
    def is_empty(self) -> bool:
        return self.low is not None and self.high is not None and self.low > self.high


@dataclass(frozen=True)
class Spans:
    """Numbers that are in one of some spans, and perhaps NaN."""

    spans: tuple[Span, ...]
    has_nan: bool = False

    def mapped(self, change: Callable[[Span], Span]) -> Spans:
        """Each span changed; NaN stays as it is."""
        found = (change(span) for span in self.spans)
        return replace(self, spans=tuple(span for span in found if not span.is_empty))

    def joined(self, others: Iterable[Span]) -> Spans:
        return replace(self, spans=(*self.spans, *(span for span in others if not span.is_empty)))


def compared(operator: predicates.Operator, value: Value, data_type: str) -> Spans | None:
    """Numbers for which `number operator value` is TRUE, edges included; None if unknown."""
    if isinstance(value, bytes | bool):
        return None
    if operator is predicates.Operator.NE:
        unit = unit_of(data_type)
        if unit is None:
            return None
        return Spans((Span(high=Fraction(value) - unit), Span(low=Fraction(value) + unit)))
    goes_up = operator in (predicates.Operator.GT, predicates.Operator.GE)
    if isinstance(value, float) and not math.isfinite(value):
        everything = Spans((Span(),), has_nan=True)
        if math.isnan(value) and operator is predicates.Operator.EQ:
            return Spans((), has_nan=True)
        if operator in (predicates.Operator.LT, predicates.Operator.LE) and not math.isnan(value):
            return Spans((Span(),))
        return everything
    bound = Fraction(value)
    if operator is predicates.Operator.EQ:
        return Spans((Span(bound, bound),))
    edge = (
        unit_of(data_type) if operator in (predicates.Operator.LT, predicates.Operator.GT) else None
    )
    bound += (edge or 0) * (1 if goes_up else -1)
    span = Span(low=bound) if goes_up else Span(high=bound)
    return Spans((span,), has_nan=goes_up)


def shifted(span: Span, by: Fraction | int) -> Span:
    """Every number plus another one."""
    return Span(
        None if span.low is None else span.low + by,
        None if span.high is None else span.high + by,
        None if span.period is None else span.period.shifted(by),
    )


def widened(span: Span, down: Fraction | int, up: Fraction | int) -> Span:
    """Numbers up to `down` below and `up` above, too."""
    return Span(
        None if span.low is None else span.low - down,
        None if span.high is None else span.high + up,
        None if span.period is None else span.period.widened(down, up),
    )


def scaled(span: Span, factor: Fraction) -> Span:
    """Every number times another one, which is not zero."""
    low = None if span.low is None else span.low * factor
    high = None if span.high is None else span.high * factor
    period = None if span.period is None else span.period.scaled(factor)
    return Span(low, high, period) if factor > 0 else Span(high, low, period)


def clipped(span: Span, low: int, high: int) -> Span:
    """The whole numbers of a span that lie between two."""
    least = low if span.low is None else max(low, math.ceil(span.low))
    most = high if span.high is None else min(high, math.floor(span.high))
    return Span(Fraction(least), Fraction(most), span.period)


def limited(span: Span, low: Fraction, high: Fraction) -> Span:
    """The numbers of a span that lie between two."""
    least = low if span.low is None else max(low, span.low)
    most = high if span.high is None else min(high, span.high)
    return Span(least, most, span.period)


def limits(data_type: str) -> tuple[int, int]:
    """The least and greatest whole number of a type in `COUNTED_BITS`."""
    half = 1 << (COUNTED_BITS[data_type] - 1)
    return -half, half - 1


def wrapped(span: Span, data_type: str) -> list[Span]:
    """The numbers of a type that some of a span become by overflow, at the other end."""
    low, high = limits(data_type)
    size = high - low + 1
    if span.low is None or span.high is None or span.high - span.low >= size:
        return [Span(Fraction(low), Fraction(high))]
    return [
        clipped(shifted(span, turn * size), low, high)
        for turn in range(
            math.floor((low - span.high) / size), math.ceil((high - span.low) / size) + 1
        )
    ]


def rounded_from(span: Span, data_type: str) -> Span:
    """The exact numbers that a floating-point type rounds to some of a span.

    A number is rounded to one of its neighbours, so it is less than the next greater one.
    """

    def beyond(bound: Fraction | None, towards: float) -> Fraction | None:
        if bound is None:
            return None
        step = _step(bound, data_type, towards)
        return Fraction(step) if math.isfinite(step) else None

    return Span(beyond(span.low, -math.inf), beyond(span.high, math.inf))


def _step(bound: Fraction, data_type: str, towards: float) -> float:
    try:
        near = float(bound)
    except OverflowError:
        return math.copysign(math.inf, towards)
    if data_type == "double":
        return math.nextafter(math.nextafter(near, towards), towards)
    # 2**-22 is four steps of a 32-bit float's 24 bits; the constant covers what is next to zero.
    return near + math.copysign(abs(near) * 2**-22 + 1e-44, towards)


def unit_of(data_type: str) -> Fraction | None:
    """The distance between neighbours of a type with a fixed one; None for others."""
    found = DECIMAL.fullmatch(data_type)
    if found:
        return Fraction(1) / Fraction(10) ** int(found[2])
    return Fraction(1) if data_type in COUNTED_BITS else None


def demanded(term: Term, spans: Spans) -> predicates.Predicate | None:
    """Condition that a column lies in one of some spans; None if it has no form."""
    if any(span == Span() for span in spans.spans):
        return None
    parts = [_demanded(term, span) for span in spans.spans]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    if spans.has_nan and term.data_type in ("float", "double"):
        found.append(predicates.Comparison(term, predicates.Operator.EQ, math.nan))
    return predicates.Or(tuple(found)) if found else predicates.Constant(is_true=False)


def _demanded(term: Term, span: Span) -> predicates.Predicate | None:
    unit = unit_of(term.data_type)
    if unit is None and term.data_type not in ("float", "double"):
        return None
    if unit is None:
        return _between(term, *_floats(span, term.data_type))
    low = None if span.low is None else math.ceil(span.low / unit)
    high = None if span.high is None else math.floor(span.high / unit)
    least, most = _units(term.data_type)
    if (low is not None and low > most) or (high is not None and high < least):
        return predicates.Constant(is_true=False)
    low = None if low is None or low <= least else low
    high = None if high is None or high >= most else high
    between = _between(
        term,
        None if low is None else _value(low, term.data_type),
        None if high is None else _value(high, term.data_type),
    )
    repeated = None if span.period is None else _repeated(term, span.period, unit, low, high)
    if between is None or repeated is None:
        return between or repeated
    return Both((between, repeated))


def _repeated(
    term: Term, period: Period, unit: Fraction, low: int | None, high: int | None
) -> predicates.Predicate | None:
    """Condition that a column's value is in a period, in units of its type, as keys are."""
    modulus = period.distance / unit
    if modulus.denominator != 1 or modulus > predicates.LARGEST_MODULUS:
        return None
    first = math.ceil(period.start / unit)
    count = math.floor((period.start + period.length) / unit) - first + 1
    if count <= 0:
        return predicates.Constant(is_true=False)
    if count >= modulus:
        return None
    return predicates.Residue(term, int(modulus), first % int(modulus), count, low, high)


def _units(data_type: str) -> tuple[int, int]:
    found = DECIMAL.fullmatch(data_type)
    if found:
        most = int(10 ** int(found[1])) - 1
        return -most, most
    return limits(data_type)


def _value(units: int, data_type: str) -> Value:
    found = DECIMAL.fullmatch(data_type)
    if found:
        sign, digits = int(units < 0), tuple(map(int, str(abs(units))))
        return Decimal((sign, digits, -int(found[2])))
    return units


def _floats(span: Span, data_type: str) -> tuple[Value | None, Value | None]:
    low = None if span.low is None else _step(span.low, data_type, -math.inf)
    high = None if span.high is None else _step(span.high, data_type, math.inf)
    return (
        low if low is not None and math.isfinite(low) else None,
        # Without an upper bound stands NaN as well, which may be too much and is never too little.
        math.inf if high is not None and not math.isfinite(high) else high,
    )


def _between(term: Term, low: Value | None, high: Value | None) -> predicates.Predicate | None:
    if low is None and high is None:
        return None
    parts: list[predicates.Predicate] = []
    if low is not None:
        parts.append(predicates.Comparison(term, predicates.Operator.GE, low))
    if high is not None:
        parts.append(predicates.Comparison(term, predicates.Operator.LE, high))
    return Both(tuple(parts)) if len(parts) > 1 else parts[0]


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
        return inside if fails else inside.mapped(lambda span: _overflowing(span, data_type))
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


def _overflowing(span: Span, data_type: str) -> Span:
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

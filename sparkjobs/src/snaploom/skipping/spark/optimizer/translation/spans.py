"""Sets of numbers as spans with exact bounds: possible values of expressions.

Numbers are exact (`Fraction`); dates are days and instants microseconds. NaN, which Spark orders
above everything, is kept apart, since no arithmetic keeps it above everything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from snaploom.skipping.core import predicates
from snaploom.skipping.core.predicates import And as Both
from snaploom.skipping.core.terms import Term, Value
from snaploom.types.schemas import INTEGER_BITS


@dataclass(frozen=True)
class Period:
    """All numbers x for which `(x - start) modulo distance` is at most `length`."""

    distance: Fraction
    """Greater than nought."""
    start: Fraction
    length: Fraction
    """Not negative; with `distance` or more, every number belongs to it."""

    def shifted(self, by: Fraction | int) -> Period:
        """Every number plus another one."""
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
_DECIMAL = re.compile(r"decimal\((\d+),\s?(-?\d+)\)")


@dataclass(frozen=True)
class Span:
    """All numbers from `low` to `high`, inclusive, that belong to the period; None is unbounded."""

    low: Fraction | None = None
    high: Fraction | None = None
    period: Period | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no number is in it."""
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
        """With further spans."""
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
    found = _DECIMAL.fullmatch(data_type)
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
    found = _DECIMAL.fullmatch(data_type)
    if found:
        most = int(10 ** int(found[1])) - 1
        return -most, most
    return limits(data_type)


def _value(units: int, data_type: str) -> Value:
    found = _DECIMAL.fullmatch(data_type)
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

"""Rules of `preimages` for casts, wider and narrower ones."""

from __future__ import annotations

from fractions import Fraction

from snaploom.skipping.spark.optimizer.translation.operands import (
    DECIMAL,
    FLOATING,
    ColumnTypes,
    Step,
    mode_of,
    type_of,
)
from snaploom.skipping.spark.optimizer.translation.roundingrules import replace_ends
from snaploom.skipping.spark.optimizer.translation.spans import (
    INTEGER_BITS,
    Period,
    Span,
    Spans,
    clipped,
    limits,
    rounded_from,
    scaled,
    unit_of,
    widened,
)
from snaploom.skipping.spark.relations.expressions import Call

DAY = 86_400_000_000
"""Microseconds."""
ZONE = DAY
"""How far a local time may be from UTC at most: Java's zones stay within 18 hours, and a day also
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

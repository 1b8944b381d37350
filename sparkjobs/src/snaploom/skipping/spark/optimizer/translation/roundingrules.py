"""Rules of `preimages` for rounding and for remainders of division."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from snaploom.skipping.spark.optimizer.translation.operands import (
    DECIMAL,
    FLOATING,
    ZERO,
    ColumnTypes,
    Step,
    number_of,
    split,
    type_of,
)
from snaploom.skipping.spark.optimizer.translation.spans import (
    INTEGER_BITS,
    Period,
    Span,
    Spans,
    clipped,
    limited,
    limits,
    rounded_from,
    shifted,
    unit_of,
    widened,
)
from snaploom.skipping.spark.relations.expressions import Call, Expression


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
        return part, rests.mapped(lambda span: _repeated(span, divisor)), kind
    if call.name == "Pmod" and (kind not in INTEGER_BITS or 2 * divisor > limits(kind)[1]):
        # A negative divisor is added to the rest, which may overflow.
        return None
    above = spans.mapped(lambda span: limited(span, ZERO, most))
    below = spans.mapped(lambda span: limited(span, -most, ZERO))
    after = above.mapped(lambda span: replace(_repeated(span, divisor), low=span.low))
    down = (replace(_repeated(span, divisor), high=span.high) for span in below.spans)
    return part, after.joined(down), kind


def _is_exact_rest(kind: str, data_type: str) -> bool:
    before, after = unit_of(kind), unit_of(data_type)
    is_decimal = DECIMAL.fullmatch(kind) is not None and DECIMAL.fullmatch(data_type) is not None
    return is_decimal and before is not None and after is not None and after <= before


def _repeated(span: Span, divisor: Fraction) -> Span:
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

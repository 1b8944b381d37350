"""Days and times formatted as text: `date_format(d, 'yyyy-MM') = '2024-03'`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from fractions import Fraction

from snaploom.skipping.core.predicates import Operator
from snaploom.skipping.core.terms import Value
from snaploom.skipping.spark.optimizer.translation.operands import ColumnTypes, type_of
from snaploom.skipping.spark.optimizer.translation.spans import Span, Spans
from snaploom.skipping.spark.relations.expressions import Call, Expression, Literal

_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>\d{2})", r"(?P<day>\d{2})"
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "yyyy": re.compile(_YEAR),
    "yyyy-MM": re.compile(f"{_YEAR}-{_MONTH}"),
    "yyyyMM": re.compile(f"{_YEAR}{_MONTH}"),
    "yyyy-MM-dd": re.compile(f"{_YEAR}-{_MONTH}-{_DAY}"),
    "yyyy/MM/dd": re.compile(f"{_YEAR}/{_MONTH}/{_DAY}"),
    "yyyyMMdd": re.compile(f"{_YEAR}{_MONTH}{_DAY}"),
}
"""Parsers of text by Spark's format."""
_EARLIEST = 1600
"""Years before may be those of another calendar, by Spark's settings."""


def days_of(
    subject: Expression, operator: Operator, value: Value, types: ColumnTypes
) -> tuple[Expression, Spans, str] | None:
    """Day expression, its possible numbers, and its Spark type, for a formatted date.

    None for whatever is no such text, and for formats that are not known here.
    """
    if operator is not Operator.EQ or not isinstance(value, bytes):
        return None
    match subject:
        case Call("DateFormatClass", _, (part, Literal(bytes() as form))):
            days = _days(value, form.decode(errors="replace"))
            # Some zone has no such day, or none that begins at midnight.
            slack = 1
        case Call("Cast", {"dataType": "string"}, (part,)) if type_of(part, types) == "date":
            days, slack = _days(value, "yyyy-MM-dd"), 0
        case _:
            return None
    if days is None:
        return None
    low, high = days
    match part:
        case Call("Cast", _, (child,)) if type_of(child, types) == "date":
            part = child
    kind = type_of(part, types)
    if kind != "date":
        return None
    return part, Spans((Span(Fraction(low - slack), Fraction(high + slack)),)), kind


def _days(value: bytes, form: str) -> tuple[int, int] | None:
    found = _PATTERNS[form].fullmatch(value.decode(errors="replace")) if form in _PATTERNS else None
    if found is None:
        return None
    parts = {name: int(number) for name, number in found.groupdict().items()}
    year, month, day = parts["year"], parts.get("month"), parts.get("day")
    try:
        first = date(year, month or 1, day or 1)
        after = first + timedelta(1) if day else _next_month(year, month or 12)
    except ValueError:
        return None
    if year < _EARLIEST:
        return None
    epoch = date(1970, 1, 1)
    return (first - epoch).days, (after - epoch).days - 1


def _next_month(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1)

"""What a condition on an expression over a column says about the column itself.

Each rule gives *necessary* conditions on the column: a row for which one is not TRUE cannot satisfy
the condition. None is exact, so none is ever negated. They matter because people write them:
PySpark makes 5.1 a double, so `price > 5.1` on a decimal column arrives as
`cast(price as double) > 5.1`, which Spark's optimizer does not unwrap (measured on 4.3); nor does
it unwrap `year(ts) = 2024`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from snaploom.skipping.core.predicates import Comparison, Operator, Predicate, StartsWith
from snaploom.skipping.core.terms import Value
from snaploom.skipping.spark.columns import Columns
from snaploom.skipping.spark.expressions import Call, Expression, Literal
from snaploom.skipping.spark.subjects import names_of, term_of

_DAY = 86_400_000_000
"""Microseconds."""
_ZONE = _DAY
"""How far a local time may be from UTC at most: Java's zones stay within 18 hours, and a day also
covers clocks that are turned back over midnight."""

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL = re.compile(r"decimal\((\d+),\s?(-?\d+)\)")
_EXACT = Context(prec=800)
"""Enough for the exact decimal digits of any double beside 38 digits of a column."""

_UNIT_DAYS = {
    "year": 366, "yyyy": 366, "yy": 366, "quarter": 92, "month": 31, "mon": 31, "mm": 31,
    "week": 7, "day": 1, "dd": 1, "hour": 1, "minute": 1, "second": 1,
}  # fmt: skip
"""Longest span of what `trunc` and `date_trunc` round down to, in days."""


@dataclass(frozen=True)
class _Range:
    """The column is at least `low` and at most `high`; None is no bound."""

    subject: Expression
    data_type: str
    low: Value | None = None
    high: Value | None = None


def implied(
    subject: Expression, operator: Operator, value: Value, columns: Columns
) -> tuple[Predicate, ...]:
    """What `subject operator value` needs of the column inside; nothing if there is no rule."""
    if operator is Operator.NE:
        return ()
    match subject:
        case Call("Cast", {"dataType": "double" | "float" as target}, (child,)):
            found = _of_cast(child, operator, value, str(target), columns)
        case Call("Year", _, (child,)):
            found = _of_year(child, operator, value, columns)
        case Call("TruncDate", _, (child, Literal(bytes() as unit))):
            found = _of_truncation(child, unit, operator, value, columns)
        case Call("TruncTimestamp", _, (Literal(bytes() as unit), child)):
            found = _of_truncation(child, unit, operator, value, columns)
        case Call("Substring", _, (child, Literal(int(start)), _)) if start in (0, 1):
            return _of_beginning(child, operator, value, columns)
        case _:
            found = None
    return () if found is None else _bounds(found, columns)


def _bounds(found: _Range, columns: Columns) -> tuple[Predicate, ...]:
    term = term_of(found.subject, columns, found.data_type)
    if isinstance(term, str):
        return ()
    low = () if found.low is None else (Comparison(term, Operator.GE, found.low),)
    high = () if found.high is None else (Comparison(term, Operator.LE, found.high),)
    return (*low, *high)


def _of_beginning(
    child: Expression, operator: Operator, value: Value, columns: Columns
) -> tuple[Predicate, ...]:
    """What the text begins with is what its beginning is, however long that is."""
    term = term_of(child, columns, "string")
    if operator is not Operator.EQ or not isinstance(value, bytes) or isinstance(term, str):
        return ()
    return (StartsWith(term, value),)


def _type_of(subject: Expression, columns: Columns) -> str:
    names = names_of(subject)
    term = None if names is None else columns.find(names)
    return "" if term is None else term.data_type


def _of_cast(
    child: Expression, operator: Operator, value: Value, target: str, columns: Columns
) -> _Range | None:
    """Casting a number to double or float keeps the order, and rounds to a neighbour.

    So the column lies within the two numbers next to the literal.
    """
    data_type = _type_of(child, columns)
    decimal = _DECIMAL.fullmatch(data_type)
    if not (decimal or data_type in _INTEGER_BITS):
        return None
    if not isinstance(value, float) or not math.isfinite(value):
        return None
    low = None if operator in (Operator.LT, Operator.LE) else _step(value, target, -math.inf)
    high = None if operator in (Operator.GT, Operator.GE) else _step(value, target, math.inf)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        return _Range(
            child,
            data_type,
            low=_in_decimal(low, precision, scale, ROUND_FLOOR),
            high=_in_decimal(high, precision, scale, ROUND_CEILING),
        )
    bits = _INTEGER_BITS[data_type]
    return _Range(child, data_type, low=_in_integer(low, bits), high=_in_integer(high, bits))


def _step(value: float, target: str, towards: float) -> float:
    """A number beyond the neighbour of `value` in the type that was cast to."""
    if target == "double":
        return math.nextafter(math.nextafter(value, towards), towards)
    # 2**-22 is four steps of a 32-bit float's 24 bits; the constant covers what is next to zero.
    return value + math.copysign(abs(value) * 2**-22 + 1e-44, towards)


def _in_decimal(bound: float | None, precision: int, scale: int, rounding: str) -> Decimal | None:
    """A bound on the column's own grid; None where no value of the type is beyond it."""
    if bound is None or math.isinf(bound):
        return None
    unit = Decimal(1).scaleb(-scale)
    rounded = Decimal(bound).quantize(unit, rounding=rounding, context=_EXACT)
    largest = _EXACT.multiply(unit, Decimal(10**precision - 1))
    return rounded if -largest <= rounded <= largest else None


def _in_integer(bound: float | None, bits: int) -> int | None:
    if bound is None or math.isinf(bound):
        return None
    whole = math.floor(bound)
    return whole if -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1) else None


def _of_year(
    child: Expression, operator: Operator, value: Value, columns: Columns
) -> _Range | None:
    """Years of Spark's proleptic calendar, which is Python's."""
    if not isinstance(value, int) or not 1 < value < 9998:
        return None
    first = {Operator.GT: value + 1, Operator.GE: value, Operator.EQ: value}.get(operator)
    last = {Operator.LT: value, Operator.LE: value + 1, Operator.EQ: value + 1}.get(operator)
    days = (None if first is None else _days(first), None if last is None else _days(last))
    match child:
        case Call("Cast", {"dataType": "date"}, (inner,)):
            return _of_moments(inner, *days, columns)
    return _of_days(child, *days, columns)


def _days(year: int) -> int:
    return (date(year, 1, 1) - date(1970, 1, 1)).days


def _of_truncation(
    child: Expression, unit: bytes, operator: Operator, value: Value, columns: Columns
) -> _Range | None:
    """Rounding down to a unit goes back by less than the unit."""
    span = _UNIT_DAYS.get(unit.decode(errors="replace").lower())
    if not isinstance(value, int) or span is None:
        return None
    data_type = _type_of(child, columns)
    if data_type == "date":
        low = None if operator in (Operator.LT, Operator.LE) else value
        high = None if operator in (Operator.GT, Operator.GE) else value + span
        return _Range(child, data_type, low=low, high=high)
    if data_type == "timestamp":
        low = None if operator in (Operator.LT, Operator.LE) else value - _ZONE
        high = None if operator in (Operator.GT, Operator.GE) else value + span * _DAY + _ZONE
        return _Range(child, data_type, low=low, high=high)
    return None


def _of_days(
    child: Expression, first: int | None, last: int | None, columns: Columns
) -> _Range | None:
    if _type_of(child, columns) != "date":
        return None
    return _Range(child, "date", low=first, high=last)


def _of_moments(
    child: Expression, first: int | None, last: int | None, columns: Columns
) -> _Range | None:
    """Days as instants, in whatever time zone they were meant."""
    data_type = _type_of(child, columns)
    if data_type not in ("timestamp", "timestamp_ntz"):
        return None
    zone = _ZONE if data_type == "timestamp" else 0
    return _Range(
        child,
        data_type,
        low=None if first is None else first * _DAY - zone,
        high=None if last is None else last * _DAY + zone,
    )

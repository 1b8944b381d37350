"""From the numbers that an expression may be to those of its column."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction

from snaploom.skipping.core.definition import Value
from snaploom.skipping.core.predicates import And, Constant, Operator, Or, Predicate
from snaploom.skipping.spark.optimizer.translation.spans import (
    COUNTED_BITS,
    DAY,
    DECIMAL,
    FLOATING,
    ZERO,
    ZONE,
    ColumnTypes,
    Period,
    Rule,
    Span,
    Spans,
    Step,
    cast,
    clipped,
    limits,
    mode_of,
    remainder,
    rounded,
    rounded_from,
    scaled,
    shifted,
    split,
    type_of,
    unit_of,
    widened,
    wrapped,
)
from snaploom.skipping.spark.relations.expressions import Call, Expression, Literal
from snaploom.types.schemas import INTEGER_BITS

# Expressions with the value of one of several parts: CASE, IF, coalesce.

Holds = Callable[[Expression, bool], Predicate]
"""Predicate implied by a TRUE condition, or a FALSE one if negated."""
IsNull = Callable[[Expression, str], Predicate]
"""Predicate implied where an expression of a Spark type is NULL."""

_BRANCHING = ("If", "CaseWhen", "Coalesce", "Greatest", "Least")
_MOST_EXCLUDED = 20
"""Of a longer CASE, what earlier conditions leave for later parts is not followed: it would grow
with the square of the length."""

_ANY_ROW = Constant(is_true=True)


@dataclass(frozen=True)
class Branch:
    """One part that may give the value of an expression."""

    value: Expression
    given: Predicate
    """Predicate of the rows in which the part gives the value."""


def branches_of(
    subject: Expression, data_type: str, holds: Holds, is_null: IsNull
) -> tuple[Branch, ...]:
    """Parts of which one gives an expression's value; empty for expressions of other kinds."""
    match subject:
        case Call("If", _, (condition, first, second)):
            return tuple(_chosen([(condition, first)], second, holds, is_null))
        case Call("CaseWhen", _, children):
            conditions = children[: len(children) - len(children) % 2 : 2]
            *values, otherwise = values_of(subject)
            chosen = list(zip(conditions, values, strict=True))
            return tuple(_chosen(chosen, otherwise, holds, is_null))
        case Call("Coalesce", _, children):
            return tuple(_first_present(children, data_type, is_null))
    return ()


def values_of(subject: Call) -> tuple[Expression, ...]:
    """Parts of an IF or CASE of which one gives its value."""
    if subject.name == "If":
        return subject.children[1:]
    rest = len(subject.children) % 2
    otherwise = subject.children[-1:] if rest else (Literal(None, "", is_null=True),)
    return (*subject.children[1 : len(subject.children) - rest : 2], *otherwise)


def _chosen(
    pairs: Sequence[tuple[Expression, Expression]],
    otherwise: Expression,
    holds: Holds,
    is_null: IsNull,
) -> Iterator[Branch]:
    before: list[Predicate] = []
    for condition, value in pairs:
        yield Branch(value, And((*before, holds(condition, False))))
        if len(pairs) <= _MOST_EXCLUDED and not has_branches(condition):
            before.append(Or((holds(condition, True), is_null(condition, "boolean"))))
    yield Branch(otherwise, And(tuple(before)))


def has_branches(expression: Expression) -> bool:
    """Whether one of several parts gives a value in it.

    Translated twice at each level, such expressions would take exponential time.
    """
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call):
            if each.name in _BRANCHING:
                return True
            waiting.extend(each.children)
    return False


def _first_present(
    children: Sequence[Expression], data_type: str, is_null: IsNull
) -> Iterator[Branch]:
    before: list[Predicate] = []
    for child in children:
        yield Branch(child, And(tuple(before)) if before else _ANY_ROW)
        if len(children) <= _MOST_EXCLUDED:
            before.append(is_null(child, data_type))


# Days and times formatted as text: `date_format(d, 'yyyy-MM') = '2024-03'`.

_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>\d{2})", r"(?P<day>\d{2})"
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "yyyy": re.compile(_YEAR),
    "yyyy-MM": re.compile(f"{_YEAR}-{_MONTH}"),
    "yyyyMM": re.compile(f"{_YEAR}{_MONTH}"),
    "yyyy-MM-dd": re.compile(f"{_YEAR}-{_MONTH}-{_DAY}"),
    "yyyy/MM/dd": re.compile(f"{_YEAR}/{_MONTH}/{_DAY}"),
    "yyyyMMdd": re.compile(f"{_YEAR}{_MONTH}{_DAY}"),
}
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
            days = _days_of_text(value, form.decode(errors="replace"))
            # Some zone has no such day, or none that begins at midnight.
            slack = 1
        case Call("Cast", {"dataType": "string"}, (part,)) if type_of(part, types) == "date":
            days, slack = _days_of_text(value, "yyyy-MM-dd"), 0
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


def _days_of_text(value: bytes, form: str) -> tuple[int, int] | None:
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


# Inverts expressions: from the numbers of a result to those of its part with a column.

_UNIT_DAYS = {
    "year": 366, "yyyy": 366, "yy": 366, "quarter": 92, "month": 31, "mon": 31, "mm": 31,
    "week": 7, "day": 1, "dd": 1, "hour": 1, "minute": 1, "second": 1,
}  # fmt: skip
"""Longest span of units of `trunc` and `date_trunc`, in days."""
_MONTH_DAYS = (28, 31)
_MONTH_ENDS = 3
"""Days by which the end of a shorter month cuts a date."""
_WEEKS = {"DayOfWeek": (1, 5), "WeekDay": (0, 3)}
"""By function, the number of its first day, and that of a Thursday."""
_EPOCH_UNITS = {"UnixSeconds": 1_000_000, "UnixMillis": 1000, "UnixMicros": 1}
"""Microseconds of a unit, by the function that counts it."""


def step(expression: Expression, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Take one expression off; None where there is no rule."""
    if not isinstance(expression, Call) or expression.name not in _RULES:
        return None
    return _RULES[expression.name](expression, spans, data_type, types)


def _before_rounding(spans: Spans, data_type: str) -> Spans | None:
    """The exact results that a type rounds to some of the spans; None for other types."""
    if data_type in FLOATING:
        return spans.mapped(lambda span: rounded_from(span, data_type))
    unit = unit_of(data_type)
    if unit is None:
        return None
    return spans.mapped(lambda span: widened(span, unit, unit))


def _is_exact(call: Call, kind: str, data_type: str) -> bool:
    """Whether a decimal result needs no more digits than its type has."""
    before, after = unit_of(kind), unit_of(data_type)
    if before is None or after is None:
        return False
    found = split(call)
    number = ZERO if found is None else found[1]
    match call.name:
        case "Add" | "Subtract" | "UnaryMinus":
            return (before / after).denominator == 1 and (number / after).denominator == 1
        case "Multiply":
            return (number * before / after).denominator == 1
    return False


def _inverse(
    call: Call, spans: Spans, data_type: str, kind: str, back: Callable[[Span], Span]
) -> Spans | None:
    """Numbers before an operation of which `back` is the inverse."""
    if kind != data_type and not (DECIMAL.fullmatch(kind) and DECIMAL.fullmatch(data_type)):
        return None
    if data_type in COUNTED_BITS:
        low, high = limits(data_type)
        inside = spans.mapped(lambda span: clipped(span, low, high)).mapped(back)
        if mode_of(call) in ("ANSI", "TRY"):
            return inside.mapped(lambda span: clipped(span, low, high))
        return Spans(()).joined(each for span in inside.spans for each in wrapped(span, data_type))
    exact = spans if _is_exact(call, kind, data_type) else _before_rounding(spans, data_type)
    return None if exact is None else exact.mapped(back)


def _sum(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    found = split(call)
    if found is None:
        return None
    part, number, is_left = found
    kind = type_of(part, types)
    is_minus = call.name in ("Subtract", "DateSub", "DateDiff")
    if is_minus and is_left:
        after = _inverse(call, spans, data_type, kind, lambda s: shifted(scaled(s, _MINUS), number))
    else:
        back = number if is_minus else -number
        after = _inverse(call, spans, data_type, kind, lambda s: shifted(s, back))
    return None if after is None else (part, after, kind)


_MINUS = Fraction(-1)


def _minus(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    (part,) = call.children
    kind = type_of(part, types)
    after = _inverse(call, spans, data_type, kind, lambda span: scaled(span, _MINUS))
    return None if after is None else (part, after, kind)


def _absolute(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    (part,) = call.children
    kind = type_of(part, types)
    if kind != data_type or (kind not in FLOATING and unit_of(kind) is None):
        return None
    above = spans.mapped(lambda span: replace(span, low=max(span.low or ZERO, ZERO)))
    after = above.joined(scaled(span, _MINUS) for span in above.spans)
    if kind in INTEGER_BITS and mode_of(call) not in ("ANSI", "TRY"):
        # The least number has no opposite and stays what it is.
        least = Fraction(limits(kind)[0])
        after = after.joined([Span(least, least)])
    return part, after, kind


def _product(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    found = split(call)
    if found is None or found[1] == 0:
        return None
    part, number, _ = found
    kind = type_of(part, types)
    if data_type in INTEGER_BITS and mode_of(call) not in ("ANSI", "TRY"):
        return None
    after = _inverse(call, spans, data_type, kind, lambda span: scaled(span, 1 / number))
    return None if after is None else (part, after, kind)


def _quotient(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    found = split(call)
    if found is None or found[1] == 0 or found[2] or data_type in COUNTED_BITS:
        return None
    part, number, _ = found
    kind = type_of(part, types)
    after = _inverse(call, spans, data_type, kind, lambda span: scaled(span, number))
    return None if after is None else (part, after, kind)


def _whole_quotient(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Rounded towards zero, so that the rest is less than the divisor."""
    found = split(call)
    kind = "" if found is None else type_of(found[0], types)
    if found is None or found[2] or found[1] == 0 or kind not in INTEGER_BITS:
        return None
    part, number, _ = found
    rest = abs(number) - 1
    after = spans.mapped(lambda span: widened(scaled(span, number), rest, rest))
    if number == -1:
        # The least number has no opposite and stays what it is, or fails.
        least = Fraction(limits(kind)[0])
        after = after.joined([Span(least, least)])
    return part, after, kind


def _year(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    (part,) = call.children
    kind = type_of(part, types)
    if kind != "date":
        return None
    return part, spans.mapped(lambda span: Span(_first(span.low), _last(span.high))), kind


def _first(year: Fraction | None) -> Fraction | None:
    """First day of a year; None where Python's calendar has none."""
    if year is None or not 1 <= year <= 9999:
        return None
    return Fraction((date(math.ceil(year), 1, 1) - date(1970, 1, 1)).days)


def _last(year: Fraction | None) -> Fraction | None:
    if year is None or not 1 <= year < 9999:
        return None
    return Fraction((date(math.floor(year) + 1, 1, 1) - date(1970, 1, 1)).days - 1)


def _truncation(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Rounding down to a unit goes back by less than the unit."""
    parts = call.children if call.name == "TruncDate" else call.children[::-1]
    match parts:
        case (part, Literal(bytes() as name)):
            days = _UNIT_DAYS.get(name.decode(errors="replace").lower())
        case _:
            return None
    kind = type_of(part, types)
    if days is None or kind not in ("date", "timestamp"):
        return None
    if kind == "date":
        return part, spans.mapped(lambda span: widened(span, 0, days)), kind
    return part, spans.mapped(lambda span: widened(span, ZONE, days * DAY + ZONE)), kind


def _months(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Months have 28 to 31 days, and the end of a shorter one cuts a date."""
    match call.children:
        case (part, Literal(_, kind, False, int(months))) if kind == "int" or kind.startswith(
            "interval"
        ):
            least, most = sorted(months * days for days in _MONTH_DAYS)
        case _:
            return None
    day = {"date": 1, "timestamp": DAY, "timestamp_ntz": DAY}.get(type_of(part, types))
    if day is None:
        return None
    slack = _MONTH_ENDS * day + (ZONE if day == DAY else 0)
    after = spans.mapped(lambda s: widened(s, most * day + slack, -least * day + slack))
    return part, after, type_of(part, types)


def _interval(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Days are added to local times, which a change of the clock moves by less than a day."""
    match call.children:
        case (part, Literal(_, kind, False, int(micros))) if kind.startswith("interval"):
            moved = type_of(part, types)
        case _:
            return None
    if moved not in ("timestamp", "timestamp_ntz"):
        return None
    slack = ZONE if moved == "timestamp" else 0
    return part, spans.mapped(lambda s: widened(shifted(s, -micros), slack, slack)), moved


def _month_end(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    part = call.children[0]
    if type_of(part, types) != "date":
        return None
    most = _UNIT_DAYS["month"] if call.name == "LastDay" else _UNIT_DAYS["week"]
    return part, spans.mapped(lambda span: widened(span, most, 0)), "date"


def _day_of_week(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """A remainder of days: the first of January 1970 was a Thursday."""
    (part,) = call.children
    if type_of(part, types) != "date":
        return None
    first, thursday = _WEEKS[call.name]
    days = spans.mapped(lambda span: clipped(span, first, first + 6))
    return part, days.mapped(lambda span: _weekly(span, thursday)), "date"


def _weekly(span: Span, thursday: int) -> Span:
    low, high = span.low or ZERO, span.high or ZERO
    return Span(period=Period(Fraction(7), low - thursday, high - low))


def _epoch(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    part = call.children[0]
    unit = _EPOCH_UNITS.get(call.name, 1_000_000)
    if type_of(part, types) != "timestamp":
        return None
    # `unix_timestamp` divides towards zero before 1970 in some versions: a unit on either side.
    after = spans.mapped(lambda span: widened(scaled(span, Fraction(unit)), unit, unit))
    return part, after, "timestamp"


def _same(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    (part,) = call.children
    return (part, spans, "date") if type_of(part, types) == "date" else None


def _days(call: Call, spans: Spans, data_type: str, types: ColumnTypes) -> Step | None:
    """Sums and differences of days are whole numbers of 32 bits, which go on at the other end."""
    found = split(call)
    if found is None or type_of(found[0], types) != "date":
        return None
    moved = _sum(call, spans, "date", types)
    return None if moved is None else (moved[0], moved[1], "date")


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("Add", "Subtract"), _sum),
    "Multiply": _product,
    "Divide": _quotient,
    "IntegralDivide": _whole_quotient,
    **dict.fromkeys(("Remainder", "Pmod"), remainder),
    "UnaryMinus": _minus,
    "Abs": _absolute,
    **dict.fromkeys(("Ceil", "Floor", "RoundCeil", "RoundFloor", "Round", "BRound"), rounded),
    "Cast": cast,
    "Year": _year,
    **dict.fromkeys(("TruncDate", "TruncTimestamp"), _truncation),
    **dict.fromkeys(("DateAdd", "DateSub", "DateDiff"), _days),
    **dict.fromkeys(("AddMonths", "DateAddYMInterval", "TimestampAddYMInterval"), _months),
    "TimestampAddInterval": _interval,
    **dict.fromkeys((*_EPOCH_UNITS, "UnixTimestamp"), _epoch),
    "UnixDate": _same,
    **dict.fromkeys(("LastDay", "NextDay"), _month_end),
    **dict.fromkeys(_WEEKS, _day_of_week),
}

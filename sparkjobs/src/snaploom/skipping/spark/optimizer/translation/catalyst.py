"""Translates conditions of the optimizer rule to predicates.

The result is a *necessary* condition: TRUE for every row for which the condition is TRUE. NOT is
pushed down on the way: every function here is given whether its expression is negated, and what is
only necessary is never turned around afterwards (rule S13).

Spark's optimizer has done much before (measured on 4.3): casts between numbers and between dates
and timestamps are moved to the literal's side, `cast(ts as date) = d` has become a range of ts,
LIKE without `_` has become StartsWith, EndsWith and Contains. The remainder on the column's side is
a term of its own here, `year(d)` or `lower(c)`, which an index over the same expression serves;
`ranges` adds what such an expression implies for the column inside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import cast

from snaploom.skipping.core.definition import Term, Value
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Constant,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from snaploom.skipping.core.valueorder import key_of
from snaploom.skipping.spark.optimizer.translation import conditions
from snaploom.skipping.spark.optimizer.translation.conditions import IndexedConditions, term_of
from snaploom.skipping.spark.optimizer.translation.preimages import Branch, branches_of
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Columns,
    Expression,
    Literal,
    Opaque,
    as_text,
    literal,
    names_of,
    parse,
)

NEVER = Constant(is_true=False)

_OPERATORS = {
    "EqualTo": Operator.EQ,
    "LessThan": Operator.LT,
    "LessThanOrEqual": Operator.LE,
    "GreaterThan": Operator.GT,
    "GreaterThanOrEqual": Operator.GE,
}
_TURNED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""Operators when the sides change places; the others stay."""
_COMPLEMENTS = {
    Operator.EQ: Operator.NE,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}
"""Operators under NOT: exact, because Spark's order is total (NaN is greatest)."""

_SIGNS = {
    Operator.EQ: (0,),
    Operator.NE: (-1, 1),
    Operator.LT: (-1,),
    Operator.LE: (-1, 0),
    Operator.GT: (1,),
    Operator.GE: (0, 1),
}
"""Signs of differences for which an operator is TRUE."""

MOST_REWRITTEN_VALUES = 50
"""An IN list over an expression becomes a range of the column inside for each value up to this
length, and one range around all of them beyond it."""


@dataclass(frozen=True)
class _Scope(Columns):
    indexed: IndexedConditions = field(default_factory=IndexedConditions)

    @cached_property
    def surroundings(self) -> conditions.Surroundings:
        return conditions.Surroundings(
            self,
            holds=lambda condition, negated: _translate(condition, self, negated),
            is_null=lambda part, data_type: _null(part, data_type, self, is_null=True),
        )


def predicate(
    filters: Sequence[object], columns: Columns, indexed: IndexedConditions | None = None
) -> Predicate:
    """Condition on a row that is necessary for all of the serialised filters to be TRUE."""
    scope = _Scope(
        columns.terms,
        columns.defaulted,
        columns.is_case_sensitive,
        indexed or IndexedConditions(),
    )
    parsed = [_parsed(each) for each in filters]
    return And((*_together(parsed, scope), *(_safely(each, scope) for each in parsed)))


def _parsed(node: object) -> Expression | None:
    try:
        return parse(node)
    except RecursionError:
        return None


def _together(parsed: Sequence[Expression | None], columns: _Scope) -> list[Predicate]:
    known = [each for each in parsed if each is not None]
    try:
        return columns.indexed.of_parts(known, columns) if len(known) == len(parsed) else []
    except RecursionError:
        return []


def _safely(expression: Expression | None, columns: _Scope) -> Predicate:
    try:
        if expression is not None:
            return _translate(expression, columns, False)
    except RecursionError:
        pass
    return Unknown("a deeply nested condition", "write it with fewer levels of AND, OR and NOT")


def _translate(expression: Expression, columns: _Scope, negated: bool) -> Predicate:
    taken_apart = _taken_apart(expression, columns, negated)
    if not columns.indexed.terms:
        return taken_apart
    whole = columns.indexed.of_whole(expression, columns, negated=negated)
    return And((*whole, taken_apart)) if whole else taken_apart


def _taken_apart(expression: Expression, columns: _Scope, negated: bool) -> Predicate:
    match expression:
        case Literal(is_null=True):
            return NEVER
        case Literal(bool(value)):
            return Constant(value is not negated)
        case Call(name) if name in _HANDLERS:
            return _HANDLERS[name](expression, columns, negated)
        case _:
            # A boolean column, or a boolean expression over which there may be an index.
            return _compare(expression, Operator.EQ, Literal(not negated, "boolean"), columns)


def _and(call: Call, columns: _Scope, negated: bool) -> Predicate:
    parts = _translated(call, columns, negated)
    if negated:
        return Or(parts)
    return And((*columns.indexed.of_parts(call.children, columns), *parts))


def _or(call: Call, columns: _Scope, negated: bool) -> Predicate:
    parts = _translated(call, columns, negated)
    return And(parts) if negated else Or(parts)


def _translated(call: Call, columns: _Scope, negated: bool) -> tuple[Predicate, ...]:
    """Members of a chain of one operator, which may nest thousands deep on one side."""
    members: list[Predicate] = []
    waiting: list[Expression] = [call]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call) and each.name == call.name:
            waiting += reversed(each.children)
        else:
            members.append(_translate(each, columns, negated))
    return tuple(members)


def _comparison(call: Call, columns: _Scope, negated: bool) -> Predicate:
    operator, (subject, constant) = _OPERATORS[call.name], call.children
    if isinstance(subject, Literal):
        subject, constant, operator = constant, subject, _TURNED.get(operator, operator)
    if isinstance(constant, Literal) and constant.is_null:
        return NEVER
    if not isinstance(constant, Literal) or isinstance(subject, Literal):
        if operator is Operator.EQ and _are_conditions(call):
            return _alike(call, columns, negated)
        return _unknown(call, negated, _why_no_literal(subject, constant))
    if operator is Operator.EQ and isinstance(constant.value, bool):
        return _translate(subject, columns, negated is constant.value)
    return _compare(subject, _COMPLEMENTS[operator] if negated else operator, constant, columns)


def _null_safe(call: Call, columns: _Scope, negated: bool) -> Predicate:
    subject, constant = call.children
    if isinstance(subject, Literal):
        subject, constant = constant, subject
    if not isinstance(constant, Literal) or isinstance(subject, Literal):
        if _are_conditions(call):
            one, other = (_null(each, "boolean", columns, is_null=True) for each in call.children)
            return Or(
                (_alike(call, columns, negated), Or((one, other)) if negated else And((one, other)))
            )
        return _unknown(call, negated, _why_no_literal(subject, constant))
    if constant.is_null:
        return _null(subject, constant.data_type, columns, is_null=not negated)
    equal = Call("EqualTo", {}, (subject, constant))
    if not negated:
        return _comparison(equal, columns, False)
    # NOT (x <=> v) is TRUE where x is NULL, too.
    is_null = _null(subject, constant.data_type, columns, is_null=True)
    return Or((is_null, _comparison(equal, columns, True)))


def _are_conditions(call: Call) -> bool:
    """Whether a call compares conditions whose parts compare none: levels would multiply."""
    waiting = list(call.children)
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call):
            if each.name in _EQUALITIES and _compares_conditions(each):
                return False
            waiting.extend(each.children)
    return _compares_conditions(call)


def _compares_conditions(call: Call) -> bool:
    return any(isinstance(each, Call) and each.name in _CONDITIONS for each in call.children)


def _alike(call: Call, columns: _Scope, negated: bool) -> Predicate:
    """Condition that both are TRUE or both FALSE; under NOT one is TRUE and the other FALSE."""
    one, other = call.children
    return Or(
        tuple(
            And(
                (
                    _translate(one, columns, is_false),
                    _translate(other, columns, is_false != negated),
                )
            )
            for is_false in (False, True)
        )
    )


def _why_no_literal(subject: Expression, constant: Expression) -> str:
    if isinstance(subject, Opaque) or isinstance(constant, Opaque):
        return "one side is known only when the query runs: compare with a literal"
    if isinstance(subject, Literal):
        return "compares two constants"
    return "compares columns with each other: add an index over this expression"


def _compare(
    subject: Expression, operator: Operator, constant: Literal, columns: _Scope
) -> Predicate:
    """`subject operator constant`; the constant is not NULL."""
    if isinstance(subject, Literal):
        if subject.is_null:
            return NEVER
        sign = _sign(subject, constant)
        if sign is not None:
            return Constant(sign in _SIGNS[operator])
        return Unknown(
            f"{as_text(subject)} {operator} {as_text(constant)}", "compares two constants"
        )
    if constant.value is None:
        return _uncompared(
            subject, operator, constant, f"no index keeps values of type {constant.data_type}"
        )
    needed = _implied(subject, operator, constant, columns)
    term = term_of(subject, columns, constant.data_type)
    if isinstance(term, str):
        return And((*needed, _uncompared(subject, operator, constant, term)))
    return And((*needed, Comparison(term, operator, constant.value)))


def _uncompared(subject: Expression, operator: Operator, constant: Literal, reason: str) -> Unknown:
    return Unknown(f"{as_text(subject)} {operator} {as_text(constant)}", reason)


def _implied(
    subject: Expression, operator: Operator, constant: Literal, columns: _Scope
) -> tuple[Predicate, ...]:
    if names_of(subject) is not None:
        return ()
    return _compare_branches(subject, operator, constant, columns) or conditions.implied(
        subject,
        operator,
        cast(Value, constant.value),
        columns.surroundings,
        constant.data_type,
    )


def _compare_branches(
    subject: Expression, operator: Operator, constant: Literal, columns: _Scope
) -> tuple[Predicate, ...]:
    branches = _branches(subject, constant.data_type, columns)
    if not branches:
        return ()
    return (
        Or(
            tuple(
                And((each.given, _compare(each.value, operator, constant, columns)))
                for each in branches
            )
        ),
    )


def _branches(subject: Expression, data_type: str, columns: _Scope) -> tuple[Branch, ...]:
    around = columns.surroundings
    return branches_of(subject, data_type, around.holds, around.is_null)


def _sign(left: Literal, right: Literal) -> int | None:
    """Sign of the difference in Spark's order; None where that is unknown."""
    if left.data_type != right.data_type or left.value is None or right.value is None:
        return None
    try:
        keys = (key_of(left.value, left.data_type), key_of(right.value, right.data_type))
    except ValueError:
        return None
    match keys:
        case (int(one), int(other)):
            return (one > other) - (one < other)
        case (bytes(one), bytes(other)):
            return (one > other) - (one < other)
    return None


def _null(subject: Expression, data_type: str, columns: _Scope, *, is_null: bool) -> Predicate:
    """`subject IS [NOT] NULL`; the type is asked for where the subject does not have it."""
    term = term_of(subject, columns, data_type)
    if isinstance(term, Term):
        tested: Predicate = IsNull(term) if is_null else IsNotNull(term)
    else:
        tested = Unknown(f"{as_text(subject)} IS {'' if is_null else 'NOT '}NULL", term)
    if names_of(subject) is not None:
        return tested
    needed = conditions.null(subject, columns) if is_null else conditions.not_null(subject, columns)
    return tested if needed is None else And((needed, tested))


def _null_test(call: Call, columns: _Scope, negated: bool) -> Predicate:
    subject = call.children[0]
    # A column's type is taken from the files, which show CHAR and collations.
    asked = "" if names_of(subject) is not None else str(call.arguments.get("type", ""))
    return _null(subject, asked, columns, is_null=(call.name == "IsNull") != negated)


def _is_nan(call: Call, columns: _Scope, negated: bool) -> Predicate:
    for data_type in ("double", "float"):
        term = term_of(call.children[0], columns, data_type)
        if isinstance(term, Term):
            nan = Comparison(term, Operator.NE if negated else Operator.EQ, float("nan"))
            # isnan(NULL) is FALSE and not NULL.
            return Or((IsNull(term), nan)) if negated else nan
    return _unknown(call, negated, str(term))


def _at_least_non_null(call: Call, columns: _Scope, negated: bool) -> Predicate:
    """`df.dropna()`: all of the columns, or at least one, have a value."""
    wanted, parts = (
        call.arguments.get("n"),
        tuple(_null(child, "", columns, is_null=False) for child in call.children),
    )
    if not negated and wanted == len(parts):
        return And(parts)
    if not negated and isinstance(wanted, int) and wanted >= 1:
        return Or(parts)
    return _unknown(call, negated, "asks how many of the columns are NULL")


def _in(call: Call, columns: _Scope, negated: bool) -> Predicate:
    subject, *items = call.children
    literals = [item for item in items if isinstance(item, Literal)]
    if len(literals) != len(items):
        return _unknown(call, negated, "the list has more than literals: compare with literals")
    return _among(subject, literals, columns, negated)


def _in_set(call: Call, columns: _Scope, negated: bool) -> Predicate:
    (subject,) = call.children
    values, data_type = call.arguments.get("values"), call.arguments.get("type")
    if not isinstance(values, list) or not isinstance(data_type, str):
        return _unknown(call, negated, "the list is not shown")
    return _among(subject, [literal(each, data_type) for each in values], columns, negated)


def _among(
    subject: Expression, items: Sequence[Literal], columns: _Scope, negated: bool
) -> Predicate:
    """IN or NOT IN. A NULL in the list matches nothing, and makes NOT IN never TRUE."""
    if not items:
        # Whether NULL IN () is FALSE or NULL is a setting of Spark's.
        return Unknown(f"{as_text(subject)} IN ()", "the list is empty")
    present = [item for item in items if not item.is_null]
    if not present or (negated and len(present) < len(items)):
        return NEVER
    text = f"{as_text(subject)} {'NOT ' if negated else ''}IN ({as_text(present[0])}, ...)"
    if any(item.value is None or item.data_type != present[0].data_type for item in present):
        return Unknown(text, f"no index keeps values of type {present[0].data_type}")
    inside = (
        () if names_of(subject) is not None else _among_ranges(subject, present, columns, negated)
    )
    term = term_of(subject, columns, present[0].data_type)
    if isinstance(term, str):
        return And((*inside, Unknown(text, term)))
    values = tuple(dict.fromkeys(cast(Value, item.value) for item in present))
    return And((*inside, In(term, values, negated)))


def _among_ranges(
    subject: Expression, items: Sequence[Literal], columns: _Scope, negated: bool
) -> tuple[Predicate, ...]:
    """Conditions of IN on the column inside an expression; under NOT those of all values."""
    if len(items) > MOST_REWRITTEN_VALUES:
        return () if negated else _around(subject, items, columns)
    operator = Operator.NE if negated else Operator.EQ
    found = [_implied(subject, operator, item, columns) for item in items]
    if negated:
        return tuple(part for parts in found for part in parts)
    return (Or(tuple(And(parts) for parts in found)),) if all(found) else ()


def _around(
    subject: Expression, items: Sequence[Literal], columns: _Scope
) -> tuple[Predicate, ...]:
    """Condition of the range from the least to the greatest of many numbers."""
    numbers = [item.value for item in items if isinstance(item.value, int | Decimal)]
    if len(numbers) < len(items):
        return ()
    data_type = items[0].data_type
    return (
        *conditions.implied(subject, Operator.GE, min(numbers), columns.surroundings, data_type),
        *conditions.implied(subject, Operator.LE, max(numbers), columns.surroundings, data_type),
    )


def _text(call: Call, columns: _Scope, negated: bool) -> Predicate:
    subject, constant, *_ = call.children
    if not isinstance(constant, Literal) or isinstance(subject, Literal):
        return _unknown(call, negated, "the text to look for is not a literal")
    if constant.is_null:
        return NEVER
    term = term_of(subject, columns, constant.data_type)
    if isinstance(term, str) or not isinstance(constant.value, bytes):
        return _unknown(call, negated, str(term))
    return _text_of(call, term, constant.value, negated)


def _text_of(call: Call, term: Term, value: bytes, negated: bool) -> Predicate:
    match call.name:
        case "StartsWith":
            return StartsWith(term, value, negated)
        case "Like":
            escape = call.arguments.get("escapeChar")
            return conditions.like(term, value, str(escape), negated=negated)
    piece = EndsWith(term, value) if call.name == "EndsWith" else Contains(term, value)
    return Not(piece) if negated else piece


def _like_many(call: Call, columns: _Scope, negated: bool) -> Predicate:
    patterns = call.arguments.get("patterns")
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        return _unknown(call, negated, "the patterns are not shown")
    each_negated = negated is not call.name.startswith("Not")
    is_any = call.name.endswith("Any") is not negated
    parts = tuple(
        _text(
            Call("Like", {"escapeChar": "\\"}, (call.children[0], literal(each, "string"))),
            columns,
            each_negated,
        )
        for each in patterns
    )
    return Or(parts) if is_any else And(parts)


def _branching(call: Call, columns: _Scope, negated: bool) -> Predicate:
    return Or(
        tuple(
            And((each.given, _translate(each.value, columns, negated)))
            for each in _branches(call, "boolean", columns)
        )
    )


def _unknown(expression: Expression, negated: bool, reason: str) -> Unknown:
    return Unknown(f"{'NOT ' if negated else ''}{as_text(expression)}", reason)


_EQUALITIES = ("EqualTo", "EqualNullSafe")
_CONDITIONS = (
    *("And", "Or", "Not", "EqualNullSafe", "IsNull", "IsNotNull", "IsNaN", "In", "InSet"),
    *_OPERATORS,
)

_HANDLERS: Mapping[str, Callable[[Call, _Scope, bool], Predicate]] = {
    "And": _and,
    "Or": _or,
    "Not": lambda call, columns, negated: _translate(call.children[0], columns, not negated),
    **dict.fromkeys(_OPERATORS, _comparison),
    "EqualNullSafe": _null_safe,
    **dict.fromkeys(("IsNull", "IsNotNull"), _null_test),
    "IsNaN": _is_nan,
    "AtLeastNNonNulls": _at_least_non_null,
    "In": _in,
    "InSet": _in_set,
    **dict.fromkeys(("StartsWith", "EndsWith", "Contains", "Like"), _text),
    **dict.fromkeys(("LikeAny", "LikeAll", "NotLikeAny", "NotLikeAll"), _like_many),
    **dict.fromkeys(("If", "CaseWhen", "Coalesce"), _branching),
}

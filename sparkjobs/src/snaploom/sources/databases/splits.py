"""Rows that the predicates of a split leave in doubt, from the predicates only.

A split is right when every row meets exactly one predicate. Where all of them compare one column
with whole numbers, as `id >= 1000 AND id < 2000` does, or its remainder, as `id % 4 = 1` does, each
value's predicates are known without a look at the table: the doubt is what meets none or several,
often nothing, NULL, or what is below zero. A database finds such rows through an index, where it
would otherwise have to look at every row.

Only what means the same in every database and in each of its modes is understood: `<`, `<=`, `>`,
`>=`, `=`, BETWEEN, IN, IS NULL, AND, OR, and `%` or MOD by a number above zero. With anything else
every row is in doubt.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sqlglot import exp

from snaploom.policy.sqlconditions import parse_expression
from snaploom.policy.sqltext import SqlRefused, scan

_UNDERSTOOD = re.compile(
    r"(?:(?!\b\d+[A-Za-z_])[\w\s\"`\[\]<>=(),]|-(?!-)|(?<![-<>=%])%(?![-<>=%]))*", re.ASCII
)
"""No comment, text, operator with several meanings (`||`, `!`) or of somebody's own (`%%`, `<%`),
name of another table, or number that some databases read in their own way (`0x1F`, `1_000`)."""
_MOST_DIGITS = 18
"""Any number of so many digits, and the next one, is a BIGINT to every database."""
_ENDLESS = math.inf

_Bound = int | float
"""A whole number, or an infinity."""
_Range = tuple[_Bound, _Bound]
"""The whole numbers from the first to the one before the second."""


@dataclass(frozen=True)
class Doubt:
    """Values of a column of whole numbers whose rows may not meet exactly one predicate."""

    column: str
    """Its name, as the first predicate writes it; databases differ in the meaning of capitals."""
    ranges: tuple[_Range, ...]
    """From, and up to but not with; in order, and apart from each other."""
    has_null: bool

    def condition(self, quoted: str) -> str:
        """SQL that is true for all rows in doubt; empty where there can be none.

        `quoted` is the column as a statement names it.
        """
        null = [f"{quoted} IS NULL"] if self.has_null else []
        return " OR ".join([*(_within(quoted, *each) for each in self.ranges), *null])


@dataclass(frozen=True)
class _Met:
    """The values that meet a condition."""

    ranges: tuple[_Range, ...] = ()
    has_null: bool = False


@dataclass(frozen=True)
class _Named:
    """Names found while walking through conditions."""

    columns: list[str]
    divisors: set[int]
    """Divisors of the column where its remainder is compared; zero where itself is."""


class _NotUnderstoodError(Exception):
    """A condition compares something else than a column and whole numbers."""


def doubt_of(predicates: Sequence[str], dialect: str) -> Doubt | None:
    """The rows that a split may lose or repeat; None where every row is read exactly once.

    The predicates are the texts behind WHERE, one for each part.
    """
    named = _Named([], set())
    try:
        met = [_met(_parsed(each, dialect), named) for each in predicates]
    except (SqlRefused, _NotUnderstoodError):
        return None
    if len({name.casefold() for name in named.columns}) != 1 or len(named.divisors) > 1:
        return None
    has_null = sum(one.has_null for one in met) != 1
    doubted = _met_other_than_once([each for one in met for each in one.ranges])
    column, divisor = named.columns[0], max(named.divisors, default=0)
    if divisor == 0:
        return Doubt(column, doubted, has_null)
    # What is left of a number below zero is below zero too, or nothing, in these databases; if one
    # went by the floor, it would be what is left of some number above.
    if any(first < divisor and behind > 0 for first, behind in doubted):
        return None
    is_below = any(first < 0 and behind > 1 - divisor for first, behind in doubted)
    return Doubt(column, ((-_ENDLESS, 0),) if is_below else (), has_null)


def _met_other_than_once(ranges: Iterable[_Range]) -> tuple[_Range, ...]:
    """The numbers that are in none of some ranges, or in several."""
    changes: Counter[_Bound] = Counter({-_ENDLESS: 0, _ENDLESS: 0})
    for first, behind in ranges:
        changes[first] += 1
        changes[behind] -= 1
    bounds = sorted(changes)
    depths = accumulate(changes[bound] for bound in bounds)
    # Not strictly: the last depth begins where numbers end.
    stretches = zip(pairwise(bounds), depths, strict=False)
    return _united(stretch for stretch, depth in stretches if depth != 1)


def _parsed(predicate: str, dialect: str) -> exp.Expr:
    if _UNDERSTOOD.fullmatch(predicate) is None:
        raise _NotUnderstoodError
    return parse_expression(scan(f"({predicate})"), dialect)


def _met(node: exp.Expr, named: _Named) -> _Met:
    given = {name for name, value in node.args.items() if value}
    match node:
        case exp.Paren() if given == {"this"}:
            return _met(node.this, named)
        case exp.And() if given == {"this", "expression"}:
            return _both(_met(node.this, named), _met(node.expression, named))
        case exp.Or() if given == {"this", "expression"}:
            one, other = _met(node.this, named), _met(node.expression, named)
            return _Met(_united([*one.ranges, *other.ranges]), one.has_null or other.has_null)
        case exp.Is(expression=exp.Null()) if given == {"this", "expression"}:
            _compared_by(node.this, named.columns)
            return _Met(has_null=True)
        case exp.Between() if given == {"this", "low", "high"}:
            named.divisors.add(_compared_by(node.this, named.columns))
            low, high = _number(node.args["low"]), _number(node.args["high"])
            return _Met(((low, high + 1),) if low <= high else ())
        case exp.In() if given == {"this", "expressions"}:
            named.divisors.add(_compared_by(node.this, named.columns))
            numbers = [_number(each) for each in node.expressions]
            return _Met(_united((each, each + 1) for each in numbers))
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.EQ() if given == {
            "this",
            "expression",
        }:
            return _compared(node, named)
    raise _NotUnderstoodError


def _compared(node: exp.Binary, named: _Named) -> _Met:
    operator = type(node)
    compared, literal = node.this, node.expression
    if isinstance(compared, exp.Literal | exp.Neg):
        compared, literal = literal, compared
        turned = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE}
        operator = turned.get(operator, operator)
    named.divisors.add(_compared_by(compared, named.columns))
    number = _number(literal)
    first = {exp.GT: number + 1, exp.GTE: number, exp.EQ: number}.get(operator, -_ENDLESS)
    behind = {exp.LT: number, exp.LTE: number + 1, exp.EQ: number + 1}.get(operator, _ENDLESS)
    return _Met(((first, behind),))


def _compared_by(node: exp.Expr, columns: list[str]) -> int:
    """The divisor of a remainder, or zero; of an operand: a column, with no table before it."""
    given = [name for name, value in node.args.items() if value]
    match node:
        case exp.Paren() if given == ["this"]:
            return _compared_by(node.this, columns)
        case exp.Column() if given == ["this"]:
            columns.append(node.name)
            return 0
        case exp.Mod() if given == ["this", "expression"]:
            divisor = _number(node.expression)
            if divisor > 0 and _compared_by(node.this, columns) == 0:
                return divisor
    raise _NotUnderstoodError


def _number(node: exp.Expr) -> int:
    if isinstance(node, exp.Neg):
        return -_number(node.this)
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise _NotUnderstoodError
    return int(text)


def _both(one: _Met, other: _Met) -> _Met:
    common = (
        (max(first, start), min(behind, end))
        for first, behind in one.ranges
        for start, end in other.ranges
    )
    return _Met(
        _united(each for each in common if each[0] < each[1]), one.has_null and other.has_null
    )


def _united(ranges: Iterable[_Range]) -> tuple[_Range, ...]:
    """The same numbers in as few ranges as there can be, in order."""
    united: list[_Range] = []
    for first, behind in sorted(ranges):
        if united and first <= united[-1][1]:
            united[-1] = (united[-1][0], max(behind, united[-1][1]))
        else:
            united.append((first, behind))
    return tuple(united)


def _within(quoted: str, first: _Bound, behind: _Bound) -> str:
    if first == -_ENDLESS and behind == _ENDLESS:
        return f"{quoted} IS NOT NULL"
    bounds = [f"{quoted} >= {first}"] if first != -_ENDLESS else []
    return " AND ".join([*bounds, *([f"{quoted} < {behind}"] if behind != _ENDLESS else [])])

"""Which rows the predicates of a split leave in doubt, told by the predicates alone.

A split is right when every row meets exactly one predicate. Where all of them compare one column
with whole numbers, as `id >= 1000 AND id < 2000` does, each value's predicates are known without a
look at the table: the doubt is what meets none or several, often nothing or NULL. A database finds
such rows through an index, where it would otherwise have to look at every row.

Only what means the same in every database and in each of its modes is understood: `<`, `<=`, `>`,
`>=`, `=`, BETWEEN, IN, IS NULL, AND and OR. With anything else every row is in doubt.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_UNDERSTOOD = re.compile(r"(?:(?!\b\d+[A-Za-z_])[\w\s\"`\[\]<>=(),]|-(?!-))*", re.ASCII)
"""No comment, text, operator with several meanings (`||`, `!`), name of another table, or number
that some databases read in their own way (`0x1F`, `1_000`)."""
_MOST_DIGITS = 18
"""Any number of so many digits, and the next one, is a BIGINT to every database."""
_ENDLESS = math.inf

_Bound = int | float
"""A whole number, or an infinity."""
_Range = tuple[_Bound, _Bound]
"""The whole numbers from the first to the one before the second."""


@dataclass(frozen=True)
class Doubt:
    """Values of a column of whole numbers whose rows meet no predicate, or more than one."""

    column: str
    """Its name, as the first predicate writes it; databases differ in what capitals mean."""
    ranges: tuple[_Range, ...]
    """From, and up to but not with; in order, and apart from each other."""
    has_null: bool

    def condition(self, quoted: str) -> str:
        """SQL that is true for the rows in doubt; empty where there can be none.

        Args:
            quoted: the column, as it stands in a statement.
        """
        null = [f"{quoted} IS NULL"] if self.has_null else []
        return " OR ".join([*(_within(quoted, *each) for each in self.ranges), *null])


@dataclass(frozen=True)
class _Met:
    """The values that meet a condition."""

    ranges: tuple[_Range, ...] = ()
    has_null: bool = False


class _NotUnderstoodError(Exception):
    """A condition compares something else than a column and whole numbers."""


def doubt_of(predicates: Sequence[str], dialect: str) -> Doubt | None:
    """What a split leaves in doubt; None where every row is.

    Args:
        predicates: what stands behind WHERE, one for each part.
        dialect: whose SQL they are, by its name in sqlglot.
    """
    try:
        columns: list[str] = []
        met = [_met(_parsed(each, dialect), columns) for each in predicates]
    except (SqlglotError, RecursionError, _NotUnderstoodError):
        return None
    if len({name.casefold() for name in columns}) != 1:
        return None
    changes: Counter[_Bound] = Counter({-_ENDLESS: 0, _ENDLESS: 0})
    for first, behind in (each for one in met for each in one.ranges):
        changes[first] += 1
        changes[behind] -= 1
    bounds = sorted(changes)
    depths = accumulate(changes[bound] for bound in bounds)
    # Not strictly: the last depth begins where numbers end.
    stretches = zip(pairwise(bounds), depths, strict=False)
    doubted = (stretch for stretch, depth in stretches if depth != 1)
    return Doubt(columns[0], _united(doubted), sum(one.has_null for one in met) != 1)


def _parsed(predicate: str, dialect: str) -> exp.Expr:
    if _UNDERSTOOD.fullmatch(predicate) is None:
        raise _NotUnderstoodError
    return sqlglot.parse_one(f"({predicate})", into=exp.Condition, dialect=dialect)


def _met(node: exp.Expr, columns: list[str]) -> _Met:
    given = {name for name, value in node.args.items() if value}
    match node:
        case exp.Paren() if given == {"this"}:
            return _met(node.this, columns)
        case exp.And() if given == {"this", "expression"}:
            return _both(_met(node.this, columns), _met(node.expression, columns))
        case exp.Or() if given == {"this", "expression"}:
            one, other = _met(node.this, columns), _met(node.expression, columns)
            return _Met(_united([*one.ranges, *other.ranges]), one.has_null or other.has_null)
        case exp.Is(expression=exp.Null()) if given == {"this", "expression"}:
            columns.append(_column(node.this))
            return _Met(has_null=True)
        case exp.Between() if given == {"this", "low", "high"}:
            columns.append(_column(node.this))
            low, high = _number(node.args["low"]), _number(node.args["high"])
            return _Met(((low, high + 1),) if low <= high else ())
        case exp.In() if given == {"this", "expressions"}:
            columns.append(_column(node.this))
            numbers = [_number(each) for each in node.expressions]
            return _Met(_united((each, each + 1) for each in numbers))
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.EQ() if given == {
            "this",
            "expression",
        }:
            return _compared(node, columns)
    raise _NotUnderstoodError


def _compared(node: exp.Binary, columns: list[str]) -> _Met:
    operator = type(node)
    column, literal = node.this, node.expression
    if not isinstance(column, exp.Column):
        column, literal = literal, column
        turned = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE}
        operator = turned.get(operator, operator)
    columns.append(_column(column))
    number = _number(literal)
    first = {exp.GT: number + 1, exp.GTE: number, exp.EQ: number}.get(operator, -_ENDLESS)
    behind = {exp.LT: number, exp.LTE: number + 1, exp.EQ: number + 1}.get(operator, _ENDLESS)
    return _Met(((first, behind),))


def _column(node: exp.Expr) -> str:
    """The name of a column that stands alone, without a table."""
    if isinstance(node, exp.Column) and [n for n, value in node.args.items() if value] == ["this"]:
        return node.name
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

"""Predicates under SQL's three-valued logic: the algebra, its normal form, and SQL text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from snaploom.skipping.core.definition import Term, Value

# A small algebra of predicates under SQL's three-valued logic.


class Operator(StrEnum):
    """Comparison of a term with a literal; the term is always on the left."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True)
class Comparison:
    """`term op value`: NULL where the term is NULL. NaN equals itself and is greatest (Spark)."""

    term: Term
    operator: Operator
    value: Value


@dataclass(frozen=True)
class In:
    """`term IN (values)`, or NOT IN; `values` has no NULL, whose effect is settled before."""

    term: Term
    values: tuple[Value, ...]
    is_negated: bool = False


LARGEST_MODULUS = 2**62
"""Of `Residue`: sums of two residues stay within the 64 bits of keys."""


@dataclass(frozen=True)
class Residue:
    """`pmod(term - first, modulus) < count`, and the term lies between `low` and `high`.

    Whole numbers in the units in which keys count: days, microseconds, a decimal's last digit.
    """

    term: Term
    modulus: int
    """From 2 to `LARGEST_MODULUS`."""
    first: int
    """From 0 to `modulus` - 1."""
    count: int
    """From 1 to `modulus` - 1."""
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class StartsWith:
    """The term's text begins with a prefix (UTF-8 bytes), or does not."""

    term: Term
    prefix: bytes
    is_negated: bool = False


@dataclass(frozen=True)
class Contains:
    """The term's text contains a piece (UTF-8 bytes)."""

    term: Term
    piece: bytes


@dataclass(frozen=True)
class EndsWith:
    """The term's text ends with a suffix (UTF-8 bytes)."""

    term: Term
    suffix: bytes


@dataclass(frozen=True)
class IsNull:
    """The term is NULL."""

    term: Term


@dataclass(frozen=True)
class IsNotNull:
    """The term is not NULL."""

    term: Term


@dataclass(frozen=True)
class And:
    """Conjunction."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """Disjunction."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    """Negation, before normal form."""

    part: Predicate


@dataclass(frozen=True)
class Constant:
    """TRUE for every row, or for none (FALSE and NULL alike)."""

    is_true: bool


@dataclass(frozen=True)
class Unknown:
    """A condition that is not understood: it may be TRUE for any row."""

    text: str = ""
    reason: str = ""
    """Reason why it is not understood, and a rewrite that would help."""


Leaf = Comparison | In | Residue | StartsWith | Contains | EndsWith | IsNull | IsNotNull
"""A condition on one term."""

Predicate = Leaf | And | Or | Not | Constant | Unknown
"""Any condition."""


# Negation normal form: NOT only inside leaves, And and Or flat, constants folded.

_OPPOSITES = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
}

_TRUE = Constant(True)
_FALSE = Constant(False)


def normal_form(predicate: Predicate) -> Predicate:
    """A condition without `Not`, with flat `And` and `Or` and constants folded.

    Returns:
        A condition that is TRUE wherever the given one is. One that is nested too deeply to be
        taken apart becomes `Unknown`.
    """
    try:
        return _normal(predicate, False)
    except RecursionError:
        return Unknown("a deeply nested condition", "write it with fewer levels of AND, OR and NOT")


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Members of the conjunction that a condition in normal form is."""
    return predicate.parts if isinstance(predicate, And) else (predicate,)


def _normal(predicate: Predicate, negated: bool) -> Predicate:
    match predicate:
        case Not(part):
            return _normal(part, not negated)
        case And() | Or():
            is_and = isinstance(predicate, And) != negated
            return _joined(is_and, _members(is_and, predicate, negated))
        case Constant(is_true):
            # FALSE may stand for NULL, whose negation is not TRUE: TRUE is the safe answer.
            return Constant(is_true != negated)
        case _:
            return _negated_leaf(predicate) if negated else _leaf(predicate)


def _members(is_and: bool, predicate: Predicate, negated: bool) -> list[Predicate]:
    # Long chains nest thousands deep on one side, so they are unrolled, not recursed into.
    members: list[Predicate] = []
    waiting = [(predicate, negated)]
    while waiting:
        part, flipped = waiting.pop()
        while isinstance(part, Not):
            part, flipped = part.part, not flipped
        if isinstance(part, And | Or) and (isinstance(part, And) != flipped) == is_and:
            waiting += [(child, flipped) for child in reversed(part.parts)]
        else:
            members.append(_normal(part, flipped))
    return members


def _joined(is_and: bool, members: list[Predicate]) -> Predicate:
    neutral, absorbing = (_TRUE, _FALSE) if is_and else (_FALSE, _TRUE)
    kind = And if is_and else Or
    parts: dict[Predicate, None] = {}
    for member in members:
        inner = member.parts if isinstance(member, kind) else (member,)
        parts.update(dict.fromkeys(part for part in inner if part != neutral))
    if absorbing in parts:
        return absorbing
    if len(parts) <= 1:
        return next(iter(parts), neutral)
    return kind(tuple(parts))


def _leaf(leaf: Predicate) -> Predicate:
    match leaf:
        case In(term, values, is_negated) if not values:
            # NOT IN () is TRUE even for NULL; IN () never is.
            return Constant(is_negated)
        case In(term, (value,), is_negated):
            return Comparison(term, Operator.NE if is_negated else Operator.EQ, value)
        case StartsWith(term, b"", False) | Contains(term, b"") | EndsWith(term, b""):
            return IsNotNull(term)
        case StartsWith(_, b"", True):
            return _FALSE
        case _:
            return leaf


def _negated_leaf(leaf: Predicate) -> Predicate:
    match leaf:
        case Comparison(term, operator, value):
            return Comparison(term, _OPPOSITES[operator], value)
        case In() | StartsWith():
            return _leaf(replace(leaf, is_negated=not leaf.is_negated))
        case IsNull(term):
            return IsNotNull(term)
        case IsNotNull(term):
            return IsNull(term)
        case Contains(term) | EndsWith(term):
            # No leaf means "does not contain"; that it is TRUE for no NULL is kept.
            reason = "no index proves that every value contains a piece"
            return And((IsNotNull(term), Unknown(f"NOT ({predicate_text(leaf)})", reason)))
        case Unknown(text, reason):
            return Unknown(f"NOT ({text})" if text else "", reason)
        case _:
            return Unknown(f"NOT ({predicate_text(leaf)})")


# Conditions and values as people write them in SQL, for reports; never parsed again.

WIDTH = 80
"""Columns of reports."""
LONGEST_TEXT = 60
"""Longest text or hexadecimal literal that is shown whole."""
MOST_VALUES = 5
"""Most members of a list that are shown."""
MOST_PARTS = 20
"""Most parts of a condition that are shown."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def predicate_text(predicate: Predicate) -> str:
    """A condition in SQL, long lists cut."""
    match predicate:
        case Comparison(term, operator, value):
            return f"{term.label} {operator} {value_text(value, term.data_type)}"
        case In(term, values, is_negated):
            shown = [value_text(value, term.data_type) for value in values[:MOST_VALUES]]
            more = f", ... {len(values)} values" if len(values) > MOST_VALUES else ""
            return f"{term.label} {'NOT ' * is_negated}IN ({', '.join(shown)}{more})"
        case Residue(term, modulus, first, 1):
            return f"pmod({term.label}, {modulus}) = {first}"
        case Residue(term, modulus, first, count):
            return f"pmod({term.label} - {first}, {modulus}) < {count}"
        case StartsWith(term, prefix, is_negated):
            return f"{term.label} {'NOT ' * is_negated}LIKE {_quoted(prefix, after='%')}"
        case Contains(term, piece):
            return f"{term.label} LIKE {_quoted(piece, before='%', after='%')}"
        case EndsWith(term, suffix):
            return f"{term.label} LIKE {_quoted(suffix, before='%')}"
        case IsNull(term):
            return f"{term.label} IS NULL"
        case IsNotNull(term):
            return f"{term.label} IS NOT NULL"
        case And(parts):
            return _joined_text(parts, " AND ")
        case Or(parts):
            return _joined_text(parts, " OR ")
        case Not(part):
            return f"NOT ({predicate_text(part)})"
        case Constant(is_true):
            return "TRUE" if is_true else "FALSE"
        case Unknown(text):
            return text or "a condition that is not understood"


def value_text(value: Value, data_type: str) -> str:
    """A literal in SQL, from Catalyst's internal form; its type decides about dates."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return _hexadecimal(value) if data_type == "binary" else _quoted(value)
    if isinstance(value, int) and data_type in ("date", "timestamp", "timestamp_ntz"):
        return _moment(value, data_type)
    return str(value)


def _joined_text(parts: Sequence[Predicate], word: str) -> str:
    shown = [
        f"({predicate_text(part)})" if isinstance(part, And | Or) else predicate_text(part)
        for part in parts[:MOST_PARTS]
    ]
    if len(parts) > MOST_PARTS:
        shown.append(f"... {len(parts)} parts")
    return word.join(shown)


def _moment(value: int, data_type: str) -> str:
    try:
        if data_type == "date":
            return f"DATE '{(_EPOCH + timedelta(days=value)).date()}'"
        moment = _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        # Spark's calendar is larger than Python's, which ends at the years 1 and 9999.
        return f"{data_type.upper()} {value}"
    zone = "Z" if data_type == "timestamp" else ""
    return f"{data_type.upper()} '{moment.replace(tzinfo=None).isoformat(' ')}{zone}'"


def _quoted(value: bytes, before: str = "", after: str = "") -> str:
    text = value.decode("utf-8", "backslashreplace")
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + "..."
    return "'" + before + text.replace("'", "''") + after + "'"


def _hexadecimal(value: bytes) -> str:
    return f"X'{value[: LONGEST_TEXT // 2].hex()}{'...' if len(value) > LONGEST_TEXT // 2 else ''}'"


def wrapped(text: str, indent: str) -> list[str]:
    """Lines of at most `WIDTH` columns; those after the first are indented further."""
    lines = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
    return lines or [indent]


def size_text(size: int) -> str:
    """Bytes in the largest unit of 1,024 that leaves at least one: `1.5 MiB`."""
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"

"""A small algebra of predicates under SQL's three-valued logic.

A query keeps a row when its condition is TRUE, so a file is needed when it may hold a row for which
the condition is TRUE. Conditions are brought into negation normal form first
(`snaploom.skipping.core.normalform`): NOT is pushed into the leaves, by rules that hold for "is
TRUE" under NULL, and what has no exact negation becomes `Unknown`. What an index has on a leaf
("may match") is never negated (rule S13).

`Unknown` is everything that is not understood; it keeps every file (rule S12).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from snaploom.skipping.core.terms import Term, Value


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
    """The condition, for people."""
    reason: str = ""
    """Reason why it is not understood, and a rewrite that would help."""


Leaf = Comparison | In | Residue | StartsWith | Contains | EndsWith | IsNull | IsNotNull
"""A condition on one term."""

Predicate = Leaf | And | Or | Not | Constant | Unknown
"""Any condition."""

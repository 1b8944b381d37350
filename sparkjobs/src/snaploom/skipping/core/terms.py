"""Terms: subjects of indexes and of predicates.

A term is a column, a nested field or an expression, together with Spark's type of it. Two terms
are the same when key and type are; an index serves a predicate only then (rules S7 and S15).

Values are in Catalyst's internal form, so that nothing depends on how a literal is printed:

| Spark type | value | Arrow type in which it is kept |
|---|---|---|
| boolean | bool | bool |
| tinyint, smallint, int, bigint | int | int8, int16, int32, int64 |
| float, double | float | float32, float64 |
| decimal(p,s) | Decimal | decimal128(p, s) |
| date | int, days since 1970-01-01 | int32 |
| timestamp, timestamp_ntz | int, microseconds since 1970-01-01T00:00:00 | int64 |
| string, binary | bytes (UTF-8 for string) | large_binary |

Everything else (collated strings, char and varchar with padding semantics of their own, intervals,
variant, arrays, maps, whole structs) is kept by no index: `arrow_type` returns None (rule S20).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from snaploom.types.arrow import KEPT
from snaploom.types.schemas import MOST_DIGITS

Value = bool | int | float | Decimal | bytes
"""A value in Catalyst's internal form; never NULL, which predicates express by themselves."""

_DECIMAL = re.compile(r"decimal\(([0-9]{1,3}),\s?(-?[0-9]{1,3})\)")


def arrow_type(data_type: str) -> pa.DataType | None:
    """The Arrow type in which values of a Spark type (its `catalogString`) are kept, or None."""
    match = _DECIMAL.fullmatch(data_type)
    if match is not None:
        precision, scale = int(match[1]), int(match[2])
        is_possible = 1 <= precision <= MOST_DIGITS and abs(scale) <= MOST_DIGITS
        return pa.decimal128(precision, scale) if is_possible else None
    return KEPT.get(data_type)


@dataclass(frozen=True)
class Term:
    """Subject of an index: a column, a nested field or an expression."""

    key: str
    """Identity: canonical JSON; a list of names for a column or nested field (`["a","b"]`), the
    optimizer rule's serialised expression otherwise."""
    data_type: str
    """Spark's type, as its `catalogString`: `bigint`, `decimal(10,2)`, `string`."""
    label: str = field(default="", compare=False)
    """Text as people write it: `a.b`, `lower(c)`."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names from the top-level column to the field; None for an expression."""
        parts = json.loads(self.key)
        is_path = isinstance(parts, list) and bool(parts) and isinstance(parts[0], str)
        return tuple(parts) if is_path else None

    @property
    def is_outdated(self) -> bool:
        """Whether another expression may have its key, as in the first form of keys."""
        return self.names is None and json.loads(self.key)[0] != _EXPRESSION


def is_sound(term: Term) -> bool:
    """Whether a parsed term has a well-formed key and a type that can be kept."""
    try:
        parts = json.loads(term.key)
    except (ValueError, RecursionError):
        return False
    if not isinstance(parts, list) or not parts:
        return False
    is_expression = parts[0] in (_EXPRESSION, _EXPRESSION_BEFORE) and len(parts) == 2
    is_path = all(isinstance(part, str) for part in parts)
    return (is_expression or is_path) and arrow_type(term.data_type) is not None


_EXPRESSION = {"expression": 2}
"""First element of an expression's key, which no column name can be: the version of the form."""
_EXPRESSION_BEFORE = {"expression": True}
"""That of the first version, which did not write arrays, maps, structs and intervals in full."""


def column_term(names: tuple[str, ...], data_type: str) -> Term:
    """Term of a column (`("a",)`) or of a nested field (`("a", "b")`)."""
    key = json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))
    return Term(key=key, data_type=data_type, label=".".join(names))


def expression_term(serialised: object, data_type: str, label: str) -> Term:
    """Term of an expression, from the JSON value that the optimizer rule serialises it to."""
    key = json.dumps([_EXPRESSION, serialised], ensure_ascii=False, separators=(",", ":"))
    return Term(key=key, data_type=data_type, label=label)

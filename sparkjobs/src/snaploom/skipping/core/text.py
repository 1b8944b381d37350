"""Conditions and values as people write them in SQL, for reports; never parsed again."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

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
    Or,
    Predicate,
    Residue,
    StartsWith,
    Unknown,
)
from snaploom.skipping.core.terms import Value

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
            return _joined(parts, " AND ")
        case Or(parts):
            return _joined(parts, " OR ")
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


def _joined(parts: Sequence[Predicate], word: str) -> str:
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

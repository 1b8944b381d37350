"""`{{ SNAPSHOT | FORMAT }}` in queries: where it may stand, and the number that takes its place.

A placeholder is a number by itself. It is replaced as a token of the query, by a BIGINT literal in
parentheses; inside text, a quoted name, a comment, or glued to a word it is refused, so that
nothing is ever pasted into what somebody else delimits.
"""

from __future__ import annotations

import re

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.models.times import NANOS_PER_MILLISECOND, NANOS_PER_SECOND, EpochNanos
from snaploom.planning.sqlgate.lexer import SqlRefused, TokenKind, scan

PLACEHOLDER = re.compile(r"\{\{(?P<inside>[^{}]*+)\}\}")
"""Anything in the form of a placeholder. It holds no braces, so that the search is linear; the scan
refuses those that are left."""

_UNITS = {"UNIX_SECONDS": NANOS_PER_SECOND, "UNIX_MILLISECONDS": NANOS_PER_MILLISECOND}
PLACEHOLDER_FORMATS = tuple(_UNITS)
"""Formats in which the snapshot time can be asked for."""

_INSIDE = re.compile(r"\s*SNAPSHOT\s*\|\s*(?P<format>[A-Za-z0-9_]+)\s*")


def is_placeholder(match: re.Match[str]) -> bool:
    """Whether a text in the form of a placeholder names a known format."""
    inside = _INSIDE.fullmatch(match["inside"])
    return inside is not None and inside["format"] in _UNITS


def misplaced(query: str) -> tuple[str, ...]:
    """Placeholders of a query that do not stand by themselves; empty where it cannot be read."""
    # A word of the same length stands for each: so nothing grows, and places stay the same.
    text = PLACEHOLDER.sub(lambda match: "z" * len(match[0]), query)
    try:
        read = scan(text).tokens
    except SqlRefused:
        return ()
    words = {(token.start, token.end) for token in read if token.kind is TokenKind.WORD}
    return tuple(m[0] for m in PLACEHOLDER.finditer(query) if m.span() not in words)


def bound(query: str, snapshot: EpochNanos) -> str:
    """The query with a snapshot time in place of its placeholders, all of which are valid."""

    def literal(match: re.Match[str]) -> str:
        inside = _INSIDE.fullmatch(match["inside"])
        assert inside is not None  # validation refuses the others
        return f"({snapshot // _UNITS[inside['format']]}L)"

    return PLACEHOLDER.sub(literal, query)


def placeholder_finding(
    message: str, found: str, owner: DataSource, path: str, hint: str = ""
) -> Finding:
    """The finding about a placeholder that is missing, or stands where none may."""
    forms = " or ".join(f"{{{{ SNAPSHOT | {name} }}}}" for name in PLACEHOLDER_FORMATS)
    return make_finding(
        "SL153",
        message,
        resource=owner.identity,
        path=path,
        found=found or "no placeholder",
        expected="" if hint else forms,
        hint=hint,
    )

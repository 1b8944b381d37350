"""Translates LIKE to conditions on the text's bytes."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Contains,
    EndsWith,
    IsNotNull,
    Operator,
    Predicate,
    StartsWith,
    Unknown,
)
from snaploom.skipping.core.terms import Term

_REPLACEMENT = "\ufffd"
"""What LIKE sees in the place of bytes that are not UTF-8: the bytes themselves do not have it."""


def like(term: Term, value: bytes, escape: str, *, negated: bool) -> Predicate:
    """`term LIKE value ESCAPE escape`, exact for plain text and `text%`, else necessary."""
    pattern = value.decode(errors="replace")
    text = f"{term.label} {'NOT ' * negated}LIKE '{pattern}'"
    pieces = _pieces(pattern, escape)
    if pieces is None or _REPLACEMENT in pattern:
        return Unknown(text, "the pattern is not understood")
    texts = [piece.text.encode() for piece in pieces]
    if len(pieces) == 1:
        return Comparison(term, Operator.NE if negated else Operator.EQ, texts[0])
    if len(pieces) == 2 and not texts[1] and not pieces[0].is_counted:
        return StartsWith(term, texts[0], negated)
    if negated:
        return Unknown(text, "NOT LIKE implies nothing that an index could disprove")
    needs: list[Predicate] = [IsNotNull(term)]
    if texts[0]:
        needs.append(StartsWith(term, texts[0]))
    needs.extend(Contains(term, text) for text in dict.fromkeys(texts[1:-1]) if text)
    if texts[-1]:
        needs.append(EndsWith(term, texts[-1]))
    return And(tuple(needs))


@dataclass(frozen=True)
class _Piece:
    text: str
    """Literal text between two wildcards, or before the first, or after the last."""
    is_counted: bool
    """Whether the wildcard after it is `_`, which stands for exactly one character."""


def _pieces(pattern: str, escape: str) -> list[_Piece] | None:
    """Literal texts between wildcards; None where Spark itself would refuse the pattern."""
    pieces: list[_Piece] = []
    text = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following not in ("_", "%", escape):
                return None
            text += following or ""
        elif character in "_%":
            pieces.append(_Piece(text, character == "_"))
            text = ""
        else:
            text += character
    return [*pieces, _Piece(text, False)]

"""Recognises SQL about skipping indexes, correctly spelt or not.

Whatever is ours and misspelt must never reach Spark's parser: Spark takes `REFRESH SKIPPING INDX
ON t` as the refresh of a path of that name, and does nothing. Whatever is legal in Spark must
never be taken away from it: tables may be called `skipping`, and columns `index`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from snaploom.skipping.statements.tokens import Token, TokenKind, tokens_of

KEYWORD_VERBS = frozenset({"CREATE", "DROP", "ALTER", "ANALYZE", "RECOVER"})
"""In Spark a keyword follows these, so a word like SKIPPING makes the statement ours."""
NAME_VERBS = frozenset({"REFRESH", "DESCRIBE", "DESC", "VACUUM"})
"""A name may follow these, which may be `skipping`: the next word decides."""
VERBS = KEYWORD_VERBS | NAME_VERBS
_LOOKED_AT = 5
_OR_REPLACE = ("OR", "REPLACE")


def is_ours(text: str) -> bool:
    """Whether a text is a statement about skipping indexes, or is meant to be one."""
    head = tuple(islice(tokens_of(text), _LOOKED_AT))
    words = tuple(token.upper for token in head)
    verb, rest = words[0], words[1:]
    if rest[:2] == ("SKIPPING", "INDEX") and _at(rest, 2) in ("ON", "IF"):
        return True
    if verb == "CREATE" and rest[:2] == _OR_REPLACE:
        return is_like(_at(rest, 2), "SKIPPING")
    if verb == "SHOW":
        return is_like(_at(rest, 0), "FLINT") and is_like(_at(rest, 1), "INDEXES")
    if not is_like(_at(rest, 0), "SKIPPING"):
        return False
    return verb in KEYWORD_VERBS or (verb in NAME_VERBS and _names_an_index(verb, rest, head))


def _names_an_index(verb: str, rest: Sequence[str], head: Sequence[Token]) -> bool:
    """Whether INDEX follows, or ON; just `DESC skipping index` is about a column, for Spark."""
    if _at(rest, 1) == "ON":
        return True
    ends = head[3].kind is TokenKind.END or head[3].is_sign(";") if len(head) > 3 else True
    is_column = verb.startswith("DESC") and ends
    return is_like(_at(rest, 1), "INDEX") and not is_column


def _at(words: Sequence[str], position: int) -> str:
    return words[position] if position < len(words) else ""


def is_like(word: str, keyword: str) -> bool:
    """Whether a word is a keyword, or one with a slip or two in it."""
    allowed = 1 if len(keyword) < 6 else 2
    return bool(word) and _distance(word, keyword) <= allowed


def _distance(first: str, second: str) -> int:
    """Letters to insert, leave out, replace or swap with their neighbour."""
    before: list[int] = []
    above = list(range(len(second) + 1))
    for row, letter in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            best = min(
                above[column] + 1, current[column - 1] + 1, above[column - 1] + (letter != other)
            )
            is_swapped = (
                row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other
            )
            current.append(min(best, before[column - 2] + 1) if is_swapped else best)
        before, above = above, current
    return above[-1]

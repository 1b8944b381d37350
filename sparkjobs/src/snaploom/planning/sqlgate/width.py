"""Whether the value of SQL over a whole number depends on how wide the number's type is.

Most functions give the same for 7 as `int` and as `bigint`, or fail where the narrower type is too
narrow. These give something else: other hashes, other bits, NULL for a sum, the type's name.
"""

from __future__ import annotations

from itertools import pairwise

from snaploom.planning.sqlgate.lexer import SqlRefused, scan

_CALLS = frozenset(
    {"hash", "shiftleft", "shiftright", "shiftrightunsigned", "try_add", "try_multiply",
     "try_subtract", "typeof", "xxhash64"}
)  # fmt: skip
_SIGNS = frozenset({"<<", ">>", ">>>"})


def depends_on_width(text: str) -> bool:
    """Whether an expression has any of that."""
    try:
        tokens = scan(text).tokens
    except SqlRefused:
        return False  # nor is it ever computed
    return any(
        token.value in _SIGNS or (following.value == "(" and token.name.casefold() in _CALLS)
        for token, following in pairwise(tokens)
    )

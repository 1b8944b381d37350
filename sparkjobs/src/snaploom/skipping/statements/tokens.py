"""Words, names, numbers, strings and signs of a SQL text.

Never raises: the text may not be ours at all, and then it is not for us to report that it is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class TokenKind(StrEnum):
    """Kinds of tokens."""

    WORD = "WORD"
    """A keyword or a name without quotes."""
    NAME = "NAME"
    """A name in backticks."""
    STRING = "STRING"
    """Text in single or double quotes."""
    NUMBER = "NUMBER"
    """A number, without its sign."""
    SIGN = "SIGN"
    """One character of punctuation."""
    BROKEN = "BROKEN"
    """A quote or a comment that never ends."""
    END = "END"
    """The end of the text."""


@dataclass(frozen=True)
class Token:
    """A token and its position."""

    kind: TokenKind
    text: str
    """As it was written."""
    start: int
    """Offset of its first character."""

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """A word in upper case, as keywords are compared; empty for anything else."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    def is_sign(self, sign: str) -> bool:
        """Whether this is a given character of punctuation."""
        return self.kind is TokenKind.SIGN and self.text == sign

    @property
    def value(self) -> str:
        """The value of a name, string or number, without quotes and escapes."""
        if self.kind is TokenKind.NAME:
            return self.text[1:-1].replace("``", "`")
        if self.kind is TokenKind.STRING:
            return _ESCAPED.sub(_unescaped, self.text[1:-1])
        return self.text


_PATTERNS = (
    (TokenKind.NUMBER, r"\d+\.\d+(?:[eE][+-]?\d+)?(?!\w)|\d+(?:[eE][+-]?\d+)?(?!\w)"),
    (TokenKind.WORD, r"\w+"),
    (TokenKind.NAME, r"`(?:[^`]|``)*`"),
    (TokenKind.STRING, r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""),
    (TokenKind.BROKEN, r"['\"`].*|/\*.*"),
    (TokenKind.SIGN, r"."),
)
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS), re.DOTALL | re.UNICODE
)
_BLANK = re.compile(r"\s+|--[^\n]*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPED = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b"}


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return match[0][0] if escaped is None else _ESCAPES.get(escaped, escaped)


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text without blanks and comments, and one END.

    Comments between `/*` and `*/` may hold others, as Spark allows.
    """
    position = _past_blanks(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            break
        yield Token(TokenKind(match.lastgroup), match[0], position)
        position = _past_blanks(text, match.end())
    yield Token(TokenKind.END, "", len(text.rstrip()))


def _past_blanks(text: str, position: int) -> int:
    while position < len(text):
        blank = _BLANK.match(text, position)
        end = blank.end() if blank is not None else _end_of_comment(text, position)
        if end == position:
            break
        position = end
    return position


def _end_of_comment(text: str, start: int) -> int:
    """End of the comment that starts here; the start itself if it never ends."""
    if not text.startswith("/*", start):
        return start
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return start

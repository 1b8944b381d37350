"""Tokens of a SQL text, a parser's place in them, and what people read about faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from snaploom.errors import StatementInvalid

# Error about a statement that cannot be parsed: the line, and a caret below it.


def invalid(
    text: str, token: Token, message: str, *, expected: str, hint: str | None = None
) -> StatementInvalid:
    """Build the error about one token of a statement."""
    before = text[: token.start]
    number = before.count("\n") + 1
    start = before.rfind("\n") + 1
    line = text[start:].partition("\n")[0].expandtabs(1).rstrip("\r")
    column = token.start - start
    marks = "^" * max(1, min(len(token.text.partition("\n")[0]), len(line) - column))
    return StatementInvalid(
        f"{message}, at line {number}, column {column + 1}\n    {line}\n    {' ' * column}{marks}",
        found=token.text.partition("\n")[0] or "the end of the statement",
        expected=expected,
        hint=hint,
    )


# Words, names, numbers, strings and signs of a SQL text.


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


# Position of a parser in its tokens, with lookahead.

_NAMES = (TokenKind.WORD, TokenKind.NAME)
_VALUES = (TokenKind.STRING, TokenKind.NUMBER, TokenKind.WORD)


class Cursor:
    """Reads tokens one after the other; errors point at the token."""

    def __init__(self, text: str) -> None:
        """Start at the first token; `StatementInvalid` if a quote or comment never ends."""
        self.text = text
        self._tokens = tuple(tokens_of(text))
        self._next = 0
        for token in self._tokens:
            if token.kind is TokenKind.BROKEN:
                raise invalid(text, token, "this never ends", expected="its closing sign")

    @property
    def token(self) -> Token:
        """The next token; END at the end."""
        return self._tokens[self._next]

    def advance(self) -> Token:
        """Step over the next token."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._next += 1
        return token

    def peek(self, ahead: int = 1) -> Token:
        """A token further on, without stepping."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def refuse(self, expected: str, token: Token | None = None) -> NoReturn:
        """Raise `StatementInvalid` for a token, by default the next one."""
        raise self.error("this does not belong here", expected, token)

    def error(self, message: str, expected: str, token: Token | None = None) -> StatementInvalid:
        """Build the error about a token, by default the next one."""
        return invalid(self.text, token or self.token, message, expected=expected)

    def takes(self, *words: str) -> bool:
        """Step over some keywords if they all stand here."""
        if any(self.peek(ahead).upper != word for ahead, word in enumerate(words)):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over keywords that must stand here."""
        for word in words:
            if self.token.upper != word:
                self.refuse(word)
            self.advance()

    def takes_sign(self, sign: str) -> bool:
        """Step over a sign if it stands here."""
        found = self.token.is_sign(sign)
        if found:
            self.advance()
        return found

    def expect_sign(self, sign: str, others: str = "") -> Token:
        """Step over a sign that must stand here; `others` names what may stand here as well."""
        if not self.token.is_sign(sign):
            self.refuse(f"{sign}{others}")
        return self.advance()

    def name(self, what: str) -> Token:
        """Step over a name."""
        if self.token.kind not in _NAMES:
            self.refuse(what)
        return self.advance()

    def value(self, what: str) -> str:
        """Step over a value: text, a number with or without a sign, or a word such as `true`."""
        sign = "-" if self.takes_sign("-") else ""
        if self.token.kind not in _VALUES or (sign and self.token.kind is not TokenKind.NUMBER):
            self.refuse(what)
        return sign + self.advance().value

    def end(self, others: str = "") -> None:
        """Nothing but a semicolon may follow."""
        self.takes_sign(";")
        if self.token.kind is not TokenKind.END:
            self.refuse(f"{others}the end of the statement")

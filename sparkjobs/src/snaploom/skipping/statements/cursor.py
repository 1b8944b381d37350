"""Position of a parser in its tokens, with lookahead."""

from __future__ import annotations

from typing import NoReturn

from snaploom.errors import StatementInvalid
from snaploom.skipping.statements.invalid import invalid
from snaploom.skipping.statements.tokens import Token, TokenKind, tokens_of

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

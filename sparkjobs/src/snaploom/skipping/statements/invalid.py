"""Error about a statement that cannot be parsed: the line, and a caret below it."""

from __future__ import annotations

from snaploom.errors import StatementInvalid
from snaploom.skipping.statements.tokens import Token


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

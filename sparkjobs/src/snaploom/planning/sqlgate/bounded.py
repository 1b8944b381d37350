"""sqlglot with an end to its work: the same verdict everywhere, in time that grows with the text.

sqlglot tries one reading of a text, goes back, and tries another; nested, that doubles the work at
each level. A parser here counts the tokens that it steps over, steps over some hundred times as
many as there are at most, and then refuses the text. Counting is not a clock: a laptop, a webhook
and a job come to the same verdict. The operator has parsing done by processes that it can kill all
the same (`snaploom_operator.verdicts`), since this module bounds what sqlglot does, not what it
might come to do.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from snaploom.planning.sqlgate.lexer import SPARK, Scanned, SqlRefused, TokenKind

STEPS_A_TOKEN = 50
"""Steps that a text may take for each of its tokens. The examples' queries take up to 4."""
STEPS_AT_LEAST = 5_000
"""Steps that any text may take."""
_IN_FRONT = "SELECT\n"
"""Turns an expression into a statement, on a line of its own so that columns stay."""

# sqlglot logs what it passes over; what matters is in the tree.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class _Exhausted(Exception):
    """All steps are taken."""


def parse(scanned: Scanned, dialect: str = SPARK) -> exp.Expr:
    """Parse one statement that the scan has passed.

    `dialect` is sqlglot's name.

    Raises:
        SqlRefused: it is not exactly one statement, or takes too many steps.
    """
    return _guarded(scanned, scanned.text, 0, dialect)


def parse_expression(scanned: Scanned, dialect: str = SPARK) -> exp.Expr:
    """Parse one expression that the scan has passed, such as `concat(a, b.c)`.

    Raises:
        SqlRefused: it is not exactly one expression, or takes too many steps.
    """
    statement = _guarded(scanned, f"{_IN_FRONT}{scanned.text}", len(_IN_FRONT), dialect)
    others = [name for name, value in statement.args.items() if value and name != "expressions"]
    if not isinstance(statement, exp.Select) or others or len(statement.expressions) != 1:
        raise SqlRefused("expected one expression, without SELECT, FROM or further clauses")
    expression: exp.Expr = statement.expressions[0]
    if isinstance(expression, exp.Alias) or expression.is_star:
        raise SqlRefused("expected one expression, without AS and *")
    return expression


def _guarded(scanned: Scanned, text: str, shift: int, dialect: str) -> exp.Expr:
    try:
        return _parsed(scanned, text, shift, dialect)
    except ParseError as error:
        raise SqlRefused(_reason(error, lines_before=1 if shift else 0)) from None
    except SqlglotError as error:
        raise SqlRefused(_first_line(error)) from None
    except RecursionError:
        raise SqlRefused("it is nested too deeply") from None
    except _Exhausted:
        raise SqlRefused("it takes too long to understand; write it with less nesting") from None
    except SqlRefused:
        raise
    except Exception as error:  # noqa: BLE001 - sqlglot fails in ways that it does not document
        raise SqlRefused(f"it is not understood ({type(error).__name__})") from None


def _parsed(scanned: Scanned, text: str, shift: int, dialect: str) -> exp.Expr:
    language = Dialect.get_or_raise(dialect)
    tokens = language.tokenize(text)
    _check_same_tokens(scanned, tokens, shift)
    _check_commas(tokens, lines_before=1 if shift else 0)
    parser = _bounded_parser(dialect)(dialect=language)
    statements = [part for part in parser.parse(tokens, text) if part is not None]
    if len(statements) != 1:
        raise SqlRefused(f"expected one statement, found {len(statements)}")
    statement: exp.Expr = statements[0]
    if isinstance(statement, exp.Command):
        raise SqlRefused("this is a command, not a query")
    if isinstance(statement, exp.Select) and not statement.expressions:
        raise SqlRefused("there is nothing after SELECT")
    return statement


@cache
def _bounded_parser(dialect: str) -> type[Parser]:
    """The parser of a dialect that counts its steps, and never takes a call for a type."""
    base: Any = Dialect.get_or_raise(dialect).parser_class

    class Bounded(base):  # type: ignore[misc]  # the dialect decides the base
        """Counts steps."""

        _steps = 0
        """Those that are left."""

        def parse(self, raw_tokens: list[Token], sql: str | None = None) -> Any:
            self._steps = STEPS_AT_LEAST + STEPS_A_TOKEN * len(raw_tokens)
            return super().parse(raw_tokens, sql)

        def _advance(self, times: int = 1) -> None:
            self._steps -= 1
            if self._steps < 0:
                raise _Exhausted
            super()._advance(times)

        def _parse_types(self, check_func: bool = False, *args: Any, **settings: Any) -> Any:
            # `struct(` is a call wherever a value may stand. Read as a type first, each level of
            # nesting would double the work.
            follows = self._next.token_type if self._next else None
            if check_func and follows in (TokenType.L_PAREN, TokenType.L_BRACKET):
                return None
            return super()._parse_types(check_func, *args, **settings)

    return Bounded


def _check_same_tokens(scanned: Scanned, tokens: list[Token], shift: int) -> None:
    """Refuse a text whose quotes sqlglot sees elsewhere than Spark: it would judge another one."""
    quoted = [t for t in scanned.tokens if t.kind in (TokenKind.TEXT, TokenKind.NAME)]
    starts = {token.start - shift: token.end + 1 - shift for token in tokens}
    for token in quoted:
        # sqlglot counts a letter in front (x'1F') to the text, and makes two texts of 'a''b'.
        at = starts.get(token.start) or starts.get(token.start - 1)
        while at is not None and at < token.end:
            at = starts.get(at)
        if at != token.end:
            raise SqlRefused("quotes are ambiguous here", token.value[:20])


def _check_commas(tokens: list[Token], lines_before: int) -> None:
    """The parser lets a comma before FROM pass; Spark does not."""
    following = [*(token.token_type for token in tokens[1:]), None]
    ends = (None, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE)
    for token, then in zip(tokens, following, strict=True):
        if token.token_type is TokenType.COMMA and then in ends:
            raise SqlRefused("there is a comma too many", ",", token.line - lines_before, token.col)


def _reason(error: ParseError, lines_before: int) -> str:
    if not error.errors:
        return _first_line(error)
    first = error.errors[0]
    description = str(first.get("description") or "it is not understood").rstrip(".")
    if description.startswith("Required keyword"):  # its text names classes of the parser
        description = "something is missing"
    line = max(1, (first.get("line") or 1) - lines_before)
    return f"{description} (line {line} of the SQL, near column {first.get('col')})"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it is not understood"])[0]

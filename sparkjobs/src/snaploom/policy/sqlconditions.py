"""Conditions that databases evaluate, and SQL whose result differs when it is computed again."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token as ParserToken
from sqlglot.tokenizer_core import TokenType

from snaploom.policy.sqlfunctions import is_moment
from snaploom.policy.sqltext import SPARK, Scanned, SqlRefused, Token, TokenKind, scan

# sqlglot with an end to its work: the same verdict everywhere, in time that grows with the text.

STEPS_A_TOKEN = 50
"""Steps that a text may take for each of its tokens. The examples' queries take up to 4."""
STEPS_AT_LEAST = 5_000
"""Steps that any text may take."""
_IN_FRONT = "SELECT\n"
"""Turns an expression into a statement, on a line of its own so that columns stay."""

# sqlglot logs what it passes over; what matters is in the tree.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class _Exhausted(Exception):
    """All steps that a text of so many tokens has are taken."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.steps = STEPS_AT_LEAST + STEPS_A_TOKEN * tokens


def parse(scanned: Scanned, dialect: str = SPARK) -> exp.Expr:
    """Parse one statement that the scan has passed.

    `dialect` is sqlglot's name.
    """
    return _guarded(scanned, scanned.text, 0, dialect)


def parse_expression(scanned: Scanned, dialect: str = SPARK) -> exp.Expr:
    """Parse one expression that the scan has passed, such as `concat(a, b.c)`."""
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
    except _Exhausted as allowed:
        raise SqlRefused(
            f"parsing it takes more than {allowed.steps:,} steps for {allowed.tokens:,} tokens; "
            "write it with less nesting"
        ) from None
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

        def parse(self, raw_tokens: list[ParserToken], sql: str | None = None) -> Any:
            self._allowed = _Exhausted(len(raw_tokens))
            self._steps = self._allowed.steps
            return super().parse(raw_tokens, sql)

        def _advance(self, times: int = 1) -> None:
            self._steps -= 1
            if self._steps < 0:
                raise self._allowed
            super()._advance(times)

        def _parse_types(self, check_func: bool = False, *args: Any, **settings: Any) -> Any:
            # `struct(` is a call wherever a value may stand. Read as a type first, each level of
            # nesting would double the work.
            follows = self._next.token_type if self._next else None
            if check_func and follows in (TokenType.L_PAREN, TokenType.L_BRACKET):
                return None
            return super()._parse_types(check_func, *args, **settings)

    return Bounded


def _check_same_tokens(scanned: Scanned, tokens: list[ParserToken], shift: int) -> None:
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


def _check_commas(tokens: list[ParserToken], lines_before: int) -> None:
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


# Conditions that a database evaluates: the allowed forms, the same for every database.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    "abs ascii binary_checksum bit_length bitand btrim cast ceil ceiling char_length "
    "character_length checksum coalesce concat crc32 date date_part date_trunc datepart day "
    "dayofmonth dayofweek dayofyear day_of_month day_of_week day_of_year epoch extract floor "
    "greatest hash hashbytes hashint4 hashint8 hashtext hashtextextended hour ifnull isfinite "
    "isnull lcase least left len length lower ltrim md5 minute mod month nullif nvl octet_length "
    "ora_hash power quarter right round rtrim second sign sqrt strpos substr substring to_char "
    "to_date to_days to_number to_timestamp trim trunc truncate try_cast ucase upper week weekday "
    "year"
)
"""Functions of databases that give a value of their arguments and of nothing else, and take time
and memory in proportion to them."""
_BEFORE_BRACKET = _words(
    "and as between by case char character datetime datetime2 datetimeoffset dec decimal else "
    "float from ilike in is like nchar not number numeric nvarchar nvarchar2 or raw then time "
    "timestamp timestamptz varbinary varchar varchar2 when xor"
)
"""Words before a bracket that call nothing: keywords, and types with a length."""
_WITH_FROM = _words("extract substr substring trim")
"""Functions in whose brackets FROM separates arguments."""
_REFUSED_WORDS = _words(
    "all any array attach call columns copy describe do exec execute exists except for from group "
    "having install intersect into join lateral limit load minus model new next offset order "
    "outfile over pivot pragma prior procedure returning row sample select set show some summarize "
    "table tablesample union unnest unpivot using values with"
)
"""Words that begin something else than a condition in some database. A column that is called so
stands in quotes."""
_VARYING_WORDS = _words(
    "current_catalog current_date current_role current_schema current_time current_timestamp "
    "current_user localtime localtimestamp rownum session_user sysdate system_user systimestamp "
    "user utc_date utc_time utc_timestamp"
)
"""Functions of databases without brackets whose result is another one for each statement: the parts
of a table are read by one statement each, and would overlap or leave rows out. A column that is
called so stands in quotes."""
_MOMENTS = frozenset({"postgres", "sqlite", "duckdb"})
"""Dialects of databases that read `'now'` and `'today'` as the time of the statement."""
_SIGNS = frozenset(
    ["(", ")", ",", "+", "-", "*", "/", "%", "&", "|", "=", "<>", "!=", "<", ">", "<=", ">=", "<=>",
     "||", "::"]
)  # fmt: skip
_OF_TSQL = frozenset("[]")
_APART = "parts of a table are read at different times, and would overlap or leave rows out"
_LETTERS = (TokenKind.WORD, TokenKind.NUMBER, TokenKind.TEXT, TokenKind.NAME)
"""Prefixes that change the meaning of quotes directly behind: `E'...'`, `U&'...'`, `x'...'`."""

_NODES = (
    exp.Abs, exp.Add, exp.And, exp.Anonymous, exp.Between, exp.BitwiseAnd, exp.BitwiseOr,
    exp.Boolean, exp.Case, exp.Cast, exp.Ceil, exp.Coalesce, exp.Column, exp.Concat, exp.DPipe,
    exp.DataType, exp.DataTypeParam, exp.Date, exp.DateStrToDate, exp.DateTrunc, exp.Day,
    exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Div, exp.EQ, exp.Escape, exp.Extract,
    exp.Floor, exp.GT, exp.GTE, exp.Greatest, exp.Hour, exp.ILike, exp.Identifier, exp.If, exp.In,
    exp.IntDiv, exp.Interval, exp.Is, exp.LT, exp.LTE, exp.Least, exp.Left, exp.Length, exp.Like,
    exp.Literal, exp.Lower, exp.MD5, exp.Minute, exp.Mod, exp.Month, exp.Mul, exp.NEQ, exp.Neg,
    exp.Not, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif, exp.Or, exp.Paren, exp.Pow,
    exp.Quarter, exp.Right, exp.Round, exp.SafeDivide, exp.Second, exp.Sign, exp.Sqrt,
    exp.StrPosition, exp.StrToDate, exp.StrToTime, exp.Sub, exp.Substring, exp.TimestampTrunc,
    exp.TimeToStr, exp.ToChar, exp.ToNumber, exp.Trim, exp.Trunc, exp.TryCast, exp.TsOrDsToDate,
    exp.Tuple, exp.Upper, exp.Var, exp.Week, exp.Xor, exp.Year,
)  # fmt: skip
"""Parts that a condition's tree may have; subclasses of them are others, and are not."""
_TYPES = (
    exp.DataType.INTEGER_TYPES
    | exp.DataType.REAL_TYPES
    | exp.DataType.TEXT_TYPES
    | exp.DataType.TEMPORAL_TYPES
    | {
        exp.DataType.Type.BINARY,
        exp.DataType.Type.BOOLEAN,
        exp.DataType.Type.INTERVAL,
        exp.DataType.Type.UUID,
        exp.DataType.Type.VARBINARY,
    }
)
"""Types that a value may be cast to; others look into the database's own catalogue."""


def parse_condition(text: str, dialect: str, added: Iterable[str] = ()) -> tuple[exp.Expr, Scanned]:
    """Parse one condition about a table's own columns.

    `text` stands behind WHERE; `added` are the functions that an administrator added.
    """
    functions = FUNCTIONS | {name.casefold() for name in added}
    if scan(text).text != text:
        raise SqlRefused("it has a comment, a hint or a semicolon")
    # In brackets, it can be nothing but a value; and it stands in some when it is run.
    scanned = scan(f"({text})")
    fault = _fault_of_tokens(scanned, dialect, functions)
    if fault:
        raise SqlRefused(fault)
    parsed = parse_expression(scanned, dialect)
    fault = _fault_of_tree(parsed, functions)
    if fault:
        raise SqlRefused(fault)
    return parsed, scanned


def _fault_of_tokens(scanned: Scanned, dialect: str, functions: frozenset[str]) -> str:
    if len(scanned.tokens) <= 2:
        return "it is empty"
    faults = _faults(scanned.tokens, dialect, functions)
    return next((fault for fault in faults if fault), "")


def _faults(tokens: Sequence[Token], dialect: str, functions: frozenset[str]) -> Iterator[str]:
    depth = 0
    callers: list[str] = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        word = token.value.casefold() if token.kind is TokenKind.WORD else ""
        if token.value == "(":
            callers.append(tokens[place - 1].value.casefold() if place else "")
            depth += 1
        elif token.value == ")":
            callers.pop()
            depth -= 1
            if depth == 0 and following is not None:
                yield "its parentheses do not match"
        if token.kind is TokenKind.SIGN:
            yield _fault_of_sign(token.value, dialect)
        elif token.kind in (TokenKind.TEXT, TokenKind.NAME):
            yield _fault_of_quoted(token, tokens[place - 1], following)
            if (
                dialect in _MOMENTS
                and token.kind is TokenKind.TEXT
                and is_moment(token.value[1:-1])
            ):
                yield f"{token.value} is the time of the statement: {_APART}; write a fixed time"
        elif following is not None and following.value == "(":
            yield _fault_of_call(word, functions)
        elif word in _VARYING_WORDS:
            yield (
                f"`{token.value}` has another value in another statement: {_APART}; write a "
                "fixed value, and put a column called so into quotes"
            )
        elif word in _REFUSED_WORDS and not _separates(word, tokens[place - 1], callers):
            yield f"`{token.value}` has no place in a condition; a column called so needs quotes"


def _separates(word: str, before: Token, callers: Sequence[str]) -> bool:
    """Whether a word is the FROM of `extract(day FROM x)`, or of `IS DISTINCT FROM`."""
    is_compared = before.upper == "DISTINCT" and before.kind is TokenKind.WORD
    return word == "from" and (is_compared or callers[-1] in _WITH_FROM)


def _fault_of_sign(sign: str, dialect: str) -> str:
    if sign == ";":
        return "it has a comment, a hint or a semicolon"
    if sign == ".":
        return "a condition is about columns of its own table, which need nothing in front"
    is_known = sign in _SIGNS or (dialect == "tsql" and sign in _OF_TSQL)
    return "" if is_known else f"`{sign}` is not an operator that every database has"


def _fault_of_quoted(token: Token, before: Token, following: Token | None) -> str:
    if "\\" in token.value:
        return "a backslash in quotes, which databases read in different ways"
    is_close = before.end == token.start
    if token.value[0] in "rR" or (is_close and (before.kind in _LETTERS or before.value == "&")):
        return "a letter directly before quotes changes their meaning"
    if following is not None and following.value == "(":
        return "the name of a function in quotes"
    return ""


def _fault_of_call(word: str, functions: frozenset[str]) -> str:
    if word in functions or word in _BEFORE_BRACKET:
        return ""
    shown = word[:60]
    return (
        f"{shown}() is not on the list of functions; an administrator can add it to the list "
        f"`functions` (chart value allow.functions, or --allow functions={shown})"
    )


def _fault_of_tree(parsed: exp.Expr, functions: frozenset[str]) -> str:
    for node in parsed.walk():
        if isinstance(node, exp.Query | exp.Subquery):
            return "it has a subquery"
        if isinstance(node, exp.Anonymous):
            if node.name.casefold() not in functions:
                return f"{node.name}() is not on the list of functions"
        elif type(node) not in _NODES and not (
            isinstance(node, exp.Func)
            and not (functions - FUNCTIONS).isdisjoint(name.casefold() for name in node.sql_names())
        ):
            return f"{node.key.upper()} has no place in a condition"
        if isinstance(node, exp.DataType) and node.this not in _TYPES:
            return f"{node.sql()} is not a type of plain values"
        if isinstance(node, exp.Column) and len(node.parts) > 1:
            return "a condition is about columns of its own table, which need nothing in front"
    return ""

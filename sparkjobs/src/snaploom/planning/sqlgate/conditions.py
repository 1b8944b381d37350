"""Conditions that a database evaluates: the allowed forms, the same for every database.

A condition stands in a statement of the database, with the rights of the job's user there. By
functions, subqueries and commands it could read other tables, files and servers, write, or wait. So
it is scanned first by rules that all databases share, where every word before a bracket must be on
a list; then it is parsed by the database's own dialect, where every part of the tree must be on a
list. What is not known is refused: another statement, a comment, a subquery, a function, a type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from snaploom.planning.sqlgate.bounded import parse_expression
from snaploom.planning.sqlgate.lexer import Scanned, SqlRefused, Token, TokenKind, scan
from snaploom.planning.sqlgate.nondeterminism import is_moment


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

    Raises:
        SqlRefused: it is none.
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
        elif type(node) not in _NODES and not _is_added(node, functions):
            return f"{node.key.upper()} has no place in a condition"
        if isinstance(node, exp.DataType) and node.this not in _TYPES:
            return f"{node.sql()} is not a type of plain values"
        if isinstance(node, exp.Column) and len(node.parts) > 1:
            return "a condition is about columns of its own table, which need nothing in front"
    return ""


def _is_added(node: exp.Expr, functions: frozenset[str]) -> bool:
    """Whether it is a function that sqlglot has a class for, and that an administrator added."""
    return isinstance(node, exp.Func) and any(
        name.casefold() in functions - FUNCTIONS for name in node.sql_names()
    )

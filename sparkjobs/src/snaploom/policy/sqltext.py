"""SQL as text: a linear scan by Spark's lexical rules, and parsing with a bound on its work."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import pairwise

from snaploom import policy

# A linear scan of SQL by the lexical rules of Spark 4.3, with limits.

SPARK = "spark"
"""Name of the dialect whose rules these are."""
MOST_CHARACTERS = 65_536
"""Length of a text; the models allow no longer ones (rule R17)."""
MOST_TOKENS = 8_192
"""Tokens of a text: some ten times those of TPC-H's longest query with all its columns."""
MOST_NESTING = 32
"""Brackets, CASE and signs inside one another. BigQuery's structs end at 15, and the parser needs
some 25 of Python's 1,000 stack frames for each."""
MOST_LITERALS = 4_096
"""Numbers and quoted texts: as many as a long IN list has."""


class SqlRefused(ValueError):
    """A text that the scan refuses; the message is written for people, with line and column."""

    def __init__(self, message: str, found: str = "", line: int = 0, column: int = 0) -> None:
        place = f" (line {line} of the SQL, column {column})" if line else ""
        super().__init__(f"{message}{place}")
        self.found = found
        """Text that was found, for a finding; never longer than a few words."""


class TokenKind(Enum):
    """The kind of a token."""

    WORD = "word"
    """A keyword or a name without quotes."""
    NAME = "name"
    """A name in backticks."""
    TEXT = "text"
    NUMBER = "number"
    SIGN = "sign"
    """A bracket, comma, point, semicolon or operator."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token, with its place in the text."""

    kind: TokenKind
    value: str
    """As it stands in the text, quotes included."""
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word in capitals."""
        return self.value.upper()

    @property
    def name(self) -> str:
        """A word or name as a name: without backticks."""
        if self.kind is TokenKind.NAME:
            return self.value[1:-1].replace("``", "`")
        return self.value


@dataclass(frozen=True)
class Scanned:
    """A text that passed."""

    text: str
    """Without comments: each of their characters is a space, so that places are the same."""
    tokens: tuple[Token, ...]


_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<hint>/\*\+)
    | (?P<block>/\*)
    | (?P<line>--[^\r\n]*+)
    | (?P<raw>[rR](?:'[^']*+'|"[^"]*+"))
    | (?P<text>'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")
    | (?P<name>`(?:[^`]|``)*+`)
    | (?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?
        (?:[bB][dD]|[lLsSyYfFdD])?(?![A-Za-z0-9_]))
    | (?P<word>[A-Za-z0-9_]++)
    | (?P<sign><=>|>>>|->|=>|==|<>|!=|<=|>=|<<|>>|\|\||\|>|!<|!>|::|[][().,:;+\-*/%=<>&|^~!])
    """,
    re.VERBOSE | re.DOTALL,
)
"""Each alternative matches greedily and never backtracks, so that the scan is linear."""

_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Characters that no text of SQL needs, and that parsers take differently."""
_KINDS = {
    "raw": TokenKind.TEXT, "text": TokenKind.TEXT, "name": TokenKind.NAME,
    "number": TokenKind.NUMBER, "word": TokenKind.WORD, "sign": TokenKind.SIGN,
}  # fmt: skip
_CLOSING = {")": "(", "]": "["}
_OF_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
"""Words behind which `<` opens the parameters of a type."""
_PREFIXES = frozenset({"-", "+", "~", "!", "NOT"})
"""Operators that may stand before one another without a bracket."""
_BEGINNINGS = {
    "'": "a quoted text never ends",
    '"': "a quoted text never ends",
    "`": "a name in backticks never ends",
    "$": "`$` quotes and variables are not allowed",
    ":": "parameters (:name) are not allowed",
    "?": "parameters (?) are not allowed",
    "{": "braces are not allowed here",
    "}": "braces are not allowed here",
    "@": "`@` is not allowed outside quotes",
    "#": "`#` is not allowed outside quotes",
    "\\": "a backslash is not allowed outside quotes",
}


def scan(text: str) -> Scanned:
    """Scan one text: an expression, or a statement with at most one semicolon at its end.

    Raises:
        SqlRefused: it is too long, too deep or has too much, or something that is refused.
    """
    if len(text) > MOST_CHARACTERS:
        raise SqlRefused(f"it may have {MOST_CHARACTERS:,} characters", f"{len(text):,} characters")
    unfit = _UNFIT.search(text)
    if unfit is not None:
        raise _refused(text, unfit.start(), "control characters are not allowed", ascii(unfit[0]))
    variable = text.find("${")
    if variable >= 0:
        raise _refused(
            text, variable, "`${` is not allowed: Spark would replace it by a variable", "${"
        )
    clean: list[str] = []
    tokens: list[Token] = []
    for kind, start, end in _pieces(text):
        if kind is None:
            clean.append("".join(sign if sign in "\r\n" else " " for sign in text[start:end]))
            continue
        clean.append(text[start:end])
        tokens.append(Token(kind, text[start:end], start, end))
    if len(tokens) > MOST_TOKENS:
        raise SqlRefused(
            f"it may have {MOST_TOKENS:,} words, values and signs", f"{len(tokens):,} of them"
        )
    literals = sum(token.kind in (TokenKind.TEXT, TokenKind.NUMBER) for token in tokens)
    if literals > MOST_LITERALS:
        raise SqlRefused(f"it may have {MOST_LITERALS:,} values", f"{literals:,} values")
    _check_nesting(text, tokens)
    return Scanned("".join(clean), tuple(tokens))


def _pieces(text: str) -> Iterator[tuple[TokenKind | None, int, int]]:
    """Tokens, and the text between them (None), in order and without a gap."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unknown(text, at)
        group, end = match.lastgroup or "", match.end()
        if group == "hint":
            raise _refused(text, at, "hints are not allowed", "/*+")
        if group == "block":
            end = _end_of_block(text, at)
        elif group == "line" and match[0].endswith("\\"):
            raise _refused(
                text, at, "a comment may not end in a backslash, behind which it would go on", "\\"
            )
        yield _KINDS.get(group), at, end
        at = end


def _end_of_block(text: str, start: int) -> int:
    """The place behind a bracketed comment that has no other in it."""
    end = text.find("*/", start + 2)
    nested = text.find("/*", start + 2, len(text) if end < 0 else end + 1)
    if nested >= 0:
        raise _refused(text, nested, "a comment may not stand in another one", "/*")
    if end < 0:
        raise _refused(text, start, "this comment never ends", "/*")
    return end + 2


def _check_nesting(text: str, tokens: list[Token]) -> None:
    """Refuse excessive nesting, brackets that do not match, and a second statement."""
    opened: list[str] = []
    signs = 0
    for place, token in enumerate(tokens):
        word = token.upper if token.kind in (TokenKind.WORD, TokenKind.SIGN) else ""
        signs = signs + 1 if word in _PREFIXES else 0
        if not _opens_or_closes(opened, word, tokens, place):
            raise _refused(text, token.start, "this bracket closes none", word)
        if word == ":" and not (opened[-1:] == ["<"] and _names_a_field(tokens, place)):
            raise _refused(text, token.start, _BEGINNINGS[":"], ":")
        if word == ";" and place != len(tokens) - 1:
            raise _refused(
                text, token.start, "expected one statement, found another behind `;`", ";"
            )
        if len(opened) + signs > MOST_NESTING:
            message = f"it is nested too deeply: {MOST_NESTING} levels are allowed"
            raise _refused(text, token.start, message, token.value)
    unclosed = next((sign for sign in opened if sign in _CLOSING.values()), "")
    if unclosed:
        raise SqlRefused("a bracket is never closed", unclosed)


def _opens_or_closes(opened: list[str], word: str, tokens: list[Token], place: int) -> bool:
    """Update the list of open brackets at a token; whether a token that closes had its partner."""
    if opened[-1:] == ["<"] and (word in ("AND", "OR") or tokens[place].kind is TokenKind.NUMBER):
        opened.pop()  # a comparison with a column of this name, and no type
    before = tokens[place - 1].upper if place else ""
    is_case = word == "CASE" and before != "."
    if is_case or word in ("(", "[") or (word == "<" and before in _OF_TYPES):
        opened.append(word)
    elif word in (">", ">>", ">>>"):
        while word and opened[-1:] == ["<"]:
            opened.pop()
            word = word[1:]
    elif word == "END" and before != ".":
        if opened[-1:] == ["CASE"]:
            opened.pop()
    elif word in _CLOSING:
        while opened and opened[-1] in ("CASE", "<"):
            opened.pop()
        return bool(opened) and opened.pop() == _CLOSING[word]
    return True


def _names_a_field(tokens: list[Token], place: int) -> bool:
    """Whether a colon stands behind the name of a struct's field: `struct<a: int, b: int>`."""
    if place < 2:
        return False
    named, before = tokens[place - 1], tokens[place - 2]
    return named.kind in (TokenKind.WORD, TokenKind.NAME) and before.value in ("<", ",")


def _unknown(text: str, at: int) -> SqlRefused:
    sign = text[at]
    if not sign.isascii():
        what = "letters" if sign.isalpha() else "characters"
        message = f"{what} outside ASCII must stand in quotes; a name in backticks, as `{sign}`"
        return _refused(text, at, message, ascii(sign))
    return _refused(text, at, _BEGINNINGS.get(sign, "this is not SQL"), sign)


def _refused(text: str, at: int, message: str, found: str) -> SqlRefused:
    line = text.count("\n", 0, at) + 1
    return SqlRefused(message, found, line, at - text.rfind("\n", 0, at))


# Columns, calls and clauses of a SQL text as plain data: the one form in which SQL is judged.


class SqlForm(StrEnum):
    """Rules by which a text is read."""

    QUERY = "QUERY"
    EXPRESSION = "EXPRESSION"
    """One expression over columns."""
    CONDITION = "CONDITION"
    """One condition over the columns of a table, which a database evaluates."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text of a declaration, and how it is read."""

    text: str
    form: SqlForm
    dialect: str = SPARK
    """Dialect, by sqlglot's name; of a condition it is the database's."""
    added: tuple[str, ...] = ()
    """Functions that an administrator added to those that a condition may call."""


@dataclass(frozen=True, slots=True)
class SqlFacts:
    """Facts extracted from one SQL text."""

    statement: str
    """Kind of the statement, such as SELECT or INSERT."""
    is_query: bool
    """Whether it is a SELECT, or several that are united."""
    tables: tuple[str, ...]
    """Tables that it reads, names of its own WITH clauses left out where these are in scope."""
    has_source: bool
    """Whether it reads any table, its own names included."""
    columns: tuple[str, ...]
    """Columns that it reads, as paths with the case of the text, odd names in backticks."""
    calls: tuple[str, ...]
    """Functions that it calls, as dotted names in lower case, as the text has them."""
    selects: tuple[str, ...] | None
    """Names of the columns that it returns; None with a star."""
    aliases: tuple[str, ...]
    """Names that it gives by AS, and that the rest of it may read as columns."""
    beyond_query: tuple[str, ...]
    """Parts that no query may have: programs that rows are sent through, other versions."""
    beyond_simple: tuple[str, ...]
    """Parts beyond SELECT, WHERE and GROUP BY over one table, as people call them."""
    beyond_aggregate: tuple[str, ...]
    """Parts beyond an expression over the rows of one table."""
    has_aggregate: bool
    data_type: str
    """Type of an expression, as far as its text shows; empty where it does not."""
    of_session: tuple[str, ...] = ()
    """Parts that depend on the time, the user or the session, as people write them."""
    of_chance: tuple[str, ...] = ()
    """Parts that depend on chance, or on where Spark computes a row."""
    of_order: tuple[str, ...] = ()
    """Parts that depend on the order in which Spark comes across rows."""

    @property
    def beyond_expression(self) -> tuple[str, ...]:
        """Parts beyond an expression over the columns of one row."""
        aggregates = ("an aggregate function",) if self.has_aggregate else ()
        return (*aggregates, *self.beyond_aggregate)

    @property
    def folded_columns(self) -> frozenset[str]:
        """The columns that it reads, ignoring case."""
        return frozenset(name.casefold() for name in self.columns)

    def columns_besides(self, name: str) -> tuple[str, ...]:
        """Columns that it reads, but for one and its parts."""
        return tuple(sorted(path for path in self.columns if path.casefold().split(".")[0] != name))


@dataclass(frozen=True, slots=True)
class SqlFault:
    """Reason why a text is no acceptable SQL."""

    message: str
    found: str = ""


SqlVerdict = SqlFacts | SqlFault
SqlJudge = Callable[[SqlText], SqlVerdict]
"""Judges texts: at once, or by a judgement received from another process."""


def judge(text: SqlText) -> SqlVerdict:
    """The facts of a text, or why it has none; never an exception."""
    return policy.judge(text)


# Dependence of SQL over a whole number on the width of the number's type.

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

"""Tokens of a SQL text, and the list of indexes, parameters and options in a statement.

Parameters stand by position as the peers write them, or by name:

| type | by position | names |
|---|---|---|
| `VALUE_SET` | `(limit)` | `limit` |
| `BLOOM_FILTER` in `FOR COLUMNS` | `(bitCount[, numOfHashFunctions])` | become `ndv` and `fpp` |
| `BLOOM_FILTER` elsewhere | `([true, ][num_candidates[, fpp]])` | `num_candidates`, `fpp` |
| | `(false[, num_items[, fpp]])` | `ndv`, `fpp` |

Every type takes `(name = value, ...)`, which is the only form of the types that others register.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import NoReturn

from pydantic import ValidationError

from snaploom.errors import StatementInvalid
from snaploom.models.skippingindex import Index
from snaploom.skipping.lifecycle.declaration import FORMS

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
        token = self.token
        if token.kind is not TokenKind.END:
            self._next += 1
        return token

    def peek(self, ahead: int = 1) -> Token:
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
        self.takes_sign(";")
        if self.token.kind is not TokenKind.END:
            self.refuse(f"{others}the end of the statement")


_POSITIONS: Mapping[str, tuple[str, ...]] = {"VALUE_SET": ("limit",)}
_SEED_BLOOM = ("bitCount", "numOfHashFunctions")
_ADAPTIVE_BLOOM = ("num_candidates", "fpp")
_FIXED_BLOOM = ("ndv", "fpp")
_USUAL_ITEMS = "10000"
"""Values in a filter of the peer that is not adaptive."""
_USUAL_HASHES = 7
_MOST_BITS, _MOST_HASHES = 2**31 - 1, 64
_TRUTHS = ("TRUE", "FALSE")


def parameters_of(
    text: str, type_name: str, tokens: Sequence[Token], is_seed_form: bool
) -> Mapping[str, str]:
    """Parameters by name, from the type's tokens; else `StatementInvalid`."""
    given = _split(text, tokens[2:-1]) if len(tokens) > 1 else []
    if any(len(one) > 1 and one[1].is_sign("=") for one in given):
        return _by_name(text, given)
    if type_name == "BLOOM_FILTER":
        return _bloom(text, given, is_seed_form)
    return _by_position(text, type_name, given, _POSITIONS.get(type_name, ()))


def _bloom(text: str, given: Sequence[Sequence[Token]], is_seed_form: bool) -> Mapping[str, str]:
    if is_seed_form:
        return _from_size(text, given, _by_position(text, "BLOOM_FILTER", given, _SEED_BLOOM))
    first = given[0][0].upper if given else ""
    if first not in _TRUTHS:
        return _by_position(text, "BLOOM_FILTER", given, _ADAPTIVE_BLOOM)
    names = _FIXED_BLOOM if first == "FALSE" else _ADAPTIVE_BLOOM
    usual = {"ndv": _USUAL_ITEMS} if first == "FALSE" else {}
    return {**usual, **_by_position(text, "BLOOM_FILTER", given[1:], names)}


def _from_size(
    text: str, given: Sequence[Sequence[Token]], size: Mapping[str, str]
) -> Mapping[str, str]:
    limits = (_MOST_BITS, _MOST_HASHES)
    for tokens, value, limit in zip(given, size.values(), limits, strict=False):
        if not (value.isascii() and value.isdecimal() and 0 < int(value) <= limit):
            raise invalid(
                text,
                tokens[0],
                "this is not a size of a Bloom filter",
                expected=f"a whole number from 1 to {limit}",
            )
    if not size:
        return {}
    hashes = int(size.get("numOfHashFunctions", _USUAL_HASHES))
    items = max(1, math.floor(int(size["bitCount"]) * math.log(2) / hashes))
    return {"ndv": str(items), "fpp": str(0.5**hashes)}


def _by_position(
    text: str, type_name: str, given: Sequence[Sequence[Token]], names: Sequence[str]
) -> Mapping[str, str]:
    if len(given) > len(names):
        raise invalid(
            text,
            given[len(names)][0],
            f"{type_name} has no parameter at this place",
            expected=f"({', '.join(names)})" if names else f"only {type_name}, or (name = value)",
        )
    values = [_value(text, one) for one in given]
    return dict(zip(names, values, strict=False))


def _split(text: str, tokens: Sequence[Token]) -> list[Sequence[Token]]:
    given: list[list[Token]] = [[]]
    for token in tokens:
        if not token.is_sign(","):
            given[-1].append(token)
        elif given[-1]:
            given.append([])
        else:
            raise invalid(text, token, "a parameter is missing", expected="a value before the ,")
    if not given[-1]:
        if len(given) > 1:
            raise invalid(text, tokens[-1], "a parameter is missing", expected="a value behind it")
        return []
    return list(given)


def _value(text: str, tokens: Sequence[Token]) -> str:
    """One value; a minus sign is read, so that the check of the number can report what is wrong."""
    sign = "-" if len(tokens) > 1 and tokens[0].is_sign("-") else ""
    rest = tokens[len(sign) :]
    if len(rest) != 1 or rest[0].kind not in _VALUES:
        wrong = rest[1] if len(rest) > 1 else rest[0]
        raise invalid(
            text, wrong, "this is not a parameter", expected="a number, a text, or name = value"
        )
    return sign + rest[0].value


def _by_name(text: str, given: Sequence[Sequence[Token]]) -> Mapping[str, str]:
    parameters: dict[str, str] = {}
    for one in given:
        if len(one) < 3 or not one[1].is_sign("=") or one[0].kind is not TokenKind.WORD:
            raise invalid(
                text, one[0], "names are either given to all parameters or to none",
                expected="name = value",
            )  # fmt: skip
        name = one[0].value.lower()
        if name in parameters:
            raise invalid(text, one[0], "this parameter is given twice", expected="once")
        parameters[name] = _value(text, one[2:])
    return parameters


# Options in `WITH (...)`: our names, and the peer's, which are kept and shown.

TRUTHS = ("true", "false")
REFRESH_MODES = ("FULL", "INCREMENTAL", "AUTO")

PROPERTIES: Mapping[str, tuple[str, ...]] = {
    "location": (),
    "form": FORMS,
    "refresh_mode": REFRESH_MODES,
    "auto_refresh": TRUTHS,
    "incremental_refresh": TRUTHS,
    "enabled": TRUTHS,
    "footer_key_label": (),
    "plaintext_footer": TRUTHS,
    # The peer's, for its streaming job, which follows the files; nothing here follows by stream.
    "refresh_interval": (),
    "scheduler_mode": (),
    "checkpoint_location": (),
    "watermark_delay": (),
    "output_mode": (),
    "index_settings": (),
    "id_expression": (),
    "extra_options": (),
}
"""Names, and the values that each may have; any text where there are none."""

FIXED = frozenset({"location", "form", "footer_key_label", "plaintext_footer"})
"""Properties that are fixed when an index is created."""


OWN_PROPERTIES = frozenset(
    {"location", "form", "refresh_mode", "enabled", "footer_key_label", "plaintext_footer"}
)
"""Properties that a declaration has fields for; the others are kept as they are."""


def value_as_kept(name: str, value: str) -> str | None:
    """Normalised value of a property, or None if the name cannot have it."""
    allowed = PROPERTIES.get(name, ())
    if not allowed:
        return value
    return {choice.casefold(): choice for choice in allowed}.get(value.casefold())


# The list of indexes of a statement: `(c TYPE[(parameters)], ...)`.

SYNONYMS = {"VALUE_LIST": "VALUE_SET"}
"""Older names of types: an example in Flint's early manual has VALUE_LIST."""
KEY_LABEL = "key_label"
"""Parameter that every type has: the key with which the index is encrypted."""

_SIMPLE_NAME = re.compile(r"[^\W\d]\w*")
_ITEM = "a column, and the type of its index: price MIN_MAX"


def name_text(name: str) -> str:
    """A name as people write it: in backticks where it needs them."""
    return name if _SIMPLE_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def indexes_of(cursor: Cursor, is_seed_form: bool, types: Collection[str]) -> tuple[Index, ...]:
    """Read the list of indexes with its parentheses; `is_seed_form` as for `parameters_of`."""
    cursor.expect_sign("(")
    indexes = []
    while True:
        indexes.append(_index(cursor, is_seed_form, types))
        if not cursor.takes_sign(","):
            cursor.expect_sign(")", " or ,")
            return tuple(indexes)


def _index(cursor: Cursor, is_seed_form: bool, types: Collection[str]) -> Index:
    item: list[Token] = []
    depth = 0
    while depth or not (cursor.token.is_sign(",") or cursor.token.is_sign(")")):
        if cursor.token.kind is TokenKind.END:
            cursor.refuse(")")
        depth += cursor.token.is_sign("(") - cursor.token.is_sign(")")
        item.append(cursor.advance())
    if not item:
        cursor.refuse(_ITEM)
    place = _place_of_type(item)
    if place < 1:
        raise cursor.error(
            "the type of the index is missing", f"{_ITEM}, {_listed(types)}", item[max(place, 0)]
        )
    name = item[place].upper
    name = SYNONYMS.get(name, name)
    if types and name not in types:
        raise _unknown(cursor.text, item[place], types)
    parameters = dict(parameters_of(cursor.text, name, item[place:], is_seed_form))
    label = parameters.pop(KEY_LABEL, None)
    columns = _columns(item[:place])
    try:
        return Index(
            type=name,
            column=columns[0] if len(columns) == 1 else None,
            columns=columns if len(columns) > 1 else None,
            expression=None if columns else cursor.text[item[0].start : item[place - 1].end],
            parameters=parameters,
            key_label=label,
        )
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise cursor.error(
            f"this index cannot be declared ({fault['msg']})", _ITEM, item[0]
        ) from error


def _place_of_type(item: Sequence[Token]) -> int:
    """Position of the type: the last word before its parameters; -1 if there is none."""
    place = len(item) - 1
    if item[place].is_sign(")"):
        depth = 0
        for place in range(len(item) - 1, -1, -1):
            depth += item[place].is_sign(")") - item[place].is_sign("(")
            if depth == 0:
                break
        place -= 1
    return place if place >= 0 and item[place].kind is TokenKind.WORD else -1


def _unknown(text: str, token: Token, types: Collection[str]) -> StatementInvalid:
    near = get_close_matches(token.upper, types, n=1, cutoff=0.6)
    return invalid(
        text,
        token,
        "there is no index type of this name",
        expected=_listed(types),
        hint=f"write {near[0]}" if near else None,
    )


def _listed(types: Collection[str]) -> str:
    return ", ".join(sorted(types)) or "such as MIN_MAX or VALUE_SET"


def _columns(tokens: Sequence[Token]) -> tuple[str, ...]:
    if tokens[0].is_sign("(") and tokens[-1].is_sign(")") and len(tokens) > 2:
        tokens = tokens[1:-1]
    columns: list[list[str]] = [[]]
    for position, token in enumerate(tokens):
        if position % 2 == 0:
            if token.kind not in (TokenKind.WORD, TokenKind.NAME):
                return ()
            columns[-1].append(name_text(token.value))
        elif token.is_sign(","):
            columns.append([])
        elif not token.is_sign("."):
            return ()
    return tuple(".".join(parts) for parts in columns) if len(tokens) % 2 else ()

"""The list of indexes of a statement: `(c TYPE[(parameters)], ...)`.

What stands before the type is a column, a nested field, several columns in parentheses, or any
other SQL, which then is an expression.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

from snaploom.errors import StatementInvalid
from snaploom.models.skippingindex import Index
from snaploom.skipping.statements.cursor import Cursor
from snaploom.skipping.statements.invalid import invalid
from snaploom.skipping.statements.parameters import parameters_of
from snaploom.skipping.statements.tokens import Token, TokenKind

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
    item = _item(cursor)
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


def _item(cursor: Cursor) -> list[Token]:
    item: list[Token] = []
    depth = 0
    while depth or not (cursor.token.is_sign(",") or cursor.token.is_sign(")")):
        if cursor.token.kind is TokenKind.END:
            cursor.refuse(")")
        depth += cursor.token.is_sign("(") - cursor.token.is_sign(")")
        item.append(cursor.advance())
    return item


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

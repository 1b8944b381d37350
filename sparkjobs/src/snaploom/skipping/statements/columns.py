"""Parameters of one index in a statement: by position as the peers write them, or by name.

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
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

from snaploom.errors import StatementInvalid
from snaploom.models.skippingindex import Index
from snaploom.skipping.lifecycle.declaration import FORMS
from snaploom.skipping.statements.tokens import Cursor, Token, TokenKind, invalid

_VALUES = (TokenKind.NUMBER, TokenKind.STRING, TokenKind.WORD)
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

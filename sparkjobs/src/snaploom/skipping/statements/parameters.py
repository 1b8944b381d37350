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
from collections.abc import Mapping, Sequence

from snaploom.skipping.statements.invalid import invalid
from snaploom.skipping.statements.tokens import Token, TokenKind

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

"""Parameters of one index in a statement: by position as the peers write them, or by name.

| type | by position | names |
|---|---|---|
| `VALUE_SET` | `(limit)` | `limit` |
| `BLOOM_FILTER` in `FOR COLUMNS` | `(bitCount, numOfHashFunctions)` | `bits`, `hashes` |
| `BLOOM_FILTER` elsewhere | `([true, ][candidates[, fpp]])` | `adaptive`, `candidates`, `fpp` |
| | `(false[, ndv[, fpp]])` | `adaptive`, `ndv`, `fpp` |

Every type takes `(name = value, ...)`, which is the only form of the types that others register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snaploom.skipping.statements.invalid import invalid
from snaploom.skipping.statements.tokens import Token, TokenKind

_VALUES = (TokenKind.NUMBER, TokenKind.STRING, TokenKind.WORD)
_POSITIONS: Mapping[str, tuple[str, ...]] = {"VALUE_SET": ("limit",)}
_SEED_BLOOM = ("bits", "hashes")
_ADAPTIVE_BLOOM = ("adaptive", "candidates", "fpp")
_FIXED_BLOOM = ("adaptive", "ndv", "fpp")
_TRUTHS = ("TRUE", "FALSE")


def parameters_of(
    text: str, type_name: str, tokens: Sequence[Token], is_seed_form: bool
) -> Mapping[str, str]:
    """Parameters by name.

    Args:
        text: the whole statement, for errors.
        type_name: the type.
        tokens: the type's own, and its parameters with their parentheses, if there are any.
        is_seed_form: whether FOR COLUMNS stood before the list (ruling D37).

    Raises:
        StatementInvalid: points at the parameter that is wrong.
    """
    given = _split(text, tokens[2:-1]) if len(tokens) > 1 else []
    if any(len(one) > 1 and one[1].is_sign("=") for one in given):
        return _by_name(text, given)
    values = [_value(text, one) for one in given]
    names = _names(type_name, values, is_seed_form)
    if type_name == "BLOOM_FILTER" and not is_seed_form and values:
        if values[0].upper() not in _TRUTHS:
            values.insert(0, "true")
            given.insert(0, given[0])
        values[0] = values[0].lower()
    if len(values) > len(names):
        raise invalid(
            text,
            given[len(names)][0],
            f"{type_name} has no parameter at this place",
            expected=f"({', '.join(names)})" if names else f"{type_name} alone, or (name = value)",
        )
    return dict(zip(names, values, strict=False))


def _names(type_name: str, values: Sequence[str], is_seed_form: bool) -> tuple[str, ...]:
    if type_name != "BLOOM_FILTER":
        return _POSITIONS.get(type_name, ())
    if is_seed_form:
        return _SEED_BLOOM
    return _FIXED_BLOOM if values and values[0].upper() == "FALSE" else _ADAPTIVE_BLOOM


def _split(text: str, tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """What stands between the commas."""
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
    """One value; a minus sign is read, so that who judges the number can say what is wrong."""
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

"""The meaning of a plain YAML scalar, read as kubectl reads it, so that one file means one thing.

kubectl reads YAML 1.1 as go-yaml 2 does: `yes`, `on` and `y` are booleans, `0777` is octal, `1_000`
is a number, but times such as `12:30:00` are not (PyYAML's own resolver takes them for base 60).
Dates and timestamps stay text, because every time in a declaration is text.
"""

from __future__ import annotations

import math
import re

ScalarValue = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_LONGEST_INTEGER = 66
"""Characters of the longest 64-bit number, in binary with its prefix; longer text is no integer."""
_LONGEST_FLOAT = 400
"""More digits than any 64-bit float has an effect of."""


def resolve_plain(text: str) -> ScalarValue:
    """The value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    number = _number(text.replace("_", ""))
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if len(text) <= _LONGEST_INTEGER and (form := _INTEGER.fullmatch(text)):
        value = _integer(form)
        if -(2**63) <= value < 2**64:
            return value
    if len(text) <= _LONGEST_FLOAT and _FLOAT.fullmatch(text):
        real = float(text)
        return real if math.isfinite(real) else None
    return None


def _integer(form: re.Match[str]) -> int:
    for group, base in (("hex", 16), ("binary", 2), ("octal", 8), ("decimal", 10)):
        if form[group] is not None:
            return int(form["sign"] + form[group], base)
    raise AssertionError("one of the groups matched")

"""Escapes text from outside: control characters become their code points.

Names of files, messages of stores and values in documents come from the writer of a folder. On a
terminal an escape sequence among them recolours, hides or forges lines, and a line feed does the
same in a log.
"""

from __future__ import annotations

import re

_LINES = "\n\t"
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Controls of ASCII and of ISO 8859 (0x9b begins an escape sequence as ESC [ does), marks that
reverse the direction of text or take no place, and halves of surrogate pairs, which no terminal
can be sent: Python has them for bytes of a file's name that are no UTF-8."""


def visible(text: str) -> str:
    r"""The text on one line, with every control character as `\x1b` or `\u202e`."""
    return _UNSAFE.sub(_number, text)


def visible_lines(text: str) -> str:
    """The same, but line feeds and tabs stay: for text of ours that has several lines."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in _LINES else _number(match), text)


def json_visible(text: str) -> str:
    r"""A JSON document with the same characters escaped as JSON does, `\u009b` for one."""
    return _UNSAFE.sub(
        lambda match: match[0] if match[0] in _LINES else f"\\u{ord(match[0]):04x}", text
    )


_DRAWN = str.maketrans(
    {"├": "|", "└": "`", "│": "|", "─": "-", "█": "#", "·": ".", "×": "x", "–": "-", "…": "..."}
)
"""Characters of drawings, as `tree` of Unix draws them in ASCII."""


def in_ascii(text: str) -> str:
    r"""The text for a terminal that shows only ASCII; other characters become `\u00e9`."""
    return text.translate(_DRAWN).encode("ascii", "backslashreplace").decode()


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

"""Where the program makes errors, read from its source, and what their texts look like."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from generation.errorclasses import OPERATOR, PACKAGE, ErrorClass, errors

SHOWN = ("found", "expected", "hint")
"""Arguments of an error that are shown, each in a line of its own."""


@dataclass(frozen=True)
class Site:
    """One call that makes an error."""

    place: str
    """`path:line` below the package."""
    error: ErrorClass
    """What it makes."""
    call: ast.Call
    """The call."""

    @property
    def shown(self) -> dict[str, ast.expr]:
        """Its arguments that are shown, besides the message."""
        return {word.arg: word.value for word in self.call.keywords if word.arg in SHOWN}

    def fits(self, lines: dict[str, str]) -> bool:
        """Whether a text can come from here: it contains all that is fixed here.

        Args:
            lines: the message, and what follows each label.
        """
        fixed = {"message": self.call.args[0], **self.shown} if self.call.args else self.shown
        return all(
            re.fullmatch(_pattern(value), lines.get(label, ""), re.DOTALL)
            for label, value in fixed.items()
        )


@cache
def sites() -> tuple[Site, ...]:
    """All of them."""
    named = {error.name: error for error in [*errors(), *errors(OPERATOR)]}
    return tuple(site for root in (PACKAGE, OPERATOR) for site in _sites(root, named))


def _sites(root: Path, named: dict[str, ErrorClass]) -> Iterator[Site]:
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in named:
                    place = f"{path.relative_to(root.parent)}:{node.lineno}"
                    yield Site(place, named[name], node)


def _pattern(value: ast.expr) -> str:
    """A pattern of the texts that an expression can be; anything where that is not fixed."""
    match value:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.Constant(value=None):
            return ""
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
        case ast.IfExp(body=one, orelse=other):
            return f"(?:{_pattern(one)}|{_pattern(other)})"
    return ".*"

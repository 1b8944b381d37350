"""Paths of fields as declarations write them: names joined by dots, odd ones in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quote(name: str) -> str:
    """A name in backticks, so that Spark takes dots, spaces and backticks in it literally."""
    return "`" + name.replace("`", "``") + "`"


def split_path(path: str) -> tuple[str, ...] | None:
    """The names of a path such as `a.b` or `` `a.b`.c ``; None when it is not one."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(path, position)
        if match is None:
            return None
        quoted, plain = match.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        position = match.end()
        if position == len(path):
            return tuple(parts)
        if path[position] != ".":
            return None
        position += 1


def path_text(parts: Iterable[str]) -> str:
    """Names as a path, those in backticks that SQL would take for something else."""
    return ".".join(part if re.fullmatch(r"\w+", part) else quote(part) for part in parts)


def folded_path(path: str) -> str:
    """The one form in which paths are compared: the same for `a` and `` `A` ``."""
    parts = split_path(path)
    return path.casefold() if parts is None else path_text(parts).casefold()

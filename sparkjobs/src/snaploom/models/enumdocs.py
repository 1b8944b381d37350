"""What the members of an enum mean: the strings that stand under them in the source.

Python throws these strings away, and a second list of meanings would soon differ. So
they are read from the source, by the generators of CRDs, editor schemas and reference pages only.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from enum import Enum
from itertools import pairwise


def member_docs(enum: type[Enum]) -> dict[str, str]:
    """The meaning of each member that has one, by value, on one line.

    Raises:
        OSError: the source of the enum is not available.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(enum)))
    body = next(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {
        str(enum[name].value): one_line(text)
        for member, string in pairwise(body)
        if (name := _assigned(member)) and (text := _string(string))
    }


_CITATION = re.compile(r" \((?:rules? [WSRP]|decisions? )\d[^)]*\)")


def one_line(text: str) -> str:
    """A docstring as users read it: on one line, and without citations of rules and decisions."""
    return _CITATION.sub("", " ".join(text.split()))


def _assigned(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _string(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None

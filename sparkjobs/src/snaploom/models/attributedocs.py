"""Meanings of the members of enums and the fields of models: the strings below them in the source.

Python throws these strings away, and a second list of meanings would soon differ. So
they are read from the source, by the generators of CRDs, editor schemas and reference pages only:
reading them takes as long as all else that a model needs to be built.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


def member_docs(enum: type[Enum]) -> dict[str, str]:
    """The meaning of each member that has one, by value, on one line.

    Raises:
        OSError: the source of the enum is not available.
    """
    return {str(enum[name].value): one_line(text) for name, text in _docs(enum)}


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """The meaning of each field of a model that has one, by name inside Python.

    Raises:
        OSError: the source of the model is not available.
    """
    bases = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel)]
    found = dict(docs for base in bases if base is not BaseModel for docs in _docs(base))
    return {name: found[name] for name in model.model_fields if name in found}


_CITATION = re.compile(r" \((?:rules? [WSRP]|decisions? )\d[^)]*\)")


def one_line(text: str) -> str:
    """A docstring as users read it: on one line, and without citations of rules and decisions."""
    return _CITATION.sub("", " ".join(text.split()))


def _docs(owner: type) -> Iterator[tuple[str, str]]:
    found = _classes(owner.__module__).get(owner.__name__)
    for member, string in pairwise(found.body if found else ()):  # none: made by `create_model`
        if (name := _assigned(member)) and (text := _string(string)):
            yield name, inspect.cleandoc(text)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _assigned(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _string(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None

"""What the source documents of names in it: signatures, and the strings that stand under them.

Read from the text, so that modules that import Spark need not be imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from snaploom.models.base import one_line


def module_tree(module: str) -> ast.Module:
    """The syntax tree of a module, by its dotted name."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"there is no source of {module}")
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def meaning(text: str) -> str:
    """A docstring's sentences before `Args:` and the like, as users read them."""
    return one_line(re.split(r"\n\s*(?:Args|Returns|Raises):", text)[0])


def assigned_docs(body: list[ast.stmt]) -> dict[str, str]:
    """Meaning by name, of every assignment that has a string under it."""
    return {
        name: meaning(str(string.value.value))
        for node, string in pairwise(body)
        if (name := _assigned(node))
        and isinstance(string, ast.Expr)
        and isinstance(string.value, ast.Constant)
    }


def field_docs(node: ast.ClassDef) -> dict[str, str]:
    """Meaning by name, of fields and properties of a dataclass; empty where there is none."""
    docs = assigned_docs(node.body)
    found: dict[str, str] = {}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = docs.get(each.target.id, "")
        elif isinstance(each, ast.FunctionDef) and each.decorator_list:
            found[each.name] = meaning(ast.get_docstring(each) or "")
    return found


def named(tree: ast.Module, name: str) -> ast.FunctionDef | ast.ClassDef:
    """A function or class of a module."""
    return next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
    )


def class_named(tree: ast.Module, name: str) -> ast.ClassDef:
    """A class of a module."""
    node = named(tree, name)
    if not isinstance(node, ast.ClassDef):
        raise ValueError(f"{name} is no class")
    return node


def signature(node: ast.FunctionDef) -> str:
    """As it is called: names and defaults, without types and without `self`."""
    arguments = node.args
    plain = [each for each in arguments.args if each.arg != "self"]
    first_default = len(plain) - len(arguments.defaults)
    parts = [
        each.arg
        if place < first_default
        else f"{each.arg}={ast.unparse(arguments.defaults[place - first_default])}"
        for place, each in enumerate(plain)
    ]
    if arguments.vararg is not None:
        parts.append(f"*{arguments.vararg.arg}")
    parts += [
        each.arg if default is None else f"{each.arg}={ast.unparse(default)}"
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg is not None:
        parts.append(f"**{arguments.kwarg.arg}")
    return f"{node.name}({', '.join(parts)})"


def public_methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Methods that users call, in order."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            yield each


def _assigned(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""

"""What skipping refuses, with its messages: read from where they are raised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import snaploom.interop
import snaploom.skipping
from generation.markdown import table

PACKAGES = tuple(Path(each.__file__ or "").parent for each in (snaploom.skipping, snaploom.interop))

SUBJECTS = {
    "TargetNotIndexable": "Files that cannot be indexed",
    "IndexNotPossible": "Indexes, types, parameters and forms that cannot be",
    "StatementInvalid": "Statements and options that are wrong",
    "IndexNotFound": "What is not there",
    "IndexAlreadyExists": "What is there already",
    "IndexBusy": "What cannot be done now",
    "IndexOwned": "What only a resource may do",
    "SortNotPossible": "Sorting that cannot be done",
    "KeyUnavailable": "Keys that are not to be had",
    "IndexUnreadable": "What is stored and cannot be read",
    "SkippingNotAvailable": "Sessions that cannot skip",
}
"""Heading by class of error, in the order of the page."""

_RAISERS = {"StatementInvalid": frozenset({"invalid", "error"})}
"""Functions that make an error of a class, beside the class itself, and take the message."""


@dataclass(frozen=True)
class Refusal:
    """One place where something is refused."""

    message: str
    expected: str
    hint: str


def refusal_sections() -> Iterator[str]:
    """A heading and a table for each class of error."""
    found = _refusals()
    for name, heading in SUBJECTS.items():
        rows = [[each.message, each.expected, each.hint] for each in found[name]]
        if rows:
            yield f"### {heading}\n\n`{name}`.\n"
            yield table(["message", "expected", "hint"], rows)


def _refusals() -> dict[str, list[Refusal]]:
    found: dict[str, dict[Refusal, None]] = {name: {} for name in SUBJECTS}
    for path in (path for each in PACKAGES for path in sorted(each.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = _class_of(node)
            refusal = _refusal(node) if name else None
            if name and refusal is not None:
                found[name][refusal] = None
    return {name: sorted(each, key=lambda one: one.message) for name, each in found.items()}


def _class_of(call: ast.Call) -> str:
    function = call.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if name in SUBJECTS:
        return name
    return next((kind for kind, others in _RAISERS.items() if name in others), "")


def _refusal(call: ast.Call) -> Refusal | None:
    """What the call contains; None where its message is no text that stands there."""
    texts_by_name = {each.arg: _text(each.value) for each in call.keywords}
    place = 2 if isinstance(call.func, ast.Name) and call.func.id == "invalid" else 0
    texts = [_text(argument) for argument in call.args]
    if place >= len(texts) or not texts[place] or texts[place].startswith("`<message>`"):
        return None
    expected = texts_by_name.get("expected") or (
        texts[1] if isinstance(call.func, ast.Attribute) and len(texts) > 1 else ""
    )
    return Refusal(texts[place], expected, texts_by_name.get("hint", ""))


def _text(node: ast.expr) -> str:
    """A text with `<name>` in the place of what is put in; empty where it is none."""
    match node:
        case ast.Constant(str(value)):
            return _escaped(value)
        case ast.JoinedStr(values):
            return "".join(
                f"`<{_short(each.value)}>`" if isinstance(each, ast.FormattedValue)
                else _escaped(str(getattr(each, "value", "")))
                for each in values
            )  # fmt: skip
        case ast.BinOp(left, ast.Add(), right):
            return f"{_text(left) or '...'}{_text(right) or '...'}"
        case ast.IfExp(_, body, orelse):
            return " / ".join(part for part in (_text(body), _text(orelse)) if part)
    return ""


def _short(node: ast.expr) -> str:
    """A name for what is put in: the last one of its expression."""
    names = re.findall(r"[a-z]\w+", ast.unparse(node).lower().replace("_", " ").strip())
    known = [name for name in names if name not in _DULL]
    return known[-1] if known else "value"


_DULL = frozenset({
    "self", "str", "join", "sorted", "map", "len", "label", "value", "text", "splitlines", "for",
    "in", "if", "else", "none", "not",
})  # fmt: skip


def _escaped(text: str) -> str:
    return text.replace("\n", " ").replace("<", "\\<")

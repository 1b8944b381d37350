"""Variables and paths of a document: replaced in the parsed YAML, before a model sees it.

Where they may stand is marked on the models (`snaploom.models.variables`); SQL, patterns, options
and everything else have no mark. Values are put into single fields: a value can end no string, add
no key, and is not looked at for variables again.
"""

from __future__ import annotations

import os
import re
import types
import typing
from collections.abc import Iterable
from collections.abc import Mapping as Names
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, Union

from snaploom.loading.nearmisses import did_you_mean, listing
from snaploom.loading.nodes import Entry, Item, Mapping, Node, Scalar, Segment, Sequence, join_path
from snaploom.models.base import ApiModel
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.projectfile import PROJECT_FILE, ProjectFile
from snaploom.models.variables import LocalPath, PathForm, Variables

_REFERENCE = re.compile(r"\$\((?P<name>[^()]*)\)?")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_GLOB_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_UP = re.compile(r"(?:\.{1,2}/+)+|\.{1,2}$")
ALLOWED = "URIs, paths, names of resources and places, and times"
"""Where variables may stand."""

_Mark = TypeVar("_Mark", Variables, LocalPath)


@dataclass(frozen=True)
class Surroundings:
    """The context of the documents of one file."""

    values: Names[str, str] = field(default_factory=dict)
    """The variables, by name."""
    project: ProjectFile = field(default_factory=ProjectFile)
    """Where variables are declared, for messages."""
    folder: str = ""
    """The file's own folder, absolute; empty for a document that is in no file."""
    is_partial: bool = False
    """Whether values may be missing because the project has faults of its own."""


NO_SURROUNDINGS = Surroundings()


@dataclass(frozen=True)
class Substituted:
    """A document in which variables and relative paths are replaced."""

    node: Node
    used: frozenset[str]
    """Variables that it names."""
    findings: tuple[Finding, ...]


def substituted(
    node: Node, model: type[ApiModel], resource: str, surroundings: Surroundings
) -> Substituted:
    """A document with the values of variables, and with absolute paths."""
    work = _Substitution(resource, surroundings)
    changed = work.node(node, _Slot(model=model), (), {})
    return Substituted(changed, frozenset(work.used), tuple(work.findings))


@dataclass(frozen=True)
class _Slot:
    """The values that a place of a model may hold."""

    variables: Variables | None = None
    path: LocalPath | None = None
    model: type[ApiModel] | None = None
    items: _Slot | None = None
    values: _Slot | None = None


_NOTHING = _Slot()


@cache
def _slots(model: type[ApiModel]) -> Names[str, _Slot]:
    """The values that each field (outside name) of a model may hold."""
    return {
        info.alias or name: _slot(info.annotation, info.metadata)
        for name, info in model.model_fields.items()
    }


def _slot(annotation: Any, marks: Iterable[object] = ()) -> _Slot:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        inner, *more = typing.get_args(annotation)
        return _slot(inner, (*more, *marks))
    if origin in (Union, types.UnionType):
        given = [each for each in typing.get_args(annotation) if each is not type(None)]
        return _slot(given[0], marks) if len(given) == 1 else _NOTHING
    arguments = typing.get_args(annotation)
    if origin is tuple and arguments:
        return _Slot(items=_slot(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Names) and len(arguments) == 2:
        return _Slot(values=_slot(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        return _Slot(_last(marks, Variables), None, annotation)
    return _Slot(_last(marks, Variables), _last(marks, LocalPath))


def _last(marks: Iterable[object], kind: type[_Mark]) -> _Mark | None:
    return next((each for each in reversed(list(marks)) if isinstance(each, kind)), None)


class _Substitution:
    def __init__(self, resource: str, surroundings: Surroundings) -> None:
        self._resource = resource
        self._surroundings = surroundings
        self.used: set[str] = set()
        self.findings: list[Finding] = []

    def node(
        self, node: Node, slot: _Slot, path: tuple[Segment, ...], beside: Names[str, Entry]
    ) -> Node:
        """The node of a place, with everything below it."""
        if isinstance(node, Mapping):
            slots = _slots(slot.model) if slot.model is not None else {}
            other = slot.values or _NOTHING
            entries = {
                key: entry._replace(
                    node=self.node(entry.node, slots.get(key, other), (*path, key), node.entries)
                )
                for key, entry in node.entries.items()
            }
            return Mapping(entries, node.size)
        if isinstance(node, Sequence):
            each = slot.items or _NOTHING
            items = (
                Item(item.at, self.node(item.node, each, (*path, index), {}))
                for index, item in enumerate(node.items)
            )
            return Sequence(tuple(items), node.size)
        if not isinstance(node.value, str):
            return node
        text = self._with_values(node.value, slot, path) if "$(" in node.value else node.value
        if slot.path is not None and _is_path(slot.path, beside):
            text = self._absolute(text, slot.path)
        return node if text is node.value else Scalar(text, text)

    def _with_values(self, text: str, slot: _Slot, path: tuple[Segment, ...]) -> str:
        values = self._surroundings.values
        if slot.variables is None:
            known = [found["name"] for found in _REFERENCE.finditer(text)]
            for name in sorted({name for name in known if name in values}):
                self.used.add(name)
                self.findings.append(self._misplaced(name, path))
            return text

        def value(found: re.Match[str]) -> str:
            name = found["name"]
            self.used.add(name)
            if found[0].endswith(")") and name in values:
                return values[name]
            if not self._surroundings.is_partial:
                self.findings.append(self._undefined(found, path))
            return "undefined"

        return _REFERENCE.sub(value, text)

    def _misplaced(self, name: str, path: tuple[Segment, ...]) -> Finding:
        return make_finding(
            "SL122",
            "a variable cannot stand here",
            resource=self._resource,
            path=join_path(path),
            found=f"$({name})",
            expected=f"variables in {ALLOWED} only, never in SQL, patterns, options or text",
            hint=f"write the value itself; or, if this is no variable, rename `{name}`",
        )

    def _undefined(self, found: re.Match[str], path: tuple[Segment, ...]) -> Finding:
        name, values = found["name"], self._surroundings.values
        only = self._surroundings.project.environments_of(name)
        hint = did_you_mean(name, values)
        if not found[0].endswith(")"):
            hint = "close it: `$(name)`"
        elif not self._surroundings.folder and not values:
            hint = "apply what `snaploom render` prints: a cluster knows no variables"
        elif only:
            hint = f"add `--env {only[0]}`, or give it a value under `variables`"
        return make_finding(
            "SL121",
            f"there is no variable `{name}`" if found[0].endswith(")") else "`$(` is not closed",
            resource=self._resource,
            path=join_path(path),
            found=found[0][:80],
            expected=listing(tuple(values)) or "a variable that has a value",
            hint=hint
            or f"give it a value under `variables` of {PROJECT_FILE}, "
            f"or by `--set {name or 'name'}=VALUE`",
        )

    def _absolute(self, text: str, mark: LocalPath) -> str:
        folder = self._surroundings.folder
        if not folder or not text or _ABSOLUTE.match(text):
            return text
        up = _UP.match(text)
        steps = up[0] if up else ""
        base = os.path.normpath(os.path.join(folder, steps)).rstrip("/")
        return f"{_written(base, mark.form)}/{text[len(steps) :]}"


def _is_path(mark: LocalPath, beside: Names[str, Entry]) -> bool:
    if not mark.field:
        return True
    entry = beside.get(mark.field)
    node = entry.node if entry is not None else None
    return isinstance(node, Scalar) and node.value in mark.values


def _written(folder: str, form: PathForm) -> str:
    """A folder as its characters are written in a path of some form."""
    if form is PathForm.GLOB:
        return _GLOB_SPECIAL.sub(r"\\\g<0>", folder)
    if form is PathForm.PREFIX:
        return folder.replace("{", "{{").replace("}", "}}")
    return folder

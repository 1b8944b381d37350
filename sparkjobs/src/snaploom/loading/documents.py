"""Turns documents to resources: checks versions, replaces variables and paths."""

from __future__ import annotations

import os
import re
import types
import typing
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from typing import Any, TypeVar, Union

from pydantic import JsonValue, ValidationError

from snaploom.loading.composer import Node, Segment, join_path, plain
from snaploom.loading.nearmisses import did_you_mean, display, listing, nearest
from snaploom.loading.pydanticerrors import findings_of
from snaploom.models.allowances import PROJECT_FILE, ProjectFile
from snaploom.models.base import ApiModel, LocalPath, PathForm, Variables
from snaploom.models.common import API_VERSION, GROUP, Resource
from snaploom.models.findings import Finding, make_finding
from snaploom.models.kinds import KIND_BY_NAME, KINDS

# Variables and paths of a document: replaced in the parsed YAML, before a model sees it.

_REFERENCE = re.compile(r"\$\((?P<name>[^()]*)\)?")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_GLOB_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_UP = re.compile(r"(?:\.{1,2}/+)+|\.{1,2}$")
ALLOWED = "URIs, paths, names of resources and places, and times"
"""Fields in which variables may stand."""

_Mark = TypeVar("_Mark", Variables, LocalPath)


@dataclass(frozen=True)
class Surroundings:
    """The context of the documents of one file."""

    values: Mapping[str, str] = field(default_factory=dict)
    project: ProjectFile = field(default_factory=ProjectFile)
    """Place where variables are declared, for messages."""
    folder: str = ""
    """The file's own folder, absolute; empty for a document that is in no file."""
    is_partial: bool = False
    """Whether values may be missing because the project has faults of its own."""


NO_SURROUNDINGS = Surroundings()


@dataclass(frozen=True)
class _Slot:
    variables: Variables | None = None
    path: LocalPath | None = None
    model: type[ApiModel] | None = None
    items: _Slot | None = None
    values: _Slot | None = None


_NOTHING = _Slot()


@cache
def _slots(model: type[ApiModel]) -> Mapping[str, _Slot]:
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
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
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

    def replaced(
        self,
        value: JsonValue,
        slot: _Slot,
        path: tuple[Segment, ...] = (),
        beside: dict[str, JsonValue] | None = None,
    ) -> JsonValue:
        if isinstance(value, dict):
            slots = _slots(slot.model) if slot.model is not None else {}
            other = slot.values or _NOTHING
            return {
                key: self.replaced(inner, slots.get(key, other), (*path, key), value)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            each = slot.items or _NOTHING
            return [self.replaced(one, each, (*path, index)) for index, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        text = self._with_values(value, slot, path) if "$(" in value else value
        mark = slot.path
        if mark is None or (mark.field and _text(beside, mark.field) not in mark.values):
            return text
        return self._absolute(text, mark)

    def _with_values(self, text: str, slot: _Slot, path: tuple[Segment, ...]) -> str:
        values = self._surroundings.values
        if slot.variables is None:
            known = [found["name"] for found in _REFERENCE.finditer(text)]
            for name in sorted({name for name in known if name in values}):
                self.used.add(name)
                self.findings.append(
                    make_finding(
                        "SL122",
                        "a variable cannot stand here",
                        resource=self._resource,
                        path=join_path(path),
                        found=f"$({name})",
                        expected=f"variables in {ALLOWED} only, never in SQL, patterns, options "
                        "or text",
                        hint=f"write the value itself; or, if this is no variable, rename `{name}`",
                    )
                )
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


def _written(folder: str, form: PathForm) -> str:
    """A folder as its characters are written in a path of some form."""
    if form is PathForm.GLOB:
        return _GLOB_SPECIAL.sub(r"\\\g<0>", folder)
    if form is PathForm.PREFIX:
        return folder.replace("{", "{{").replace("}", "}}")
    return folder


# Virtual sources that are declared under the name of the other kind (rule W2).

PLACEHOLDER = re.compile(r"\{\{\s*SNAPSHOT\b", re.IGNORECASE)
"""The beginning of `{{ SNAPSHOT | FORMAT }}`."""

_EXPLANATION = (
    "simpleVirtual is a query over one physical source, at each of its snapshots; complexVirtual "
    "is a query over the latest snapshot of several, with a snapshotQuery and "
    "{{ SNAPSHOT | UNIX_SECONDS }}"
)


def _swapped(spec: JsonValue, resource: str) -> Finding | None:
    """The explanation, when a DataSource's spec looks like the other kind of virtual source."""
    simple, complex_ = (_under(spec, name) for name in ("simpleVirtual", "complexVirtual"))
    if isinstance(simple, dict) and (signs := _signs_of_complex(simple)):
        return _explain(resource, "simpleVirtual", "complexVirtual", signs)
    if isinstance(complex_, dict) and (signs := _signs_of_simple(complex_)):
        return _explain(resource, "complexVirtual", "simpleVirtual", signs)
    return None


def _signs_of_complex(simple: Mapping[str, JsonValue]) -> list[str]:
    signs = [f"`{name}`" for name in ("snapshotQuery", "dataSources") if name in simple]
    if _has_placeholder(simple):
        signs.append("a {{ SNAPSHOT }} placeholder")
    return signs


def _signs_of_simple(complex_: Mapping[str, JsonValue]) -> list[str]:
    if "dataSource" in complex_:
        return ["a single `dataSource`"]
    if "snapshotQuery" in complex_ or _has_placeholder(complex_):
        return []
    if not {"dataQuery", "sqlQuery", "query"} & complex_.keys():
        return []
    return ["no `snapshotQuery`", "no {{ SNAPSHOT }} placeholder"]


def _has_placeholder(variant: Mapping[str, JsonValue]) -> bool:
    queries = (variant.get(name) for name in ("dataQuery", "sqlQuery", "query"))
    return any(isinstance(query, str) and PLACEHOLDER.search(query) for query in queries)


def _explain(resource: str, given: str, meant: str, signs: list[str]) -> Finding:
    return make_finding(
        "SL117",
        f"this is written as {given}, but has the form of {meant}: {_EXPLANATION}",
        resource=resource,
        path=f"spec.{given}",
        found=f"{given} with {' and '.join(signs)}",
        expected=f"{meant}, or {given} in its own form",
        hint=f"rename `{given}` to `{meant}`",
    )


# Turns documents to resources: skips other tools' kinds, checks versions.

FORMER_KINDS = {
    "HDFSLikeDataSource": "hdfsLike",
    "JDBCDataSource": "jdbc",
    "SimpleVirtualDataSource": "simpleVirtual",
    "ComplexVirtualDataSource": "complexVirtual",
}
"""Kinds of earlier designs, and the variant of DataSource that each has become."""

_SPELLINGS = {
    spelling.casefold(): kind.name
    for kind in KINDS
    for spelling in (kind.name, kind.plural, kind.singular, kind.short_name, f"{kind.name}s")
}


@dataclass(frozen=True)
class Read:
    """Result of reading one document: a resource, findings, or both; neither for an empty one."""

    identity: str = ""
    resource: Resource | None = None
    findings: tuple[Finding, ...] = ()
    used: frozenset[str] = frozenset()


def read_resource(node: Node, surroundings: Surroundings = NO_SURROUNDINGS) -> Read:
    """The resource that a document declares, with its variables and relative paths replaced."""
    return _read(plain(node), node, surroundings)


def _read(document: JsonValue, node: Node | None, surroundings: Surroundings) -> Read:
    """Read a document; `node` has its texts as they were written, if it is in a file."""
    if not isinstance(document, dict):
        is_list = isinstance(document, list)
        finding = make_finding(
            "SL106",
            "a document must be a mapping",
            found="a list" if is_list else display(document),
            expected=f"apiVersion: {API_VERSION}, kind, metadata and spec",
            hint="write each item as a document of its own, and a line `---` between them"
            if is_list
            else "",
        )
        return Read(findings=(finding,))
    identity = _identity(document)
    envelope = _envelope_finding(document, identity)
    if envelope is not None:
        # The identity with its kind spelt right, so that references to it are not missing as well.
        kind, _, name = identity.partition("/")
        return Read(f"{_meant_kind(kind) or kind}/{name}" if kind else identity, None, (envelope,))
    model = KIND_BY_NAME[_text(document, "kind") or ""].model
    if model.__name__ == "DataSource":
        swapped = _swapped(document.get("spec"), identity)
        if swapped is not None:
            return Read(identity, None, (swapped,))
    work = _Substitution(identity, surroundings)
    replaced = work.replaced(document, _Slot(model=model))
    identity, used = _identity(replaced), frozenset(work.used)
    try:
        resource = model.parse(replaced)
    except ValidationError as error:
        faults = findings_of(error, model, node, identity)
        named = {finding.path for finding in work.findings}
        faults = tuple(fault for fault in faults if fault.path not in named)
        return Read(identity, None, (*work.findings, *faults), used)
    return Read(identity, None if work.findings else resource, tuple(work.findings), used)


def read_object(document: JsonValue) -> Read:
    """The resource that a document declares which comes from no file, such as a cluster's object.

    Findings are the same as for a file, without positions. A sound one costs little more than its
    model does.
    """
    if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
        kind = KIND_BY_NAME.get(str(document.get("kind")))
        if kind is not None:
            with suppress(ValidationError):
                resource = kind.model.parse(document)
                return Read(resource.identity, resource)
    return _read(document, None, NO_SURROUNDINGS)


def _identity(document: JsonValue) -> str:
    kind, name = _text(document, "kind"), _text(_under(document, "metadata"), "name")
    return f"{kind or '?'}/{name or '?'}" if kind or name else ""


def _under(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: JsonValue, key: str) -> str | None:
    found = _under(value, key)
    return found if isinstance(found, str) else None


def _envelope_finding(document: dict[str, JsonValue], identity: str) -> Finding | None:
    version, kind = (_text(document, key) for key in ("apiVersion", "kind"))
    if version is None:
        return _wrong_version(document, identity, "apiVersion is missing or not text")
    group = version.rpartition("/")[0]
    if group != GROUP:
        if (
            kind in KIND_BY_NAME
            or kind in FORMER_KINDS
            or (SequenceMatcher(a=group.casefold()[:64], b=GROUP).ratio() >= 0.8)
        ):
            return _wrong_version(document, identity, "this is not Snaploom's apiVersion")
        return make_finding(
            "SL107",
            "this document is not one of Snaploom's and is passed over",
            resource=identity,
            path="apiVersion",
            found=version,
            expected=API_VERSION,
        )
    if version != API_VERSION:
        return _wrong_version(document, identity, "this version of snaploom.io is not known")
    if kind not in KIND_BY_NAME:
        return _unknown_kind(document, kind, identity)
    return None


def _wrong_version(document: dict[str, JsonValue], identity: str, message: str) -> Finding:
    return make_finding(
        "SL108",
        message,
        resource=identity,
        path="apiVersion",
        found=display(document["apiVersion"]) if "apiVersion" in document else "no apiVersion",
        expected=API_VERSION,
    )


def _unknown_kind(document: dict[str, JsonValue], kind: str | None, identity: str) -> Finding:
    is_given = "kind" in document
    return make_finding(
        "SL109",
        "there is no such kind" if is_given else "kind is missing",
        resource=identity,
        path="kind",
        found=display(document["kind"]) if is_given else "no kind",
        expected=", ".join(KIND_BY_NAME),
        hint=_kind_hint(kind) if kind else "",
    )


def _meant_kind(kind: str) -> str | None:
    if kind in FORMER_KINDS:
        return "DataSource"
    return _SPELLINGS.get(kind.casefold()) or nearest(kind, KIND_BY_NAME)


def _kind_hint(kind: str) -> str:
    if kind in FORMER_KINDS:
        return f"write `kind: DataSource`, with what is specific under `spec.{FORMER_KINDS[kind]}`"
    meant = _SPELLINGS.get(kind.casefold())
    return f"write `kind: {meant}`" if meant else did_you_mean(kind, KIND_BY_NAME)

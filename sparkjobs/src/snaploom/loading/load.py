"""`load`: files and folders to typed resources, every fault at once, every position kept."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from snaploom.loading import composer
from snaploom.loading.documents import Read, Surroundings, read_object, read_resource
from snaploom.loading.project import (
    AppliedProject,
    SourceText,
    applied_project,
    fault_finding,
    is_project_file,
    nested_project,
    placed,
    read_files,
    unused_findings,
)
from snaploom.models.allowances import NO_CHOICE, VariableChoice
from snaploom.models.common import Resource
from snaploom.models.findings import Finding, errors_of, make_finding
from snaploom.models.kinds import KIND_BY_NAME

_NOWHERE = composer.Position(0, 0)
_NO_NODE = composer.Mapping({}, 1)


@dataclass(frozen=True)
class Located:
    """A resource, and where it is declared."""

    resource: Resource
    file: str
    node: composer.Node
    at: composer.Position

    def position(self, path: str) -> composer.Position:
        """Where a field path stands; the nearest place above it when it does not exist."""
        return composer.position_of(self.node, self.at, composer.split_path(path))


@dataclass(frozen=True)
class Loaded:
    """The declarations of files, and their findings."""

    located: tuple[Located, ...]
    findings: tuple[Finding, ...]
    broken: frozenset[str]
    """Identities (`Kind/name`) of declarations with faults, so that references to them are not
    reported as well."""
    project: AppliedProject = field(default_factory=AppliedProject)
    """The environment and variables with which they were read."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources, in the order of files and documents."""
        return tuple(item.resource for item in self.located)

    @cached_property
    def _by_identity(self) -> dict[str, Located]:
        return {item.resource.identity: item for item in reversed(self.located)}

    def placed(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Findings about the resources, with file, line and column filled in."""
        return tuple(self._placed(finding) for finding in findings)

    def _placed(self, finding: Finding) -> Finding:
        item = self._by_identity.get(finding.resource)
        if item is None or finding.line:
            return finding
        return placed(finding, item.file, item.position(finding.path))


def load(paths: Sequence[Path], choice: VariableChoice = NO_CHOICE) -> Loaded:
    """Read the resources of files and folders; never raises for the contents of files."""
    return load_resources((), paths, choice)


def load_resources(
    resources: Iterable[Resource], paths: Sequence[Path], choice: VariableChoice = NO_CHOICE
) -> Loaded:
    """The resources of a program, and of files and folders beside them.

    Those of a program are judged by what they would be in a file, as all others are: a model can be
    copied with other values without being validated. They hold values already, no variables.
    """
    applied, faults = applied_project(paths, choice)
    texts, unreadable = read_files(paths) if paths else ((), ())
    findings = [*faults, *unreadable]
    found: list[Located] = []
    broken: set[str] = set()
    used: set[str] = set()
    for each in resources:
        read = read_object(each.dump())
        findings.extend(read.findings)
        if read.resource is not None:
            found.append(Located(each, "", _NO_NODE, _NOWHERE))
        elif read.identity:
            broken.add(read.identity)
    for text in texts:
        if is_project_file(text):
            if os.path.realpath(text.file) != os.path.realpath(applied.file):
                findings.append(nested_project(text))
            continue
        for read, item in _read_text(text, applied, findings):
            findings.extend(read.findings)
            used |= read.used
            if item is not None:
                found.append(item)
            elif read.identity:
                broken.add(read.identity)
    unique, duplicates = _without_duplicates(found)
    findings.extend(duplicates)
    findings.extend(() if errors_of(faults) else unused_findings(applied, choice, used))
    if not unique and not errors_of(findings):
        findings.append(
            make_finding(
                "SL119",
                "the input has no resource of snaploom.io",
                found=", ".join(str(path) for path in paths) or "no path",
                expected="files that declare resources; in folders, those ending in .yaml or .yml",
            )
        )
    return Loaded(unique, tuple(findings), frozenset(broken), applied)


def _read_text(
    source: SourceText, applied: AppliedProject, findings: list[Finding]
) -> Iterable[tuple[Read, Located | None]]:
    composed = composer.compose(source.text)
    folder = os.path.dirname(os.path.abspath(source.file))
    surroundings = Surroundings(applied.values, applied.project, folder, applied.is_partial)
    for document in composed.documents:
        yield from _read_document(source, document, surroundings)
    if composed.fault is not None:
        findings.append(fault_finding(composed.fault, source.file))


def _read_document(
    source: SourceText, document: composer.Document, surroundings: Surroundings
) -> Iterable[tuple[Read, Located | None]]:
    first = ""
    for at, node in _members(document.node, document.at):
        read = read_resource(node, surroundings)
        first = first or read.identity
        own = tuple(
            placed(
                finding,
                source.file,
                composer.position_of(node, at, composer.split_path(finding.path)),
            )
            for finding in read.findings
        )
        located = Located(read.resource, source.file, node, at) if read.resource else None
        yield Read(read.identity, read.resource, own, read.used), located
    if document.faults:
        faults = tuple(fault_finding(fault, source.file, first) for fault in document.faults)
        yield Read("", None, faults), None


def _members(node: composer.Node, at: composer.Position) -> Iterable[composer.Item]:
    """The document itself or, when it is a List as kubectl prints them, its items."""
    entries = node.entries if isinstance(node, composer.Mapping) else {}
    kind = composer.scalar_at(node, ("kind",))
    name = str(kind.value) if kind is not None else ""
    items = entries["items"].node if "items" in entries else None
    is_list = name == "List" or name.removesuffix("List") in KIND_BY_NAME
    if is_list and isinstance(items, composer.Sequence):
        for item in items.items:
            yield from _members(item.node, item.at)
    elif not (isinstance(node, composer.Scalar) and node.value is None):
        yield composer.Item(at, node)


def _without_duplicates(found: list[Located]) -> tuple[tuple[Located, ...], list[Finding]]:
    first: dict[tuple[str | None, str], Located] = {}
    duplicates: list[Finding] = []
    for item in found:
        key = (item.resource.metadata.namespace, item.resource.identity)
        if key in first:
            duplicates.append(_duplicate(item, first[key]))
        else:
            first[key] = item
    return tuple(first.values()), duplicates


def _duplicate(item: Located, first: Located) -> Finding:
    here, there = item.position("metadata.name"), first.position("metadata.name")
    finding = make_finding(
        "SL118",
        "this resource is declared twice",
        resource=item.resource.identity,
        path="metadata.name",
        found=f"{first.file} line {there.line}, and {item.file} line {here.line}",
        expected="one declaration of each kind and name",
    )
    return placed(finding, item.file, here)

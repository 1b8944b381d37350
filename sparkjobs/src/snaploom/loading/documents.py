"""Turns documents to resources: unpacks lists, skips other tools' kinds, checks versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from pydantic import JsonValue, ValidationError

from snaploom.loading.nearmisses import did_you_mean, nearest
from snaploom.loading.nodes import (
    Item,
    Mapping,
    Node,
    Position,
    Scalar,
    Sequence,
    node_of,
    plain,
)
from snaploom.loading.pydanticerrors import display, findings_of
from snaploom.loading.substitution import NO_SURROUNDINGS, Surroundings, substituted
from snaploom.loading.swappedkinds import swapped_finding
from snaploom.models.codes import make_finding
from snaploom.models.common import API_VERSION, GROUP
from snaploom.models.finding import Finding
from snaploom.models.kinds import KIND_BY_NAME, KINDS
from snaploom.models.resource import Resource

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
    """Variables that it names."""


def members(node: Node, at: Position) -> Iterator[Item]:
    """The document itself or, when it is a List as kubectl prints them, its items."""
    items = _list_items(node)
    if items is None:
        if not (isinstance(node, Scalar) and node.value is None):
            yield Item(at, node)
    else:
        for item in items.items:
            yield from members(item.node, item.at)


def _list_items(node: Node) -> Sequence | None:
    kind = _text(node, "kind") or ""
    if not isinstance(node, Mapping) or "items" not in node.entries:
        return None
    items = node.entries["items"].node
    is_list = kind == "List" or kind.removesuffix("List") in KIND_BY_NAME
    return items if is_list and isinstance(items, Sequence) else None


def read_resource(node: Node, surroundings: Surroundings = NO_SURROUNDINGS) -> Read:
    """The resource that a document declares, with its variables and relative paths replaced."""
    if not isinstance(node, Mapping):
        return Read(findings=(_not_a_mapping(node),))
    identity = _identity(node)
    envelope = _envelope_finding(node, identity)
    if envelope is not None:
        # The identity with its kind spelt right, so that references to it are not missing as well.
        kind, _, name = identity.partition("/")
        return Read(f"{_meant_kind(kind) or kind}/{name}" if kind else identity, None, (envelope,))
    model = KIND_BY_NAME[_text(node, "kind") or ""].model
    if model.__name__ == "DataSource":
        spec = node.entries.get("spec")
        swapped = swapped_finding(spec.node if spec else None, identity)
        if swapped is not None:
            return Read(identity, None, (swapped,))
    replaced = substituted(node, model, identity, surroundings)
    if isinstance(replaced.node, Mapping):
        identity = _identity(replaced.node)
    try:
        resource = model.parse(plain(replaced.node))
    except ValidationError as error:
        faults = findings_of(error, model, replaced.node, identity)
        named = {finding.path for finding in replaced.findings}
        faults = tuple(fault for fault in faults if fault.path not in named)
        return Read(identity, None, (*replaced.findings, *faults), replaced.used)
    if replaced.findings:
        return Read(identity, None, replaced.findings, replaced.used)
    return Read(identity, resource, (), replaced.used)


def read_object(document: JsonValue) -> Read:
    """The resource that a document declares which comes from no file, such as a cluster's object.

    Findings are the same as for a file, without positions. A sound one costs little more than its
    model does.
    """
    if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
        kind = KIND_BY_NAME.get(str(document.get("kind")))
        if kind is not None:
            try:
                resource = kind.model.parse(document)
            except ValidationError:
                return read_resource(node_of(document))
            return Read(resource.identity, resource)
    return read_resource(node_of(document))


def _not_a_mapping(node: Node) -> Finding:
    return make_finding(
        "SL106",
        "a document must be a mapping",
        found=display(plain(node)) if isinstance(node, Scalar) else "a list",
        expected=f"apiVersion: {API_VERSION}, kind, metadata and spec",
        hint="write each item as a document of its own, and a line `---` between them"
        if isinstance(node, Sequence)
        else "begin the document with `apiVersion`, `kind`, `metadata` and `spec`",
    )


def _identity(node: Mapping) -> str:
    kind = _text(node, "kind")
    metadata = node.entries.get("metadata")
    name = _text(metadata.node, "name") if metadata else None
    return f"{kind or '?'}/{name or '?'}" if kind or name else ""


def _text(node: Node, key: str) -> str | None:
    if not isinstance(node, Mapping) or key not in node.entries:
        return None
    value = node.entries[key].node
    return value.value if isinstance(value, Scalar) and isinstance(value.value, str) else None


def _envelope_finding(node: Mapping, identity: str) -> Finding | None:
    version, kind = _text(node, "apiVersion"), _text(node, "kind")
    if version is None:
        return _wrong_version(node, identity, "apiVersion is missing or not text")
    group = version.rpartition("/")[0]
    if group != GROUP:
        if kind in KIND_BY_NAME or kind in FORMER_KINDS or _resembles_ours(group):
            return _wrong_version(node, identity, "this is not Snaploom's apiVersion")
        return make_finding(
            "SL107",
            "this document is not one of Snaploom's and is passed over",
            resource=identity,
            path="apiVersion",
            found=version,
            expected=API_VERSION,
        )
    if version != API_VERSION:
        return _wrong_version(node, identity, "this version of snaploom.io is not known")
    if kind not in KIND_BY_NAME:
        return _unknown_kind(node, kind, identity)
    return None


def _resembles_ours(group: str) -> bool:
    return SequenceMatcher(a=group.casefold()[:64], b=GROUP).ratio() >= 0.8


def _wrong_version(node: Mapping, identity: str, message: str) -> Finding:
    given = node.entries.get("apiVersion")
    return make_finding(
        "SL108",
        message,
        resource=identity,
        path="apiVersion",
        found=display(plain(given.node)) if given else "no apiVersion",
        expected=API_VERSION,
        hint=f"write `apiVersion: {API_VERSION}`",
    )


def _unknown_kind(node: Mapping, kind: str | None, identity: str) -> Finding:
    given = node.entries.get("kind")
    return make_finding(
        "SL109",
        "there is no such kind" if given else "kind is missing",
        resource=identity,
        path="kind",
        found=display(plain(given.node)) if given else "no kind",
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

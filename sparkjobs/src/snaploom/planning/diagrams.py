"""The graph of an output as Mermaid: sources, relationships with keys, the chosen tree.

A relationship is a node of its own, joined to its sources by thin lines that carry the key, because
as arcs between sources it would be k² lines. The chosen tree lies on top in bold arrows. Of what is
published the manifest has only the tree, with the snapshots that went into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from snaploom.planning.graph import JoinGraph
from snaploom.planning.publishedmodel import Change, PublishedModel, PublishedNode
from snaploom.planning.tree import JoinTree, published_tree


@dataclass(frozen=True, slots=True)
class DrawnSource:
    """A source; `field_name` is empty for the root and for sources that are not listed."""

    id: str
    source: str
    field_name: str
    is_root: bool
    is_listed: bool
    is_joined: bool


@dataclass(frozen=True, slots=True)
class DrawnKey:
    """A line between a relationship and one of its sources."""

    relationship: str
    source: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnJoin:
    """An arrow of the tree."""

    parent: str
    child: str
    label: str


@dataclass(frozen=True)
class Drawing:
    """The parts of a drawing; every reference is an id."""

    sources: tuple[DrawnSource, ...]
    relationships: tuple[tuple[str, str], ...]
    keys: tuple[DrawnKey, ...]
    joins: tuple[DrawnJoin, ...]


def drawing_of(graph: JoinGraph, tree: JoinTree) -> Drawing:
    """Everything to draw, in an order that does not depend on the configuration's."""
    names = {source for link in graph.links for source in link.keys} | set(graph.vertices)
    ids = {name: f"s{number}" for number, name in enumerate(sorted(names))}
    links = {link.name: f"r{number}" for number, link in enumerate(graph.links)}
    joined = {node.source for node in tree.nodes}
    return Drawing(
        sources=tuple(
            DrawnSource(
                ids[name],
                name,
                graph.vertices[name].field_name if name in graph.vertices else "",
                name == graph.root.source,
                name in graph.vertices,
                name in joined,
            )
            for name in sorted(names)
        ),
        relationships=tuple((links[link.name], link.name) for link in graph.links),
        keys=tuple(
            DrawnKey(links[link.name], ids[source], link.keys[source])
            for link in graph.links
            for source in sorted(link.keys)
        ),
        joins=tuple(
            DrawnJoin(
                ids[tree.by_number[node.parent_number].source],
                ids[node.source],
                f"{node.number} [{', '.join(node.group_by)}]"
                if node.group_by
                else f"{node.number}",
            )
            for node in tree.joins
        ),
    )


def mermaid(graph: JoinGraph, tree: JoinTree) -> str:
    """The drawing as a Mermaid flowchart."""
    return "\n".join(_mermaid_lines(drawing_of(graph, tree))) + "\n"


def _mermaid_lines(drawn: Drawing) -> Iterator[str]:
    yield "flowchart LR"
    for source in drawn.sources:
        yield f'  {source.id}["{_mermaid_text(_label(source))}"]:::{_style(source)}'
    for id_, name in drawn.relationships:
        yield f'  {id_}{{{{"{_mermaid_text(name)}"}}}}:::relationship'
    for key in drawn.keys:
        yield f'  {key.relationship} -. "{_mermaid_text(", ".join(key.key))}" .- {key.source}'
    for join in drawn.joins:
        yield f'  {join.parent} == "{_mermaid_text(join.label)}" ==> {join.child}'
    yield "  classDef root stroke-width:3px"
    yield "  classDef joined stroke-width:1px"
    yield "  classDef unjoined stroke-dasharray:4"
    yield "  classDef unlisted stroke-dasharray:1,color:#888"
    yield "  classDef relationship fill:#fff,stroke:#888"


def published_mermaid(model: PublishedModel) -> str:
    """A published data model, or the difference of two, as a Mermaid flowchart."""
    tree, nodes = published_tree(model)
    lines = [
        f"%% {model.title}: {model.caption}",
        *(f"%% {note}" for note in model.notes),
        "flowchart LR",
        *(
            f'  s{number}["{_mermaid_lines_of(node)}"]:::{_kind(number, node)}'
            for number, node in nodes.items()
        ),
        *(
            f'  s{node.parent_number} == "{_mermaid_text(_edge(nodes[node.number]))}" '
            f"==> s{node.number}"
            for node in tree.joins
        ),
        "  classDef root stroke-width:3px",
        "  classDef same stroke-width:1px",
        "  classDef added stroke:#15803d,stroke-width:3px",
        "  classDef removed stroke:#b91c1c,stroke-width:3px,stroke-dasharray:4",
        "  classDef changed stroke:#b45309,stroke-width:3px",
    ]
    return "\n".join(lines) + "\n"


def _lines_of(node: PublishedNode) -> tuple[str, ...]:
    name = node.field_name or node.source
    shown = name if name == node.source else f"{name}: {node.source}"
    found = f"left out: {node.left_out}" if node.left_out else node.taken
    return tuple(filter(None, (shown, found)))


def _mermaid_lines_of(node: PublishedNode) -> str:
    return "<br/>".join(map(_mermaid_text, _lines_of(node)))


def _edge(node: PublishedNode) -> str:
    grouped = f" [{', '.join(node.group_by)}]" if node.group_by else ""
    return f"{node.relationship}{grouped}"


def _kind(number: int, node: PublishedNode) -> str:
    return "root" if number == 0 and node.change is Change.SAME else node.change.value


def _label(source: DrawnSource) -> str:
    if source.field_name in ("", source.source):
        return source.source
    return f"{source.field_name}: {source.source}"


def _style(source: DrawnSource) -> str:
    if source.is_root:
        return "root"
    if not source.is_listed:
        return "unlisted"
    return "joined" if source.is_joined else "unjoined"


def _mermaid_text(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")

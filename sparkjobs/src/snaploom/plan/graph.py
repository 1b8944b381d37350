"""The graph of joins that a data model declares, of networkx.

An arc leads from u to v by relationship r when both are listed, v is not the root, both are in r,
no exclusion of r holds both, and v's `groupBy` is empty or equals, ignoring case and order, the
fields of v's key in r (rule W9). Grouping happens after a node's
own children are joined, so it restricts the arcs *into* the node only. Sources that are in a
relationship but not in the output are no way through.

A relationship over k sources stands for k² arcs, which are never listed one by one: the graph is
bipartite, of sources (by name) and relationships (`Part`), with one edge for each source of each
relationship. Sources that are in the same exclusions of a relationship have the same arcs by it;
where it has exclusions, it is a node for each such set of sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, product, repeat
from operator import attrgetter
from typing import ClassVar

import networkx as nx

from snaploom.models.common import ROOT_FIELD, PathMissingMode
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.outputdataset import DataModel, UsedRelationship
from snaploom.types.schemas import folded_path

NOT_EXCLUDED: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Vertex:
    """A source that the output lists."""

    source: str
    field_name: str
    group_by: tuple[str, ...] = ()
    path_missing_mode: PathMissingMode = PathMissingMode.ERROR

    @cached_property
    def group_key(self) -> frozenset[str]:
        """The groupBy fields without case and order."""
        return frozenset(folded_path(name) for name in self.group_by)

    @property
    def order(self) -> str:
        """Sort key of siblings, so that the order of configuration does not matter."""
        return self.field_name.casefold()


@dataclass(frozen=True)
class Link:
    """A relationship as the output uses it: an edge to each of its sources."""

    name: str
    anti_priority: int
    keys: Mapping[str, tuple[str, ...]]
    """Fields of the key by source, of listed and unlisted sources."""
    exclusions: tuple[frozenset[str], ...] = ()
    normalized: Mapping[str, str] = field(default_factory=dict)
    """By source, the components of its key that are normalised, for people."""

    @cached_property
    def excluded_in(self) -> Mapping[str, frozenset[int]]:
        """By source, the numbers of the exclusions that hold it."""
        found: dict[str, set[int]] = {}
        for number, sources in enumerate(self.exclusions):
            for source in sources:
                found.setdefault(source, set()).add(number)
        return {source: frozenset(numbers) for source, numbers in found.items()}

    def exclusions_of(self, source: str) -> frozenset[int]:
        """Numbers of the exclusions that hold the source."""
        return self.excluded_in.get(source, NOT_EXCLUDED)

    def separates(self, source: str, other: str) -> bool:
        """Whether an exclusion holds both."""
        return not self.exclusions_of(source).isdisjoint(self.exclusions_of(other))

    def fits_grouping(self, vertex: Vertex) -> bool:
        """Whether the vertex is not grouped, or grouped by exactly its key in this link."""
        if not vertex.group_by:
            return True
        return vertex.group_key == {folded_path(name) for name in self.keys[vertex.source]}


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A relationship as the sources see it that the same of its exclusions hold."""

    relationship: str
    held: frozenset[int]
    """Numbers of these exclusions."""


@dataclass(frozen=True)
class JoinGraph:
    """The sources of an output and the links between them."""

    root: Vertex
    vertices: Mapping[str, Vertex]
    links: tuple[Link, ...]
    """Ordered by name."""
    network: nx.Graph = field(compare=False)
    """Sources, listed or not, and the parts of links; edges in the order of links."""
    max_depth: int = 32

    @cached_property
    def link(self) -> Mapping[str, Link]:
        """The links by name."""
        return {link.name: link for link in self.links}

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each link, by its name."""
        parts = (node for node in self.network if isinstance(node, Part))  # in the order of links
        return {name: tuple(found) for name, found in groupby(parts, attrgetter("relationship"))}

    def links_of(self, source: str) -> tuple[Link, ...]:
        """The links that mention a source, listed or not."""
        parts = self.network.adj.get(source, ())
        return tuple(self.link[part.relationship] for part in parts)

    def hops(self) -> dict[str | Part, int]:
        """Return the distance from the root of every source within reach, and of parts on the way.

        A join is two hops: from a source to a relationship, and on to a source. The search is
        breadth first; what an arc needs prunes it.
        """
        found: dict[str | Part, int] = {self.root.source: 0}
        edges = nx.generic_bfs_edges(self.network, self.root.source, _Pruned(self).following)
        for before, node in edges:
            found[node] = found[before] + 1
        return found

    def arcs(self, links: Iterable[Link]) -> Iterator[tuple[Vertex, Vertex, Link]]:
        """The arcs of links, one by one: for small graphs, or the first; planning needs none."""
        for link in links:
            members = [self.vertices[source] for source in link.keys if source in self.vertices]
            for child, parent in product(members, members):
                if (
                    parent is not child
                    and child is not self.root
                    and link.fits_grouping(child)
                    and not link.separates(parent.source, child.source)
                ):
                    yield parent, child, link


def join_graph(model: DataModel, relationships: Iterable[DataRelationship]) -> JoinGraph:
    """The graph of a data model; every relationship that the model names must be given."""
    by_name = {relationship.name: relationship for relationship in relationships}
    root = Vertex(model.root_data_source.data_source, ROOT_FIELD)
    others = (
        Vertex(other.data_source, other.field_name, other.group_by, other.path_missing_mode)
        for other in model.other_data_sources
    )
    vertices = {vertex.source: vertex for vertex in (*others, root)}
    links = sorted(
        (_link(used, by_name[used.name]) for used in model.data_relationships),
        key=lambda link: link.name,
    )
    return JoinGraph(root, vertices, tuple(links), _network(vertices, links), model.max_depth)


class _Network(nx.Graph):  # type: ignore[misc]  # networkx has no types
    """A graph without data on its edges, which all share one dictionary for it.

    A dense model has hundreds of thousands of edges: a dictionary for each takes a fifth longer.
    """

    _NO_DATA: ClassVar[dict[str, object]] = {}

    def edge_attr_dict_factory(self) -> dict[str, object]:
        return self._NO_DATA


def _network(vertices: Iterable[str], links: Iterable[Link]) -> nx.Graph:
    network = _Network()
    network.add_nodes_from(vertices)
    for link in links:
        alike: defaultdict[frozenset[int], list[str]] = defaultdict(list)
        for source in link.keys:
            alike[link.exclusions_of(source)].append(source)
        for held, sources in alike.items():
            network.add_edges_from(zip(sources, repeat(Part(link.name, held)), strict=False))
    return network


class _Pruned:
    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._entered: set[Part] = set()
        self._left = dict(graph.parts)
        self._grouped = {name: vertex for name, vertex in graph.vertices.items() if vertex.group_by}

    def following(self, node: str | Part) -> Iterator[str | Part]:
        network, vertices = self._graph.network, self._graph.vertices
        if isinstance(node, Part):
            link = self._graph.link[node.relationship]
            for source in network[node]:
                grouped = self._grouped.get(source)
                if source in vertices and (grouped is None or link.fits_grouping(grouped)):
                    yield source
            return
        for part in network[node]:
            # One source speaks for all that are in the same exclusions, and a part is reached once.
            if part not in self._entered:
                self._entered.add(part)
                left = self._left[part.relationship]
                yield from (other for other in left if part.held.isdisjoint(other.held))
                self._left[part.relationship] = tuple(
                    other for other in left if not part.held.isdisjoint(other.held)
                )


def _link(used: UsedRelationship, relationship: DataRelationship) -> Link:
    keys: dict[str, tuple[str, ...]] = {}
    for representation in relationship.spec.representations:
        names = (field.field_name for part in representation.join_key for field in part.fields_)
        fields = tuple(dict.fromkeys(names))
        keys.update(dict.fromkeys(representation.data_sources, fields))
    exclusions = tuple(frozenset(exclusion.data_source_set) for exclusion in used.exclusions)
    spec = relationship.spec
    normalized = {source: text for source in keys if (text := spec.normalized_keys(source))}
    return Link(used.name, used.anti_priority, keys, exclusions, normalized)
